package engine_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// findingsOf carries a plan out and returns the findings in its result.
func findingsOf(t *testing.T, c *engine.Config) []result.Finding {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	r, err := report.NewResult(dir, report.ResultOptions{Head: result.Head{Plan: json.RawMessage(`{}`)}})
	require.NoError(t, err)
	fan := report.NewFan(r)
	_, err = engine.Run(t.Context(), nil, c, fan)
	require.NoError(t, err)
	require.NoError(t, fan.Close())
	got, err := result.Read(dir)
	require.NoError(t, err)
	return got.Findings
}

// TestFindings: each kind of finding that a broker can cause is in the result of a run in which it was told to do just
// that, with its count, and in no other.
func TestFindings(t *testing.T) {
	work := func(text string) load.Work {
		w, err := load.ParseWork(text)
		require.NoError(t, err)
		return w
	}
	every := func(n int, change func(*driver.Delivery)) func(driver.ConsumerSpec, *driver.Delivery) {
		seen := 0
		return func(_ driver.ConsumerSpec, d *driver.Delivery) {
			if seen++; seen%n == 0 {
				change(d)
			}
		}
	}
	answers := func(n int, as driver.Outcome) func(driver.ProducerSpec, driver.Outcome) driver.Outcome {
		seen := 0
		return func(_ driver.ProducerSpec, o driver.Outcome) driver.Outcome {
			if seen++; seen%n == 0 {
				return as
			}
			return o
		}
	}
	type kinds = map[string]uint64 // 0: any number
	later := func(d time.Duration) func(*driver.Delivery) {
		return func(m *driver.Delivery) { m.Time += d.Microseconds() }
	}
	long := func(edit func(*flat)) func(*flat) { // enough for rates and latencies to be compared
		return func(p *flat) { p.Count, p.Duration = 0, 5*time.Second; edit(p) }
	}
	documented, err := os.ReadFile("../../docs/result-reference.md")
	require.NoError(t, err)
	for _, tt := range []struct {
		name     string
		options  func(*mem.Options)
		delivery func(driver.ConsumerSpec, *driver.Delivery)
		outcome  func(driver.ProducerSpec, driver.Outcome) driver.Outcome
		before   int // messages of another run that are there already
		edit     func(*flat)
		stall    time.Duration
		want     kinds
	}{
		{name: "nothing, counted by the broker", edit: func(p *flat) { p.BrokerCount = true }},
		{name: "nothing, at a rate", edit: long(func(p *flat) { p.Rate, p.MaxPending, p.StallThreshold = rate("200"), 100, time.Second })},
		{
			name: "nothing, closed loop of many", options: func(o *mem.Options) { o.Latency = 10 * time.Millisecond },
			edit: long(func(p *flat) { p.MaxPending, p.Producers, p.Consumers, p.StallThreshold = 10, 4, 3, time.Second }),
		},

		{name: "nothing, on a topic", edit: long(func(p *flat) {
			p.Rate, p.MaxPending, p.Consumers, p.Destinations = rate("500"), 100, 3, destinations(driver.Topic, 1)
		})},
		{name: "nothing, working consumers that keep up", edit: long(func(p *flat) {
			p.Rate, p.MaxPending, p.ConsumerWork = rate("100"), 100, work("5ms")
		})},
		{
			name: "messages that go elsewhere", options: func(o *mem.Options) { o.Lose = 5 },
			edit: long(func(p *flat) { p.Rate, p.MaxPending = rate("300"), 100 }), want: kinds{"missing": 300},
		},

		{name: "foreign", before: 7, want: kinds{"foreign": 7}},
		{name: "times to come", delivery: every(100, later(time.Hour)), want: kinds{"negative-transfer": 10}},
		{name: "times long ago", delivery: every(100, later(-25*time.Hour)), want: kinds{"out-of-range": 10}},
		{
			name: "ages to come", want: kinds{"negative-age": 10},
			delivery: every(100, func(d *driver.Delivery) { d.Stored = d.Time + time.Hour.Microseconds() }),
		},
		{
			name: "counted otherwise by the broker", edit: func(p *flat) {
				others := &teller{answer: func(asked int) (driver.DestinationCount, error) {
					if asked == 1 {
						return tells(0, 50, 40), nil
					}
					return tells(3, 1053, 1038), nil
				}}
				p.BrokerCount, p.Producer.Inspector, p.Consumer.Inspector = true, others, others
			}, want: kinds{"broker-added": 3, "broker-acknowledged": 2},
		},

		{
			name: "verified, without answers", options: func(o *mem.Options) { o.Withhold = 250 }, edit: func(p *flat) { verified(p); p.MaxPending = 10 },
			want: kinds{"unconfirmed": 4, "error": 1, "unconfirmed-arrived": 4},
		},
		{
			name: "verified, refused but there", outcome: answers(100, driver.Outcome{State: driver.Rejected, Class: driver.ClassFull}), edit: verified,
			want: kinds{"rejected": 10, "refused-arrived": 10},
		},
		{
			name: "verified, rolled back but there", outcome: answers(100, driver.Outcome{State: driver.Accepted, Withheld: true}), edit: verified,
			want: kinds{"withheld-arrived": 10},
		},
		{
			name: "verified, consumers that do not come to the end", edit: func(p *flat) {
				verified(p)
				p.MaxPending, p.ConsumerWork, p.Credit = 10, work("10ms"), 1
			}, want: kinds{"left": 0},
		},

		{
			name: "the rate is missed", options: func(o *mem.Options) { o.Latency = 10 * time.Millisecond },
			edit: long(func(p *flat) { p.Rate = rate("1000") }), want: kinds{"rate-missed": 0},
		},
		{
			name: "a stall", stall: 1500 * time.Millisecond,
			edit: long(func(p *flat) { p.Rate, p.MaxPending, p.StallThreshold = rate("200"), 2000, time.Second }), want: kinds{"stall": 1},
		},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				o.Latency = time.Millisecond
				if tt.options != nil {
					tt.options(o)
				}
			})
			if tt.before > 0 {
				findingsOf(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Producer, uint64(tt.before) }).config()) //nolint:gosec // small
			}
			if tt.stall > 0 {
				stallsAt(t, b, tt.stall, 3*time.Second)
			}
			h := new(hooks)
			if tt.delivery != nil {
				h.delivery = func(spec driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
					tt.delivery(spec, d)
					deliver(d)
				}
			}
			if tt.outcome != nil {
				h.done = func(spec driver.ProducerSpec, o driver.Outcome, end func(driver.Outcome)) { end(tt.outcome(spec, o)) }
			}
			found := kinds{}
			for _, f := range findingsOf(t, newPlan(h.factory(b.Factory()), func(p *flat) {
				p.Count, p.MaxPending = 1000, 1
				if tt.edit != nil {
					tt.edit(p)
				}
			}).config()) {
				found[f.Kind] += f.Count
				require.Contains(t, string(documented), "`"+f.Kind+"`", "docs/result-reference.md lists the kinds")
				require.Positive(t, f.Count)
				require.NotEmpty(t, f.Text)
				if tt.want[f.Kind] > 0 {
					require.InEpsilon(t, tt.want[f.Kind], f.Count, 0.01, f.Text)
				}
			}
			require.ElementsMatch(t, slices.Collect(maps.Keys(tt.want)), slices.Collect(maps.Keys(found)), "%v", found)
		})
	}
}

// TestFindingOfUnwatched: a queue without consumers, beside one that has them.
func TestFindingOfUnwatched(t *testing.T) {
	for _, destinations := range [][]driver.Destination{{{Name: "TEST"}}, {{Name: "TEST"}, {Name: "OTHER"}}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), true)
			s.step("load", nil, s.senders("senders", func(g *plan.Group) { g.Count, g.Destinations = 100, destinations }), s.readers("readers", nil))
			found := findingsOf(t, s.config())
			if len(destinations) == 1 {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, "unwatched", found[0].Kind)
			require.Equal(t, "queue://OTHER", found[0].Subject)
		})
	}
}
