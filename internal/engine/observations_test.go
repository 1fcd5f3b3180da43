package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestObservations: each finding about the figures of a run appears where it is known to be true, and in no other run.
func TestObservations(t *testing.T) {
	work := func(text string) load.Work {
		w, err := load.ParseWork(text)
		require.NoError(t, err)
		return w
	}
	slowConsumer := func(f *driver.Factory) {
		f.Open = openWith(f.Open, func(spec driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			deliver(d)
			if strings.HasSuffix(spec.Name, "-1") {
				<-time.After(500 * time.Millisecond)
			}
		})
	}
	for _, tt := range []struct {
		name    string
		options func(*mem.Options)
		factory func(*driver.Factory)
		edit    func(*flat)
		stall   time.Duration
		want    []string // how the texts begin, in order
	}{
		{name: "at a rate", edit: func(p *flat) { p.Rate, p.MaxPending = rate("1000"), 100 }},
		{name: "closed loop", edit: func(p *flat) { p.MaxPending, p.Duration = 10, 4*time.Second }},
		{name: "many workers", edit: func(p *flat) { p.Rate, p.MaxPending, p.Producers, p.Consumers = rate("1000"), 100, 6, 5 }},
		{
			name: "topic", edit: func(p *flat) {
				p.Rate, p.MaxPending, p.Consumers = rate("500"), 100, 3
				p.Destinations = []driver.Destination{{Kind: driver.Topic, Name: "T"}}
			},
		},
		{
			name: "slow deliveries that keep up", options: func(o *mem.Options) { o.DeliveryLatency = 8 * time.Millisecond },
			edit: func(p *flat) { p.Rate, p.MaxPending = rate("1000"), 100 },
		},
		{
			name: "working consumers that keep up", edit: func(p *flat) { p.Rate, p.MaxPending, p.ConsumerWork = rate("100"), 100, work("5ms") },
		},
		{
			name: "consumers do not keep up", edit: func(p *flat) { p.Rate, p.MaxPending, p.ConsumerWork = rate("200"), 100, work("10ms") },
			want: []string{"transfer p99 is ", "received is below completed: the backlog grew by 100 msg/s"},
		},
		{
			name: "messages that go elsewhere", options: func(o *mem.Options) { o.Lose = 5 },
			edit: func(p *flat) { p.Rate, p.MaxPending = rate("1000"), 100 },
			want: []string{"received is below completed by "},
		},
		{
			name: "one of three consumers is slow", factory: slowConsumer, edit: func(p *flat) {
				p.Rate, p.MaxPending, p.Consumers, p.Credit = rate("300"), 100, 3, 1
			},
			want: []string{"one consumer got 1% of what the others got: consumer-1 "},
		},
		{
			name: "the rate is missed", options: func(o *mem.Options) { o.Latency = 10 * time.Millisecond },
			edit: func(p *flat) { p.Rate = rate("1000") },
			want: []string{"the rate was missed by ", "response p99 is "},
		},
		{
			name: "one stall", edit: func(p *flat) { p.Rate, p.MaxPending = rate("1000"), 10000 }, stall: 1500 * time.Millisecond,
			want: []string{"the broker stood still once for 1.5 s: nothing was confirmed or received from 3.0 s ("},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker(t, func(o *mem.Options) {
					o.Latency = time.Millisecond
					if tt.options != nil {
						tt.options(o)
					}
				})
				f := b.Factory()
				if tt.factory != nil {
					tt.factory(&f)
				}
				if tt.stall > 0 {
					stallsAt(t, b, tt.stall, 3*time.Second)
				}
				s, _ := run(t, newPlan(f, func(p *flat) {
					p.Duration, p.StallThreshold, p.DrainTimeout = 10*time.Second, time.Second, time.Minute
					tt.edit(p)
				}), nil)
				found := report.Observations(s)
				var texts []string
				for _, f := range found {
					texts = append(texts, f.Text)
					require.False(t, f.Failure)
					require.Positive(t, f.Count)
				}
				require.Len(t, texts, len(tt.want), "%q", texts)
				for i, want := range tt.want {
					require.True(t, strings.HasPrefix(texts[i], want), "%q does not begin with %q", texts[i], want)
				}
			})
		})
	}
}

// Stalls at regular times are told with their period.
func TestObservedPeriod(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &stats.Summary{Start: start}
	for i := range 5 {
		s.Stalls.List = append(s.Stalls.List, stats.Stall{Side: stats.SendSide, Start: time.Duration(10*i+4) * time.Second, Length: 2 * time.Second})
	}
	f := report.Observations(s)
	require.Len(t, f, 1)
	require.Equal(t, "stall", f[0].Kind)
	require.Equal(t, "send", f[0].Subject)
	require.EqualValues(t, 5, f[0].Count)
	require.Equal(t, "the broker did not answer 5 times, for 2 s at most: no message was confirmed "+
		"at 4.000 s for 2.000 s, at 14.000 s for 2.000 s, at 24.000 s for 2.000 s and 2 times more; every 10 s", f[0].Text)
}

// TestObservedStallsOfParts: the stalls of the run come first, then those of each broker and group, by name.
func TestObservedStallsOfParts(t *testing.T) {
	s := &stats.Summary{Start: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	add := func(side stats.Side, group, broker string, at int) {
		s.Stalls.List = append(s.Stalls.List, stats.Stall{
			Side: side, Group: group, Broker: broker, Start: time.Duration(at) * time.Second, Length: 2 * time.Second,
		})
	}
	add(stats.SendSide, "g", "", 1)
	add(stats.SendSide, "g", "b", 5)
	add(stats.ReceiveSide, "", "b", 9)
	add(stats.BothSides, "", "b", 13)
	add(stats.SendSide, "", "", 17)
	var got []string
	for _, f := range report.Observations(s) {
		require.EqualValues(t, 1, f.Count)
		got = append(got, f.Subject+": "+f.Text)
	}
	require.Equal(t, []string{
		"send: the broker did not answer once for 2 s: no message was confirmed from 17.0 s (12:00:17) on",
		"send, group g: the broker did not answer group g once for 2 s: no message was confirmed from 1.0 s (12:00:01) on",
		"send, group g, broker b: broker b did not answer group g once for 2 s: no message was confirmed from 5.0 s (12:00:05) on",
		"both, broker b: broker b stalled once for 2 s: nothing was confirmed or received from 13.0 s (12:00:13) on",
		"receive, broker b: broker b did not deliver once for 2 s: nothing was received from 9.0 s (12:00:09) on",
	}, got)
}

// Messages of a step that only sends wait for the step that receives them, and not because the consumers are slow.
func TestPlannedQueueing(t *testing.T) {
	ack, transfer := result.NewLatency(), result.NewLatency()
	for range 1000 {
		ack.Record(time.Millisecond)
		transfer.Record(5 * time.Second)
	}
	s := &stats.Summary{Average: stats.Average{Span: 10 * time.Second}, Latencies: result.Latencies{result.Ack: ack, result.Transfer: transfer}}
	s.Steps = []stats.StepSummary{{Sends: true, Receives: true}, {Receives: true}}
	require.Len(t, report.Observations(s), 1)
	s.Steps[0].Receives = false
	require.Empty(t, report.Observations(s))
}
