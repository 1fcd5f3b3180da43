//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// diskFull is an observation of a full disk: the broker ended itself two seconds later, 50 ms after perfmq noticed it.
func diskFull(o *observation) {
	o.expect, o.ended = expectation{space: true}, o.first.Add(2*time.Second)
	o.said = []string{"it ended itself after 2.0 s, and was started again"}
	o.result.Outages[0].Time = o.ended.Add(-50 * time.Millisecond).UnixMicro()
}

// refusedSome is diskFull with 20 refused messages of the kept queue.
func refusedSome(o *observation) {
	diskFull(o)
	failed(o)
	p, v := kept(o)
	p.Completed, p.Rejected = p.Completed-20, 20
	v.Expected, v.Received, v.Once, o.stored = v.Expected-20, v.Received-20, v.Once-20, o.stored-20
}

// endedRun is refusedSome by a connection's end, which ended the run: nothing was received from the kept queue.
func endedRun(o *observation) {
	refusedSome(o)
	o.early, o.left = true, -1
	*o.result.Verification = result.Verification{}
}

// TestSpace: what a broker whose disk is full may do is told apart from mistakes of perfmq.
func TestSpace(t *testing.T) {
	t.Parallel()
	counts := func(o *observation, count uint64) {
		o.result.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{{
			Destination: "queue://K", Added: &result.Compared{Count: count, Least: 490, Most: 500},
		}}}
	}
	lost := func(o *observation) {
		diskFull(o)
		failed(o)
		_, v := kept(o)
		v.Received, v.Once, v.Lost = 394, 394, 100
		o.stored = 394
	}
	left := func(o *observation) {
		diskFull(o)
		failed(o)
		v := &o.result.Verification.Subscriptions[0].Verified
		v.Received, v.Once, v.Left = 394, 394, 100
	}
	for name, c := range map[string]struct {
		edit    func(*observation)
		verdict string // a regular expression
	}{
		"kept": {diskFull, `^kept; counts agree$`},
		"an outage before it": {func(o *observation) {
			diskFull(o)
			o.result.Outages[0].Time = o.first.Add(-101 * time.Millisecond).UnixMicro()
		}, `wrong.*an outage began 101ms before the disk was filled`},
		"an outage too late": {func(o *observation) {
			diskFull(o)
			o.result.Outages[0].Time = o.ended.Add(101 * time.Millisecond).UnixMicro()
		}, `wrong.*the outage began 101ms after the broker had ended itself`},
		"refused":               {refusedSome, `^kept`},
		"refused, as a success": {func(o *observation) { refusedSome(o); succeeded(o) }, `wrong.*exit status 0 instead of 1`},
		"refused, and delivered": {func(o *observation) {
			refusedSome(o)
			_, v := kept(o)
			v.RefusedArrived, v.Received, o.stored = 1, v.Received+1, o.stored+1
		}, `^promise broken: 1 messages refused, and delivered`},
		"lost": {lost, `^promise broken: 100 confirmed messages lost`},
		"lost, and the broker counts none of them": {func(o *observation) { lost(o); counts(o, 390) }, `^promise broken: 100`},
		"lost, and the broker counts even less": {func(o *observation) {
			lost(o)
			counts(o, 389)
		}, `wrong.*the broker counts 389, not 490 to 500`},
		"lost, but the broker had it":         {func(o *observation) { lost(o); o.stored = 395 }, `wrong.*the broker had 395 messages`},
		"refused, and counted by the broker":  {func(o *observation) { refusedSome(o); counts(o, 520) }, `^kept`},
		"refused, and the broker counts more": {func(o *observation) { refusedSome(o); counts(o, 521) }, `wrong.*the broker counts 521`},
		"a torn message": {func(o *observation) {
			diskFull(o)
			_, v := kept(o)
			v.Foreign = 1
		}, `^promise broken: 1 messages delivered, which differ from all that were sent`},
		"left at the broker": {func(o *observation) {
			left(o)
			o.total, o.left = 494, 100
		}, `^promise broken: 100 messages not delivered in time; counts agree`},
		"left, and not at the broker": {func(o *observation) {
			left(o)
			o.total, o.left = 400, -1
		}, `^promise broken: 100 messages not delivered in time, 94 of which the broker does not have`},
		"ended by an error":               {func(o *observation) { endedRun(o); o.stored = 470 }, `^kept`},
		"ended by an error, as a success": {func(o *observation) { endedRun(o); succeeded(o) }, `wrong.*exit status 0 instead of 1`},
		"ended by an error, and messages are gone": {func(o *observation) {
			endedRun(o)
			o.stored = 400
		}, `^promise broken: 70 of 470 confirmed messages in the kept queue are gone`},
		"ended by an error, and there are too many": {func(o *observation) {
			endedRun(o)
			o.stored = 501
		}, `wrong.*the broker had 501 messages, 470 were confirmed, 10 in doubt and 20 refused`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := judge(told(c.edit))
			require.Regexp(t, c.verdict, r.Verdict)
			require.Equal(t, strings.Contains(c.verdict, "wrong"), mistakes([]row{r}) != nil)
		})
	}
	require.Equal(t, "it ended itself after 2.0 s, and was started again; 20 messages refused; an outage of 2.4 s from "+
		"+1.9 s on, full rate 3.0 s after the beginning of the last", judge(told(refusedSome)).Observed)
}

// TestStart: a row of a start with many messages has its times.
func TestStart(t *testing.T) {
	t.Parallel()
	r := judge(told(func(o *observation) {
		o.expect.starts = true
		out := &o.result.Outages[0]
		out.Reconnected, out.Confirmed, out.Received = 2_300_000, 2_400_000, 2_500_000
	}))
	require.Equal(t, "an outage of 2.4 s, from +20 ms, all connected again after 2.3 s, first confirmation after 2.4 s, "+
		"first delivery after 2.5 s, full rate after 3 s", r.Observed)
	r = judge(told(func(o *observation) { o.expect.starts = true }))
	require.Contains(t, r.Observed, "from +20 ms, not all connected again, no confirmation, no delivery, full rate")
}
