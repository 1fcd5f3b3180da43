//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// told is the expected observation of a failure that broke all connections: 10 messages of each queue are in doubt, and 4
// of these arrived.
func told(edit func(*observation)) *observation {
	first := time.Unix(1000, 0)
	o := &observation{
		expect: expectation{outage: true}, live: "L", kept: "K", first: first, last: first.Add(30 * time.Millisecond),
		due: 500, stored: 494, left: 0, total: -1,
	}
	verified := result.Verified{
		Expected: 490, Received: 494, Once: 494, Duplicates: 3, AfterOutage: 3, UnconfirmedArrived: 4, UnconfirmedMissing: 6,
	}
	o.result = &result.Result{Complete: true, Outcome: result.Outcome{Success: true}}
	o.result.Verification = &result.Verification{}
	for _, q := range []string{"L", "K"} {
		o.result.Workers = append(o.result.Workers, result.Worker{
			Destination: "queue://" + q,
			Counts:      result.Counts{Producers: &result.Producers{Sent: 500, Completed: 490, Unconfirmed: 10}},
		})
		o.result.Verification.Subscriptions = append(o.result.Verification.Subscriptions,
			result.Subscription{Destination: "queue://" + q, Verified: verified})
	}
	o.result.Outages = []result.Outage{{
		Time: first.Add(20 * time.Millisecond).UnixMicro(), Length: 2_400_000, Recovered: 3_000_000, InDoubt: 20,
	}}
	edit(o)
	return o
}

// several gives an observation of a failure that may have several outages two, the second at that time.
func several(o *observation, second time.Time) {
	o.expect.several = true
	o.result.Outages = append(o.result.Outages, o.result.Outages[0])
	o.result.Outages[0].InDoubt, o.result.Outages[1].Time = 0, second.UnixMicro()
}

// answered is an observation without an outage: the broker answered all messages.
func answered(o *observation) {
	o.result.Outages = nil
	for i := range o.result.Workers {
		*o.result.Workers[i].Producers = result.Producers{Sent: 494, Completed: 494}
		v := &o.result.Verification.Subscriptions[i].Verified
		v.Expected, v.UnconfirmedArrived, v.UnconfirmedMissing = 494, 0, 0
	}
}

func kept(o *observation) (*result.Producers, *result.Verified) {
	return o.result.Workers[1].Producers, &o.result.Verification.Subscriptions[1].Verified
}

// failed lets perfmq report a failed run.
func failed(o *observation) { o.status, o.result.Outcome = 1, result.Outcome{Status: 1} }

// full is an observation of a full queue: 100 messages, and another 400 when the consumers had come.
func full(o *observation) {
	o.expect, o.first, o.last, o.stored = expectation{blocked: true}, time.Time{}, time.Time{}, 100
	answered(o)
	o.result.Stalls = []result.Stall{{Side: "send", Length: 7_000_000}}
}

// heldUp is an observation of a queue that is full to the end: messages had no answer when the producers closed.
func heldUp(o *observation) {
	full(o)
	failed(o)
	p, v := kept(o)
	*p = result.Producers{Sent: 500, Completed: 494, Unconfirmed: 6}
	v.Expected, v.Received, v.Once, v.UnconfirmedMissing = 494, 494, 494, 6
}

func refusing(o *observation) {
	full(o)
	failed(o)
	o.expect, o.result.Stalls = expectation{refused: true}, nil
	p, v := kept(o)
	*p = result.Producers{Sent: 500, Completed: 444, Rejected: 50, Unconfirmed: 6}
	v.UnconfirmedMissing = 6
	v.Expected, v.Received, v.Once = 444, 444, 444
}

// silent is an observation of a broker that was stopped, and of a stall that began so much after that.
func silent(o *observation, after time.Duration) {
	answered(o)
	o.expect = expectation{silence: true}
	o.result.Stalls = []result.Stall{{Time: o.first.Add(after).UnixMicro(), Length: 20_000_000}}
}

// lateBefore is silent, with a stall that began two seconds before, and a second before in which an answer took so long.
func lateBefore(o *observation, at time.Duration, longest int64) {
	silent(o, -2*time.Second)
	o.result.Rows = []result.Row{{
		Step: failureStep, Time: o.first.Add(at).UnixMicro(), Latencies: result.Latencies{result.Ack: &result.Latency{Max: longest}},
	}}
}

// TestJudge: a promise that the broker broke is no mistake of perfmq, and each mistake of perfmq is found.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit    func(*observation)
		verdict string // a regular expression
	}{
		"kept": {func(*observation) {}, `^kept; counts agree$`},
		"one lost, and the broker had one less": {func(o *observation) {
			failed(o)
			_, v := kept(o)
			v.Received, v.Once, v.Lost = v.Received-1, v.Once-1, 1
			o.stored--
		}, `^promise broken: 1 confirmed messages lost; counts agree$`},
		"one lost, but the broker had it": {func(o *observation) {
			failed(o)
			_, v := kept(o)
			v.Received, v.Once, v.Lost = v.Received-1, v.Once-1, 1
		}, `^\*\*perfmq is wrong\*\*: the broker had 494 messages in the kept queue, 493 different ones were received$`},
		"lost by right": {func(o *observation) {
			o.expect.loses = true
			failed(o)
			_, v := kept(o)
			v.Received, v.Once, v.Lost = 394, 394, 100
			o.stored = 394
		}, `^kept; counts agree$`},
		"sent at most once": {func(o *observation) {
			o.expect.loses = true
			failed(o)
			_, v := kept(o)
			v.Received, v.Once, v.Left = 394, 394, 100
			o.stored, o.left = 494, 60 // the others never came to the broker
		}, `^kept; counts agree$`},
		"lost, and perfmq says success": {func(o *observation) {
			_, v := kept(o)
			v.Received, v.Once, v.Lost = v.Received-1, v.Once-1, 1
			o.stored--
		}, `wrong.*exit status 0 instead of 1`},
		"nothing lost, and perfmq says failure": {failed, `wrong.*exit status 1 instead of 0`},
		"result and exit status differ":         {func(o *observation) { o.result.Outcome.Success = false }, `wrong.*success false`},
		"left at the broker":                    {func(o *observation) { o.left = 2 }, `wrong.*2 messages are left at the broker, not 0 to 0`},
		"left, as perfmq says": {func(o *observation) {
			failed(o)
			_, v := kept(o)
			v.Received, v.Once, v.Left = v.Received-2, v.Once-2, 2
			o.left = 3 // one in doubt
		}, `^promise broken: 2 messages not delivered in time`},
		"the broker had fewer live ones": {func(o *observation) { o.total = 493 }, `wrong.*had 493 messages in the live queue, 494`},
		"an unexplained copy": {func(o *observation) {
			failed(o)
			_, v := kept(o)
			v.Duplicates++
		}, `^promise broken: 1 messages doubled`},
		"a message without an end": {func(o *observation) { p, _ := kept(o); p.Sent++ }, `wrong.*K: 501 sent, 500 ended`},
		"other confirmations than expectations": {func(o *observation) {
			_, v := kept(o)
			v.Expected--
		}, `wrong.*K: 490 confirmed, 489 expected`},
		"doubt without an end": {func(o *observation) {
			_, v := kept(o)
			v.UnconfirmedMissing--
		}, `wrong.*K: 10 in doubt, of which 4 arrived and 5 did not`},
		"verification does not add up": {func(o *observation) { _, v := kept(o); v.Lost++ }, `wrong.*does not add up`},
		"damaged":                      {func(o *observation) { _, v := kept(o); v.Damaged++ }, `wrong.*damaged 1`},
		"no load":                      {func(o *observation) { o.result.Workers[1].Destination = "queue://X" }, `wrong.*no messages to the queue K`},
		"hung":                         {func(o *observation) { o.hung = true }, `wrong.*it did not end`},
		"torn result":                  {func(o *observation) { o.result.Complete = false }, `wrong.*its result is not complete`},
		"broker's count differs": {func(o *observation) {
			o.result.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{{
				Destination: "queue://K", Acknowledged: &result.Compared{Count: 9, Least: 10, Most: 11},
			}}}
		}, `wrong.*the broker counts 9, not 10 to 11`},
		"no outage":   {func(o *observation) { o.result.Outages = nil }, `wrong.*0 outages instead of one`},
		"two outages": {func(o *observation) { o.result.Outages = append(o.result.Outages, o.result.Outages[0]) }, `wrong.*2 outages`},
		"connections that end too late": {func(o *observation) {
			several(o, o.last.Add(101*time.Millisecond))
		}, `wrong.*it began 101ms from`},
		"a late outage": {func(o *observation) {
			o.result.Outages[0].Time = o.last.Add(101 * time.Millisecond).UnixMicro()
		}, `wrong.*it began 101ms from`},
		"in doubt, and nobody back to receive it": {func(o *observation) {
			failed(o)
			o.total = 500
			o.result.Outages[0].NotBack = []string{"readers-0"}
		}, `^kept`},
		"in doubt, and received by nobody":       {func(o *observation) { o.total = 495 }, `wrong.*had 495 messages in the live queue`},
		"silence":                                {func(o *observation) { silent(o, 0) }, `^kept`},
		"silence, of a broker that answers late": {func(o *observation) { lateBefore(o, -3*time.Second, 2_100_000) }, `^kept`},
		"silence, unnoticed": {func(o *observation) {
			o.expect = expectation{silence: true}
			o.result.Outages = nil
		}, `wrong.*neither a stall nor an outage`},
		"unnoticed":            {func(o *observation) { answered(o); o.expect = expectation{unnoticed: true} }, `^kept`},
		"noticed":              {func(o *observation) { o.expect = expectation{unnoticed: true} }, `^promise broken: 1 outages`},
		"full":                 {full, `^kept`},
		"full to the end":      {heldUp, `^kept`},
		"full, without a wait": {func(o *observation) { full(o); o.result.Stalls = nil }, `wrong.*no stall`},
		"full, and all are taken": {func(o *observation) {
			full(o)
			o.stored, o.due, o.result.Stalls = 494, 495, nil
		}, `^promise broken: no producer was held up: the queue took all 494`},
		"not full, for want of messages": {func(o *observation) {
			full(o)
			o.due, o.stored, o.result.Stalls = 3000, 390, nil
			o.result.Rows = []result.Row{sentIn(failureStep, 300), sentIn(failureStep, 90), sentIn("drain", 110)}
		}, `^not judged: perfmq sent no more than 390 of 3000 messages`},
		"full, and the broker withholds credit, unnoticed": {func(o *observation) {
			full(o)
			o.due, o.stored, o.result.Stalls = 3000, 390, nil
			o.result.Rows = []result.Row{
				sentIn(failureStep, 300), sentIn(failureStep, 90), sentIn(failureStep, 0), sentIn(failureStep, 0),
				sentIn(failureStep, 0), sentIn("drain", 110),
			}
		}, `wrong.*no stall`},
		"full, and a connection broke": {func(o *observation) {
			full(o)
			o.result.Outages = []result.Outage{{}}
		}, `wrong.*an outage, where no connection broke`},
		"refused by closing connections": {func(o *observation) {
			full(o)
			o.expect = expectation{refused: true}
			o.result.Outages = []result.Outage{{Length: 7_000_000, Class: "connection-lost"}}
		}, `^promise broken: no message was refused, connections broke`},
		"refused": {refusing, `^kept`},
		"refused, and arrived": {func(o *observation) {
			refusing(o)
			_, v := kept(o)
			v.RefusedArrived, v.Received = 1, v.Received+1
		}, `wrong.*refused and arrived 1`},
		"nothing refused": {func(o *observation) { full(o); o.expect = expectation{refused: true} }, `^promise broken: no message was refused`},
		"ended by a refusal": {func(o *observation) {
			refusing(o)
			o.early, o.stored, o.left = true, 444, -1
			*o.result.Verification = result.Verification{}
		}, `^kept`},
		"in doubt by time-outs after the outage": {func(o *observation) { o.result.Outages[0].InDoubt = 19 }, `^kept`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := judge(told(c.edit))
			require.Regexp(t, c.verdict, r.Verdict)
			require.Equal(t, strings.Contains(c.verdict, "wrong"), mistakes([]row{r}) != nil)
		})
	}
}

// TestFailureTrials: each failure of a deployment exists, and each failure has a deployment.
func TestFailureTrials(t *testing.T) {
	t.Parallel()
	starts, others := failureTrials(true), failureTrials(false)
	require.Len(t, starts, 9, "two of each broker, and one of 2,000,000 messages")
	all := append(starts, others...)
	titles, n := map[string]bool{}, 0
	for _, f := range all {
		titles[f.name[strings.Index(f.name, "/")+1:]] = true
	}
	for _, d := range deployments() {
		n += len(d.failures)
	}
	require.Len(t, all, n)
	require.Len(t, titles, len(failures())+len(brokerFailures()))
}

// sentIn is a second of a step in which n messages were sent and confirmed.
func sentIn(step string, n uint64) result.Row {
	return result.Row{Step: step, Counts: result.Counts{Producers: &result.Producers{Sent: n, Completed: n}}}
}

// acked gives an observation eight seconds before the failure and three after it, with these median ack times.
func acked(o *observation, before, after time.Duration) {
	for i := range 11 {
		p50 := before
		if i >= 8 {
			p50 = after
		}
		o.result.Rows = append(o.result.Rows, result.Row{
			Step: failureStep, Phase: result.Measure, Length: 1_000_000,
			Time:      o.first.Add(time.Duration(i-7) * time.Second).UnixMicro(),
			Latencies: result.Latencies{result.Ack: &result.Latency{Percentiles: &result.Percentiles{P50: p50.Microseconds()}}},
		})
	}
}

// TestBusyMachine: a trial on a busy machine is neither right nor wrong, whatever else it shows; a slow broker after the
// failure, a few late sends, and a hang are judged.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	total := func(o *observation, sent, late uint64) {
		o.result.Total.Producers = &result.Producers{Sent: sent, Late: late}
	}
	for name, c := range map[string]struct {
		edit func(*observation)
		want state
		why  string
	}{
		"fast":           {func(o *observation) { acked(o, 2*time.Millisecond, 2*time.Millisecond) }, promiseKept, ""},
		"slow after it":  {func(o *observation) { acked(o, 2*time.Millisecond, 3*time.Second) }, promiseKept, ""},
		"slow before it": {func(o *observation) { acked(o, 51*time.Millisecond, 2*time.Millisecond) }, notJudged, "the median ack time before the failure was 51.0 ms"},
		"a full queue is slow": {func(o *observation) {
			acked(o, 2*time.Millisecond, 2*time.Millisecond)
			for i := 3; i < len(o.result.Rows); i++ {
				o.result.Rows[i].Latencies[result.Ack].P50 = 1_000_000
			}
			full(o)
		}, promiseKept, ""},
		"busy": {func(o *observation) {
			o.result.Tester = result.Tester{CPU: 10, MachineBusy: 91, MachineAll: 100}
		}, notJudged, "the machine was 91% busy, 81% with other programs than perfmq"},
		"paused": {func(o *observation) {
			o.result.Tester = result.Tester{Pauses: 2, PauseMax: 213_000}
		}, notJudged, "perfmq was paused 2 times, for 213.0 ms at most"},
		"late": {func(o *observation) { total(o, 1000, 20) }, notJudged, "perfmq sent 20 of 1000 messages late"},
		"wrong, on a busy machine": {func(o *observation) {
			acked(o, time.Second, time.Second)
			o.result.Outages = nil
		}, notJudged, "the median"},
		"over before the failure": {func(o *observation) {
			acked(o, time.Millisecond, time.Millisecond)
			o.result.Outages, o.allowed, o.last = nil, time.Minute, o.first.Add(5*time.Second)
		}, notJudged, "the load was over before the failure had its effect"},
		"hung, on a busy machine": {func(o *observation) { acked(o, time.Second, time.Second); o.hung = true }, perfmqWrong, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := judge(told(c.edit))
			require.Equal(t, c.want, r.State, r.Verdict)
			require.Equal(t, c.want == notJudged, strings.HasPrefix(r.Verdict, "not judged: "+c.why), r.Verdict)
			require.Equal(t, c.want == perfmqWrong, mistakes([]row{r}) != nil)
		})
	}
}
