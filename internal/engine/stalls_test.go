package engine_test

import (
	"testing"
	"testing/synctest"
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

// stallsAt lets a broker stall at moments of the run.
func stallsAt(t *testing.T, b *mem.Broker, length time.Duration, at ...time.Duration) {
	t.Helper()
	for _, moment := range at {
		timer := time.AfterFunc(moment, func() { b.Stall(length) })
		t.Cleanup(func() { timer.Stop() })
	}
}

// TestStalls: a broker stalls at given times, and the run reports these stalls.
func TestStalls(t *testing.T) {
	type stall struct {
		side          string
		start, length time.Duration
	}
	both := func(start, length time.Duration) []stall { return []stall{{stats.BothSides, start, length}} }
	s, ms := time.Second, time.Millisecond
	for _, tt := range []struct {
		name   string
		edit   func(*flat)
		length time.Duration
		at     []time.Duration
		want   []stall
		// mayDeliver: all that was sent may have been received before.
		mayDeliver bool
	}{
		{name: "one", edit: steady, length: 2500 * ms, at: []time.Duration{3 * s}, want: both(3*s, 2500*ms)},
		{name: "too short", edit: steady, length: 900 * ms, at: []time.Duration{3 * s}},
		{
			name: "shorter threshold", length: 900 * ms, at: []time.Duration{3 * s}, want: both(3*s, 900*ms),
			edit: func(p *flat) { steady(p); p.StallThreshold = 800 * ms },
		},
		{name: "not looked for", length: 5 * s, at: []time.Duration{3 * s}, edit: func(p *flat) { steady(p); p.StallThreshold = 0 }},
		{
			name: "regular", edit: steady, length: 1200 * ms, at: []time.Duration{1500 * ms, 4500 * ms, 7500 * ms},
			want: []stall{{stats.BothSides, 1500 * ms, 1200 * ms}, {stats.BothSides, 4500 * ms, 1200 * ms}, {stats.BothSides, 7500 * ms, 1200 * ms}},
		},
		{
			name: "closed loop", mayDeliver: true, length: 1500 * ms, at: []time.Duration{2 * s}, want: both(2*s, 1500*ms),
			edit: func(p *flat) { p.Duration, p.ConsumerRate = 6*s, 0 },
		},
		{
			name: "nothing to do in it", edit: func(p *flat) { p.Rate, p.Duration = rate("0.2"), 12*s }, length: 3 * s, at: []time.Duration{s},
		},
		{
			name: "a message comes within it", edit: func(p *flat) { p.Rate, p.Duration = rate("0.2"), 12*s },
			length: 4 * s, at: []time.Duration{3 * s}, want: both(5*s, 2*s),
		},
		{name: "in the warm-up", edit: func(p *flat) { steady(p); p.Warmup = 5 * s }, length: 1500 * ms, at: []time.Duration{2 * s}},
		{name: "slow consumers", edit: func(p *flat) {
			steady(p)
			p.ConsumerWork, _ = load.ParseWork("2s")
			p.Duration, p.Count = 8*s, 3
		}},
		{
			name: "transactions that fill slowly",
			edit: func(p *flat) { steady(p); p.CommitInterval, p.MaxPending, p.Duration = 3000, 5000, 7*s },
		},
		{
			name: "commits", length: 1500 * ms, at: []time.Duration{2 * s}, want: []stall{{stats.SendSide, 2 * s, 1500 * ms}},
			mayDeliver: true, edit: func(p *flat) { steady(p); p.CommitInterval = 1 },
		},
		{name: "until the drain", edit: steady, length: 3 * s, at: []time.Duration{8 * s}, want: both(8*s, 3*s)},
		{name: "without end", mayDeliver: true, edit: steady, length: time.Hour, at: []time.Duration{4 * s}, want: both(4*s, loadTime+drainTimeout+2*s-4*s)},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = time.Millisecond })
			p := newPlan(b.Factory(), func(p *flat) {
				p.StallThreshold = s
				tt.edit(p)
			})
			stallsAt(t, b, tt.length, tt.at...)
			sum, reported := run(t, p, nil)
			var found []result.Stall
			for _, stall := range sum.Stalls {
				if !stall.Warmup {
					found = append(found, stall)
				}
			}
			require.Len(t, found, len(tt.want), "%v", found)
			var longest time.Duration
			for i, want := range tt.want {
				if !tt.mayDeliver {
					require.Equal(t, want.side, found[i].Side)
				}
				require.InDelta(t, want.start.Microseconds(), found[i].Elapsed, 15_000)
				require.InDelta(t, want.length.Microseconds(), found[i].Length, 15_000)
				longest = max(longest, time.Duration(found[i].Length)*time.Microsecond)
			}
			require.InDelta(t, len(tt.want), sum.Values["stall.count"], 0)
			require.InDelta(t, longest.Microseconds(), sum.Values["stall.max"], 0)
			for _, part := range reported.snapshots[len(reported.snapshots)-1].Stalls { // one of both sides is one of each
				require.True(t, part.Whole)
				if !tt.mayDeliver {
					require.EqualValues(t, len(tt.want), part.Count[stats.Measure])
				}
			}
		})
	}
}

// If consumers do not get messages for a while, though there are some, this is a stall of their side alone. A message that
// its producer has held back, such as RocketMQ's transactions that are left open, tells of no stall when it comes.
func TestStallOfDeliveries(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := broker(t, nil).Factory()
			n := 0
			f = delivering(f, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
				if n++; n == 300 {
					<-time.After(1700 * time.Millisecond)
					d.Deferred = deferred
				}
				deliver(d)
				d.Deferred = false
			})
			s, _ := run(t, newPlan(f, steady, func(p *flat) {
				p.StallThreshold = time.Second
				p.Plan.Thresholds = demands(t, "stall.count == 1", "stall.max < 2s", "stall.max > 1600ms")
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			if deferred {
				require.Empty(t, s.Stalls)
				return
			}
			require.Len(t, s.Stalls, 1)
			require.Equal(t, stats.ReceiveSide, s.Stalls[0].Side)
			require.InDelta(t, 2_990_000, s.Stalls[0].Elapsed, 15_000)
			require.InDelta(t, 1_700_000, s.Stalls[0].Length, 15_000)
			for _, o := range s.Thresholds {
				require.True(t, o.Kept, o.String())
			}
		})
	}
}

// TestStallsOfParts: a stall of one of two brokers, or of one of several groups at a broker, is found, and named.
func TestStallsOfParts(t *testing.T) {
	const s = time.Second
	type stall struct {
		side          string
		group, broker string
		start, length time.Duration
	}
	for _, tt := range []struct {
		name string
		// stalled are the brokers that stall from 3 s on, and for how long; held is the queue that alone gets no answers.
		stalled map[string]time.Duration
		held    string
		groups  func(a, b *scenario) []*plan.Group
		want    []stall
		figures map[string]float64 // by group: stall.max in seconds
	}{
		{
			name: "one of two brokers", stalled: map[string]time.Duration{"b": 4 * s},
			groups: func(a, b *scenario) []*plan.Group {
				return []*plan.Group{
					a.senders("to-a", paced("100")), a.readers("from-a", nil), b.senders("to-b", paced("100")), b.readers("from-b", nil),
				}
			},
			want:    []stall{{stats.BothSides, "", "b", 3 * s, 4 * s}},
			figures: map[string]float64{"to-a": 0, "from-a": 0, "to-b": 4, "from-b": 4},
		},
		{
			name: "both, one for longer", stalled: map[string]time.Duration{"a": 2 * s, "b": 6 * s},
			groups: func(a, b *scenario) []*plan.Group {
				return []*plan.Group{a.senders("to-a", paced("100")), b.senders("to-b", paced("100"))}
			},
			want:    []stall{{stats.SendSide, "", "", 3 * s, 2 * s}, {stats.SendSide, "to-b", "b", 3 * s, 6 * s}},
			figures: map[string]float64{"to-a": 2, "to-b": 6},
		},
		{
			name: "a broker without consumers", stalled: map[string]time.Duration{"b": 4 * s},
			groups: func(a, b *scenario) []*plan.Group {
				return []*plan.Group{a.senders("to-a", paced("100")), a.readers("from-a", nil), b.senders("to-b", paced("100"))}
			},
			want:    []stall{{stats.SendSide, "to-b", "b", 3 * s, 4 * s}},
			figures: map[string]float64{"to-a": 0, "from-a": 0, "to-b": 4},
		},
		{
			name: "one of two groups at a broker", held: "B",
			groups: func(a, _ *scenario) []*plan.Group {
				return []*plan.Group{a.senders("free", paced("100")), a.senders("held", to("B", paced("100")))}
			},
			want:    []stall{{stats.SendSide, "held", "", 3 * s, 4 * s}},
			figures: map[string]float64{"free": 0, "held": 4},
		},
		{
			name: "groups with nothing to do",
			groups: func(a, b *scenario) []*plan.Group {
				return []*plan.Group{a.senders("to-a", paced("100")), b.senders("to-b", paced("0.2")), b.readers("from-b", nil)}
			},
			figures: map[string]float64{"to-a": 0, "to-b": 0, "from-b": 0},
		},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			brokers := map[string]*mem.Broker{}
			at := map[string]*scenario{}
			for _, name := range []string{"a", "b"} {
				brokers[name] = broker(t, func(o *mem.Options) { o.Latency = time.Millisecond })
				f := brokers[name].Factory()
				if tt.held != "" {
					f = heldUp(f, tt.held, 3*s, 4*s)
				}
				at[name] = newScenario(f, false)
				at[name].endpoint = endpoint(f, name)
				at[name].endpoint.Site = name
			}
			p := at["a"].plan
			p.StallThreshold = s
			at["a"].others = append(at["a"].others, at["b"].endpoint)
			at["a"].step("only", lasting(12*s), tt.groups(at["a"], at["b"])...)
			for name, length := range tt.stalled {
				stallsAt(t, brokers[name], length, 3*s)
			}
			for _, g := range p.Steps[0].Groups {
				demand := "group." + g.Name + ".stall.count == 0"
				if tt.figures[g.Name] > 0 {
					demand = "group." + g.Name + ".stall.count == 1"
				}
				p.Thresholds = append(p.Thresholds, demands(t, demand)...)
			}
			rep := new(recorder)
			sum, err := engine.Run(t.Context(), nil, at["a"].config(), rep)
			require.NoError(t, err)
			require.True(t, sum.Outcome.Success, sum.Problems())
			require.Len(t, sum.Stalls, len(tt.want), "%+v", sum.Stalls)
			for i, want := range tt.want {
				got := sum.Stalls[i]
				start, length := time.Duration(got.Elapsed)*time.Microsecond, time.Duration(got.Length)*time.Microsecond
				require.Equal(t, want, stall{got.Side, got.Group, got.Broker, start.Round(s / 4), length.Round(s / 4)})
			}
			for _, o := range sum.Thresholds {
				require.True(t, o.Kept, o.String())
			}
			for _, g := range sum.Groups {
				require.InDelta(t, 1e6*tt.figures[g.Name], sum.Values["group."+g.Name+".stall.max"], 0.15e6, g.Name)
			}
			for _, part := range rep.snapshots[len(rep.snapshots)-1].Stalls {
				if part.Group != "" && !part.Whole {
					require.InDelta(t, tt.figures[part.Group], part.Length[stats.Measure].Seconds(), 0.15, part.Group)
					require.NotEmpty(t, part.Broker)
				}
			}
		})
	}
}

// TestStallOfOneHost: a stall of one of the hosts of a URL is found, and named.
func TestStallOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := broker(t, func(o *mem.Options) { o.Latency = time.Millisecond }).Factory()
		f.Hosts = nil
		f = heldUp(f, "B", 3*time.Second, 4*time.Second)
		p := newPlan(f, func(p *flat) {
			p.Role, p.Rate, p.MaxPending, p.Duration, p.StallThreshold = plan.Producer, rate("200"), 10, 12*time.Second, time.Second
			p.Destinations = []driver.Destination{{Name: "A"}, {Name: "B"}}
			p.Producer.Hosts = []string{"host-of-A", "host-of-B"}
		})
		rep := new(recorder)
		s, err := carryOut(t.Context(), nil, p, rep)
		require.NoError(t, err)
		require.True(t, s.Outcome.Success, s.Problems())
		require.Len(t, s.Stalls, 1)
		require.Equal(t, "host-of-B", s.Stalls[0].Broker)
		require.InDelta(t, 4_000_000, s.Stalls[0].Length, 200_000)
		for _, part := range rep.snapshots[len(rep.snapshots)-1].Stalls {
			require.Equal(t, part.Broker == "host-of-B", part.Count[stats.Measure] == 1, "%+v", part)
		}
	})
}

// TestNamesOfParts: each part has names of its own: a broker or host without a group, a group with its planned broker,
// whatever the hosts of its workers, at first and later.
func TestNamesOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := heldUp(broker(t, nil).Factory(), "B", 3*time.Second, 4*time.Second)
		f.Hosts = nil
		s := newScenario(f, false)
		s.endpoint.Hosts = []string{"host-of-TEST", "host-of-B"}
		s.plan.StallThreshold = time.Second
		s.step("only", lasting(5*time.Second), s.senders("one", paced("100")), s.senders("other", to("B", paced("100"))))
		rep := new(recorder)
		_, err := engine.Run(t.Context(), nil, s.config(), rep)
		require.NoError(t, err)
		var names []string
		for _, part := range rep.snapshots[len(rep.snapshots)-1].Stalls {
			names = append(names, part.Group+"@"+part.Broker)
		}
		require.ElementsMatch(t, []string{"@", "@host-of-TEST", "@host-of-B", "one@main", "other@main"}, names)
	})
}

// heldUp lets the answers for one queue come late: all that would come in a time come at its end.
func heldUp(f driver.Factory, queue string, from, length time.Duration) driver.Factory {
	until := time.Now().Add(from + length)
	return (&hooks{
		done: func(spec driver.ProducerSpec, o driver.Outcome, end func(driver.Outcome)) {
			if wait := time.Until(until); spec.Destination.Name == queue && wait > 0 && wait < length {
				time.AfterFunc(wait, func() { end(o) })
				return
			}
			end(o)
		},
		wrap: func(spec driver.ProducerSpec, p driver.Producer, _ driver.Completions) driver.Producer {
			return &locatedProducer{p, "host-of-" + spec.Destination.Name}
		},
	}).factory(f)
}

// TestStallEndsRun: a threshold that aborts ends the run while the broker stalls, on each side.
func TestStallEndsRun(t *testing.T) {
	const s = time.Second
	for _, demand := range []struct {
		text   string
		within time.Duration // of the start of the stall: the samples are a second apart
	}{
		{"stall.max < 2s", 5 * s}, {"stall.count == 0", 4 * s},
	} {
		for _, tt := range []struct {
			name string
			edit func(*flat)
			from time.Duration
			side string
			stop func(b *mem.Broker, f *driver.Factory)
		}{
			{
				name: "a rate", edit: steady, from: 2 * s, side: stats.SendSide,
				stop: func(b *mem.Broker, _ *driver.Factory) { time.AfterFunc(2*s-s/20, func() { b.Stall(60 * s) }) },
			},
			{
				name: "closed loop", edit: func(p *flat) { p.Duration = 20 * s; p.ConsumerRate = 0 }, from: 2 * s,
				stop: func(b *mem.Broker, _ *driver.Factory) { time.AfterFunc(2*s-s/20, func() { b.Stall(60 * s) }) },
			},
			{
				name: "transactions", edit: func(p *flat) { steady(p); p.CommitInterval = 5 }, from: 2 * s, side: stats.SendSide,
				stop: func(b *mem.Broker, _ *driver.Factory) { time.AfterFunc(2*s-s/20, func() { b.Stall(60 * s) }) },
			},
			{
				name: "deliveries alone", edit: steady, from: 3 * s, side: stats.ReceiveSide,
				stop: func(_ *mem.Broker, f *driver.Factory) {
					n := 0
					*f = delivering(*f, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
						if n++; n == 300 {
							<-time.After(60 * s)
						}
						deliver(d)
					})
				},
			},
		} {
			inBubble(t, demand.text+"/"+tt.name, func(t *testing.T) {
				b := broker(t, func(o *mem.Options) { o.Latency = time.Millisecond })
				f := b.Factory()
				tt.stop(b, &f)
				began := time.Now()
				sum, err := carryOut(t.Context(), nil, newPlan(f, func(p *flat) {
					tt.edit(p)
					p.StallThreshold, p.Duration = s, 20*s
					p.Plan.Thresholds = aborting(t, demand.text)
				}), new(recorder))
				require.NoError(t, err)
				require.True(t, sum.Outcome.Aborted, sum.Outcome.Reason)
				require.Contains(t, sum.Outcome.Reason, demand.text)
				require.Less(t, sum.Average.Span, tt.from+demand.within)
				require.False(t, sum.Thresholds[0].Kept, "%+v", sum.Stalls)
				require.Len(t, sum.Stalls, 1)
				require.WithinRange(t, time.UnixMicro(sum.Stalls[0].Time), began.Add(tt.from-s/10), began.Add(tt.from+2*s))
				if tt.side != "" { // in a closed loop all messages sent may have been received before
					require.Equal(t, tt.side, sum.Stalls[0].Side)
				}
				<-time.After(60 * s) // for the end of the stall
			})
		}
	}
}
