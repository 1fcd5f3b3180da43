package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// traceOf returns the events of a run by message, without the run's number, and by kind.
func traceOf(rep *recorder) (messages map[string]map[string]result.TraceEvent, kinds map[string]int) {
	messages, kinds = map[string]map[string]result.TraceEvent{}, map[string]int{}
	for _, s := range rep.snapshots {
		for _, e := range s.Trace {
			_, id, _ := strings.Cut(e.ID, "-")
			if messages[id] == nil {
				messages[id] = map[string]result.TraceEvent{}
			}
			messages[id][e.Event] = e
			kinds[e.Event]++
			if e.Outcome != "" && e.Outcome != "accepted" {
				kinds[e.Event+" "+e.Outcome]++
			}
		}
	}
	return messages, kinds
}

// Each event has its time: of the schedule, and of a broker that answers after 7 ms and delivers after 30 ms.
func TestTraceTimes(t *testing.T) {
	for _, verify := range []bool{false, true} {
		inBubble(t, fmt.Sprint(verify), func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency, o.DeliveryLatency = 7*time.Millisecond, 30*time.Millisecond })
			s, rep := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Rate, p.Count, p.MaxPending, p.Verify, p.TraceSample = rate("100"), 300, 10, verify, 1
				p.ConsumerWork = load.Work{} // settled at once
			}), nil)
			messages, kinds := traceOf(rep)
			require.Equal(t, map[string]int{"due": 300, "sent": 300, "completed": 300, "received": 300, "settled": 300}, kinds)
			require.Equal(t, &result.Trace{Sample: "1/1", Events: 1500}, s.Trace)
			near := func(want, got int64) {
				t.Helper()
				require.InDelta(t, want, got, 2000)
			}
			for n := range int64(300) {
				m := messages[fmt.Sprintf("0-%d", n)]
				require.Len(t, m, 5, "message %d", n)
				require.Equal(t, s.Start+n*10_000, m["due"].Time)
				near(m["due"].Time, m["sent"].Time)
				near(m["sent"].Time+7_000, m["completed"].Time)
				near(m["sent"].Time+30_000, m["received"].Time)
				require.Equal(t, m["sent"].Time, m["received"].Sent)
				require.Equal(t, m["received"].Time, m["settled"].Time)
				require.Equal(t, "producer-0", m["due"].Worker)
				require.Equal(t, "consumer-0", m["settled"].Worker)
			}
		})
	}
}

// Messages that the broker refuses, swallows or delivers twice, and messages that the consumer does not accept, show it.
func TestTraceFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*mem.Options)
		plan func(*flat)
		want map[string]int
	}{
		{
			"redelivered", func(o *mem.Options) { o.Duplicate = 10 }, nil,
			map[string]int{"sent": 200, "completed": 200, "received": 200, "redelivered": 20, "settled": 220},
		},
		{
			"rejected", func(o *mem.Options) { o.Reject = 10 }, nil,
			map[string]int{"sent": 200, "completed": 180, "rejected": 20, "received": 180, "settled": 180},
		},
		{
			"resent", func(o *mem.Options) { o.Withhold = 10 },
			func(p *flat) {
				p.SendTimeout, p.Resend, p.Producer.Factory.Capabilities.TimesOut = 500*time.Millisecond, true, false
			},
			map[string]int{"sent": 200, "resent": 22, "completed": 200, "received": 222, "settled": 222},
		},
		{
			"unconfirmed", func(o *mem.Options) { o.Withhold = 10 },
			func(p *flat) { p.SendTimeout, p.Producer.Factory.Capabilities.TimesOut = 500*time.Millisecond, false },
			map[string]int{"sent": 200, "completed": 180, "unconfirmed": 20, "received": 200, "settled": 200},
		},
		{
			"rejected by the consumer", nil,
			func(p *flat) { p.ConsumerFail, p.Failing = load.Whole/10, driver.Reject },
			map[string]int{"sent": 200, "completed": 200, "received": 200, "settled": 200, "settled rejected": 20},
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s, rep := run(t, newPlan(broker(t, c.edit).Factory(), func(p *flat) {
				p.Count, p.MaxPending, p.Verify, p.TraceSample = 200, 4, true, 1
				p.Allow.Duplicates = true
				if c.plan != nil {
					c.plan(p)
				}
			}), nil)
			messages, kinds := traceOf(rep)
			require.Equal(t, c.want, kinds)
			require.Len(t, messages, 200)
			require.Zero(t, s.Trace.Dropped)
			for id, m := range messages {
				if e, resent := m["resent"]; resent {
					require.InDelta(t, m["sent"].Time+525_000, e.Time, 30_000, id)
				}
			}
		})
	}
}

// Producers and consumers in processes of their own choose the same messages, with or without verification, and a
// verifying consumer finds them intact.
func TestTraceOfTwoProcesses(t *testing.T) {
	for _, verify := range []bool{false, true} {
		inBubble(t, fmt.Sprint(verify), func(t *testing.T) {
			b := broker(t, nil)
			half := func(role plan.Role) (*stats.Summary, *recorder) {
				return run(t, newPlan(b.Factory(), func(p *flat) {
					p.Role, p.Producers, p.Count, p.TraceSample = role, 3, 30_000, 100
					p.Verify = verify || role == plan.Consumer
				}), nil)
			}
			_, sent := half(plan.Producer)
			s, received := half(plan.Consumer)
			out, kinds := traceOf(sent)
			in, _ := traceOf(received)
			require.Equal(t, slices.Sorted(maps.Keys(out)), slices.Sorted(maps.Keys(in)))
			require.InDelta(t, 300, len(out), 60, "a share of 1/100")
			require.Equal(t, map[string]int{"sent": len(out), "completed": len(out)}, kinds)
			require.Zero(t, s.Verification.Total.Damaged)
		})
	}
}

// A run has a bounded number of events, and the others are counted.
func TestTraceBounded(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		p := newPlan(broker(t, nil).Factory(), func(p *flat) {
			p.Rate, p.Count, p.MaxPending, p.TraceSample = rate("100"), 500, 10, 1
		})
		c, rep := p.config(), new(recorder)
		c.Trace = 1000
		s, err := engine.Run(t.Context(), nil, c, rep)
		require.NoError(t, err)
		_, kinds := traceOf(rep)
		require.Equal(t, &result.Trace{Sample: "1/1", Events: 1000, Dropped: 1500}, s.Trace)
		require.Equal(t, 1000, kinds["due"]+kinds["sent"]+kinds["completed"]+kinds["received"]+kinds["settled"])
	})
}

// A worker keeps a bounded number of events a second, and the others are counted.
func TestTraceDropped(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s, rep := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
			p.Count, p.MaxPending, p.TraceSample = 50_000, 100, 1
		}), nil)
		_, kinds := traceOf(rep)
		events := 0
		for _, n := range kinds {
			events += n
		}
		require.EqualValues(t, events, s.Trace.Events)
		require.NotZero(t, s.Trace.Dropped)
		require.EqualValues(t, 4*50_000, s.Trace.Events+s.Trace.Dropped)
		require.Contains(t, s.Warnings(), fmt.Sprintf(
			"trace.jsonl lacks %d of 200000 events: choose a smaller --trace-sample", s.Trace.Dropped))
	})
}
