//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// ownOutage adds an outage at a moment after the failure, and one at which the broker closed connections by its log.
func ownOutage(at, closed time.Duration) func(*observation) {
	return func(o *observation) {
		o.result.Outages = append(o.result.Outages, result.Outage{Time: o.first.Add(at).UnixMicro(), Length: 100_000})
		o.closed = []time.Time{o.first.Add(closed)}
	}
}

// withSlave adds what a slave had, when 300 messages were confirmed and 5 in doubt before the master went, and the others
// when it was back.
func withSlave(n int64, promised bool) func(*observation) {
	return func(o *observation) {
		o.copied, o.expect.copied = &n, promised
		for i, completed := range []uint64{200, 100, 0, 680} {
			r := result.Row{Time: o.first.Add(time.Duration(4*i-4) * time.Second).UnixMicro()}
			r.Producers = &result.Producers{Completed: completed, Unconfirmed: uint64(i) * 5 % 10}
			o.result.Rows = append(o.result.Rows, r)
		}
	}
}

// withoutSlave is an observation of a master whose slave is dead: 10 messages of each queue are stored and in doubt.
func withoutSlave(o *observation) {
	failed(o)
	o.expect, o.stored, o.result.Outages = expectation{doubted: true}, 500, nil
	for i := range o.result.Verification.Subscriptions {
		v := &o.result.Verification.Subscriptions[i].Verified
		*v = result.Verified{Expected: 490, Received: 500, Once: 500, UnconfirmedArrived: 10}
	}
	o.result.Stalls = []result.Stall{{Side: "send", Time: o.last.Add(50 * time.Millisecond).UnixMicro(), Length: 9_000_000}}
}

// TestJudgeReplicas: outages of the broker's own making are its own, and a slave is asked for what it has.
func TestJudgeReplicas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit    func(*observation)
		verdict string // a regular expression
	}{
		"a second outage, of the broker": {
			ownOutage(3*time.Second, 3050*time.Millisecond), `^promise broken: more outages \(1\), because of an error of the broker's`,
		},
		"a second outage, of which the broker does not know": {
			ownOutage(3*time.Second, 4*time.Second), `wrong.*2 outages instead of one`,
		},
		"none but that of the broker": {func(o *observation) {
			o.result.Outages = nil
			ownOutage(3*time.Second, 3*time.Second)(o)
		}, `wrong.*0 outages instead of one`},
		"the broker closed connections at the failure, too": {
			func(o *observation) { o.closed = []time.Time{o.first.Add(20 * time.Millisecond)} }, `^kept`,
		},
		"stored and not confirmed": {withoutSlave, `^kept`},
		"stored and not confirmed, as a success": {func(o *observation) {
			withoutSlave(o)
			o.status, o.result.Outcome = 0, result.Outcome{Success: true}
		}, `wrong.*exit status 0 instead of 1`},
		"not stored": {func(o *observation) {
			withoutSlave(o)
			_, v := kept(o)
			v.UnconfirmedArrived, v.UnconfirmedMissing, v.Received, v.Once = 9, 1, 499, 499
			o.stored = 499
		}, `^promise broken: 1 messages not stored`},
		"confirmed without a slave": {func(o *observation) {
			withoutSlave(o)
			o.result.Rows = []result.Row{
				{Time: o.last.Add(time.Second).UnixMicro(), Length: 1_000_000}, // partly before
				{Time: o.last.Add(2 * time.Second).UnixMicro(), Length: 1_000_000},
			}
			o.result.Rows[0].Producers = &result.Producers{Completed: 50}
			o.result.Rows[1].Producers = &result.Producers{Completed: 40}
		}, `^promise broken: 40 messages confirmed that no slave had`},
		"no stall": {func(o *observation) { withoutSlave(o); o.result.Stalls = nil }, `wrong.*no stall, where no message was confirmed`},
		"a stall that began too late": {func(o *observation) {
			withoutSlave(o)
			o.result.Stalls[0].Time += 200_000
		}, `wrong.*it began 250ms from the harness's log`},
		"an outage, where none was": {func(o *observation) {
			withoutSlave(o)
			o.result.Outages = []result.Outage{{}}
		}, `wrong.*1 outages, where no connection broke`},
		"in doubt by time-outs after the outage": {func(o *observation) { o.result.Outages[0].InDoubt = 19 }, `^kept`},
		"in doubt by time-outs after the outage, as a failure": {func(o *observation) {
			failed(o)
			o.result.Outages[0].InDoubt = 19
		}, `wrong.*exit status 1 instead of 0`},
		"the slave has all":                  {withSlave(303, true), `^kept`},
		"the slave lacks one":                {withSlave(299, true), `^promise broken: the slave lacked 1 confirmed messages`},
		"the slave lacks one, and may":       {withSlave(299, false), `^kept`},
		"the slave has more than there were": {withSlave(306, true), `wrong.*the slave had 306 messages, of which 300 were confirmed and 5`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Regexp(t, c.verdict, judge(told(c.edit)).Verdict)
		})
	}
	require.Equal(t, "an outage of 2.4 s, from +20 ms, full rate after 3 s; meanwhile the slave had 303 messages, and 300 had "+
		"been confirmed", judge(told(withSlave(303, true))).Cells[0])
}

// TestRabbitClosed: the lines by which a node says that it closed a connection because of an error.
func TestRabbitClosed(t *testing.T) {
	t.Parallel()
	const log = "2026-11-23 12:54:00.354376+00:00 [warning] <0.1138.0> STOMP connection 127.0.0.1:1 -> 127.0.0.1:2 terminated " +
		"with reason {function_clause,\n" +
		"\x1b[38;5;160m2026-11-23 12:54:12.052252+00:00 [error] <0.893.0> closing AMQP connection <0.893.0> (127.0.0.1:1 -> 127.0.0.1:2):\n" +
		"2026-11-23 12:54:20.354376+00:00 [warning] <0.1139.0> STOMP connection 127.0.0.1:1 -> 127.0.0.1:2 terminated with reason " +
		"{noproc,\n" +
		"2026-11-23 12:54:33.589952+00:00 [info] <0.1311.0> closing STOMP connection <0.1311.0> (127.0.0.1:1 -> 127.0.0.1:2)\n" +
		"2026-11-23 12:54:33.652842+00:00 [info] <0.1399.0> closing AMQP connection <0.1399.0> (127.0.0.1:1 -> 127.0.0.1:2)\n"
	day := time.Date(2026, 11, 23, 12, 54, 0, 0, time.UTC)
	for protocol, want := range map[string][]time.Duration{
		"stomp": {354376 * time.Microsecond, 20354376 * time.Microsecond}, "amqp": {12052252 * time.Microsecond},
	} {
		var got []time.Duration
		for _, at := range rabbitClosed(log, protocol) {
			got = append(got, at.Sub(day))
		}
		require.Equal(t, want, got, protocol)
	}
}
