//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// calmSoak is a soak test of an hour with a kill and a stop that perfmq reported as they were.
func calmSoak() *soaked {
	began := time.Unix(1000, 0)
	o := &soaked{title: "Artemis", length: time.Hour, result: &result.Result{}}
	for i, name := range []string{"kill", "stop"} {
		at := began.Add(time.Duration(i+1) * 10 * time.Minute)
		o.events = append(o.events, event{name: name, log: harnessLog{
			first: at, last: at.Add(30 * time.Millisecond), lines: []string{name},
		}})
	}
	r := o.result
	r.Outages = []result.Outage{{
		Time: o.events[0].log.first.Add(20 * time.Millisecond).UnixMicro(), Length: 2_400_000, Recovered: 3_000_000, InDoubt: 6,
	}}
	r.Stalls = []result.Stall{{Side: "both", Time: o.events[1].log.first.UnixMicro(), Length: 20_000_000}}
	r.Total.Producers = &result.Producers{Sent: 1000, Completed: 994, Unconfirmed: 6}
	r.Verification = &result.Verification{Total: result.Verified{
		Expected: 994, Received: 994, Once: 994, UnconfirmedMissing: 6, Duplicates: 2, AfterOutage: 2,
	}}
	for s := range int64(3600) { // the tester grows by 2 MiB an hour
		r.Rows = append(r.Rows, result.Row{
			Elapsed: s * 1_000_000, Time: began.Add(time.Duration(s) * time.Second).UnixMicro(),
			Tester: result.Tester{Memory: uint64(64<<20 + s*(2<<20)/3600)}, //nolint:gosec // small
		})
	}
	return o
}

func TestSoak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*soaked)
		want string // in the only problem; empty for none
	}{
		"as it was":    {func(*soaked) {}, ""},
		"a failed run": {func(o *soaked) { o.status = 3 }, "exit status 3"},
		"two outages":  {func(o *soaked) { o.result.Outages = append(o.result.Outages, result.Outage{}) }, "2 outages, 1 kills"},
		"time-outs while it is stopped": {func(o *soaked) {
			o.events[1].name = "SIGSTOP"
			o.result.Outages = append(o.result.Outages, result.Outage{Time: o.events[1].log.last.Add(10 * time.Second).UnixMicro()})
		}, ""},
		"a late outage":    {func(o *soaked) { o.result.Outages[0].Time += 120_000 }, "nothing begins at kill"},
		"a stop unnoticed": {func(o *soaked) { o.result.Stalls = nil }, "nothing begins at stop"},
		"a slow broker is stopped": {func(o *soaked) {
			o.result.Stalls[0].Time -= 400_000
			for i := range o.result.Rows {
				o.result.Rows[i].Latencies[result.Ack] = &result.Latency{Max: 450_000}
			}
		}, ""},
		"a loss":             {func(o *soaked) { o.result.Verification.Total.Lost = 1 }, "1 lost, 0 left, 0 doubled"},
		"no end":             {func(o *soaked) { o.result.Total.Producers.Sent++ }, "1001 sent, 1000 ended"},
		"left at the broker": {func(o *soaked) { o.left = 3 }, "3 messages are left at the broker, not 0"},
		"stored too few":     {func(o *soaked) { o.lasting, o.left = true, 993 }, "the broker has had 993 messages, not 994"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := calmSoak()
			c.edit(o)
			o.judge()
			if c.want == "" {
				require.Empty(t, o.problems)
				require.Contains(t, o.page(), "agrees with the harness")
				require.Contains(t, o.page(), "memory of perfmq: 64.5 MiB in the second sixth of the load, 65.8 MiB in the last\n")
				return
			}
			require.Len(t, o.problems, 1)
			require.Contains(t, o.problems[0], c.want)
			require.Contains(t, o.page(), "**perfmq is wrong**: "+o.problems[0])
		})
	}
}
