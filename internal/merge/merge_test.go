package merge_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// schedule reads a rate.
func schedule(t *testing.T, text string) plan.Rate {
	t.Helper()
	s, err := load.ParseSchedule(text)
	require.NoError(t, err)
	return plan.Rate{Schedule: s}
}

// newPlan is a verified client on queue://TEST of a broker.
func newPlan(f driver.Factory, edit func(*plan.Plan, *plan.Group)) *execution {
	b := &plan.Broker{
		Protocol: f.Name, Client: driver.Native, OpenOptions: driver.OpenOptions{URL: "mem://local", ConnectTimeout: 2 * time.Second},
	}
	g := &plan.Group{
		Role: plan.Client, ProducerBroker: b, ConsumerBroker: b, Destinations: []driver.Destination{{Name: "TEST"}},
		Producers: 1, Consumers: 1, ProducerSpec: driver.ProducerSpec{MaxPending: 1}, Mix: []plan.Variant{{
			Weight: 1, Variant: driver.Variant{Priority: -1, Body: make([]byte, 16)}, File: "sixteen",
		}},
	}
	p := plan.Plan{DrainTimeout: 10 * time.Second, FakeClock: true, Verify: true, Steps: []plan.Step{{Name: plan.OnlyStep, Groups: []*plan.Group{g}}}}
	edit(&p, g)
	return &execution{p, f}
}

// execution is a plan with the driver that carries it out.
type execution struct {
	plan.Plan
	factory driver.Factory
}

// carryOut runs a plan, or a shard of it, and returns the folder of its result.
func carryOut(t *testing.T, dir string, p execution) *stats.Summary {
	t.Helper()
	text, err := plan.JSON(&p.Plan, func(s string) string { return s })
	require.NoError(t, err)
	head := result.Head{Plan: text, Host: result.Host{Name: fmt.Sprintf("host-%d", p.Shard.Number)}}
	if !p.Shard.IsZero() {
		head.Shard = &result.Shard{Number: p.Shard.Number, Of: p.Shard.Of}
	}
	p.VerifyFile = filepath.Join(dir, result.VerifyFile)
	to, err := report.NewResult(dir, report.ResultOptions{Head: head})
	require.NoError(t, err)
	s, err := engine.Run(context.Background(), nil, &engine.Config{Plan: &p.Plan, Trace: result.MaxTraceEvents, Endpoints: engine.Reach(&p.Plan,
		func(*plan.Broker) *driver.Factory { return &p.factory })}, to)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return s
}

// inShards runs the shards of a plan side by side, each by a clock that is ahead by so much, and returns the folders.
func inShards(t *testing.T, base string, p *execution, ahead ...time.Duration) (dirs []string) {
	t.Helper()
	var running sync.WaitGroup
	for i, by := range ahead {
		dir := filepath.Join(base, fmt.Sprintf("shard-%d", i+1))
		dirs = append(dirs, dir)
		shard := *p
		shard.Shard, shard.RunID, shard.ClockShift = plan.Shard{Number: i + 1, Of: len(ahead)}, 77, by
		running.Go(func() { carryOut(t, dir, shard) })
	}
	running.Wait()
	return dirs
}

// bars returns the histogram of a latency.
func bars(l *result.Latency) []result.Bar {
	if l == nil || l.Histogram == nil {
		return nil
	}
	return l.Histogram.Bars()
}

// Five shards of a run, side by side on one broker that stalls for a second, have the counts, rows and latencies of one
// process, bucket by bucket.
func TestShardsAreTheWhole(t *testing.T) {
	base, shards := t.TempDir(), []string(nil)
	whole := filepath.Join(base, "whole")
	for _, divided := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, o := mem.New(), mem.Options{}
			o.Latency, o.DeliveryLatency, o.StallAfter, o.StallFor = 3*time.Millisecond, 7*time.Millisecond, 1252*time.Millisecond, time.Second
			b.Set(o)
			p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
				g.Producers, g.Consumers, g.Rate, g.MaxPending, g.Reconnect = 7, 5, schedule(t, "234.567"), 0, true
				p.Steps[0].Duration, p.Steps[0].Warmup, p.StallThreshold = 5*time.Second, time.Second, 500*time.Millisecond
				p.Thresholds = thresholds(t)
			})
			p.StartAt = time.Now().Add(time.Second)
			if divided {
				shards = inShards(t, base, p, make([]time.Duration, 5)...)
				return
			}
			require.True(t, carryOut(t, whole, *p).Outcome.Success)
		})
	}
	one, err := result.ReadHistograms(whole)
	require.NoError(t, err)
	all, err := merge.Read(shards, merge.Options{})
	require.NoError(t, err)

	require.True(t, all.Outcome.Success, all.Outcome.Problems)
	sameFigures(t, one, all)
	for _, r := range []*result.Result{one, all} {
		r.Total.Producers.Blocked, r.Measured.Producers.Blocked = 0, 0 // waits, not messages
	}
	require.Equal(t, one.Total, all.Total)
	require.Equal(t, one.Measured, all.Measured)
	require.Equal(t, one.Start, all.Start)
	for _, name := range result.KindNames() {
		require.Equal(t, bars(one.Latencies.Get(name)), bars(all.Latencies.Get(name)), name)
	}
	require.Greater(t, len(bars(one.Latencies[result.Ack])), 20, "they differ")
	require.Equal(t, one.Latencies[result.Ack].Percentiles, all.Latencies[result.Ack].Percentiles)
	require.Equal(t, one.Verification.Total, all.Verification.Total)
	require.True(t, all.Verification.Known)
	require.Equal(t, one.Total.Producers.Sent, all.Verification.Total.Once)
	measured := func(r *result.Result) (sent []uint64) {
		for i := range r.Rows {
			if r.Rows[i].Phase != result.Drain {
				sent = append(sent, r.Rows[i].Producers.Sent)
			}
		}
		return sent
	}
	require.InDeltaSlice(t, measured(one), measured(all), 5, "of each second; one due at its very end may count in the next")
	require.Len(t, all.Parts, 5)
	require.NotContains(t, fmt.Sprint(all.Outcome.Warnings), "rate was missed", "each shard knows its share of the due messages")
	require.InEpsilon(t, *one.Figures.Offered, *all.Figures.Offered, 0.001)

	dir := filepath.Join(t.TempDir(), "all")
	require.NoError(t, merge.Write(dir, all))
	again, err := result.ReadHistograms(dir)
	require.NoError(t, err)
	require.Equal(t, all.Latencies[result.Ack].Percentiles, again.Latencies[result.Ack].Percentiles)
	require.Len(t, again.Rows, len(all.Rows))
}

// Groups of several steps in shards have the counts, latencies and rates of one process in each step.
func TestShardsOfSteps(t *testing.T) {
	base, shards := t.TempDir(), []string(nil)
	whole := filepath.Join(base, "whole")
	for _, divided := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, o := mem.New(), mem.Options{}
			o.Latency, o.DeliveryLatency = 3*time.Millisecond, 7*time.Millisecond
			b.Set(o)
			p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
				p.Verify = false
				group := func(name, rate string) *plan.Group {
					of := *g
					of.Name, of.Producers, of.Consumers, of.MaxPending, of.Rate = name, 4, 2, 0, schedule(t, rate)
					of.Destinations = []driver.Destination{{Name: name}}
					return &of
				}
				senders, readers := group("c", "100"), group("d", "100")
				senders.Role, senders.Consumers, readers.Role, readers.Producers, readers.Rate = plan.Producer, 0, plan.Consumer, 0, plan.Rate{}
				list := func(texts ...string) []threshold.Threshold { return parsed(t, texts...) }
				of := func(rate string) []threshold.Threshold {
					return list("sent.avg >= 99% of target", "completed.min >= 90% of target", "ack.p99 < 1s", "sent > 0", "group.a.completed.avg >= "+rate, "group.a.completed.min >= 90% of target",
						"group.b.received.max > 0", "group.b.transfer.p99 < 1s", "group.b.received > 0", "tester.cpu >= 0%")
				}
				p.Thresholds = list("sent == 7150", "group.a.completed.avg <= 60", "completed.min >= 1", "transfer.max < 1s", "group.a.sent == 1500",
					"group.b.completed.avg >= 200", "group.a.completed.min >= 90", "group.b.transfer.p99 < 1s")
				// A group that leaves is drained: otherwise its unsettled messages would go, late, to a shard some ms behind.
				p.Steps = []plan.Step{
					{Name: "slow", Duration: 5 * time.Second, Groups: []*plan.Group{group("a", "100"), group("b", "300")}, Thresholds: of("99")},
					{Name: "fast", Duration: 5 * time.Second, Drained: true, Groups: []*plan.Group{group("a", "200"), group("b", "400")}, Thresholds: of("199")},
					{Name: "alone", Duration: 5500 * time.Millisecond, Drained: true, Groups: []*plan.Group{group("b", "300")}, Thresholds: list("completed.avg >= 299", "group.b.received.max > 0")},
					{Name: "senders", Duration: 5 * time.Second, Groups: []*plan.Group{senders}},
					{Name: "readers", Duration: 5 * time.Second, Groups: []*plan.Group{readers}},
				}
			})
			p.StartAt = time.Now().Add(time.Second)
			if divided {
				shards = inShards(t, base, p, 0, 0)
				return
			}
			require.True(t, carryOut(t, whole, *p).Outcome.Success)
		})
	}
	one, err := result.ReadHistograms(whole)
	require.NoError(t, err)
	all, err := merge.Read(shards, merge.Options{})
	require.NoError(t, err)
	for i, want := range one.Thresholds {
		got := all.Thresholds[i]
		require.Equal(t, want.Step+want.Threshold, got.Step+got.Threshold)
		require.Equal(t, want.Kept, got.Kept, got.String())
		if want.Metric != "tester.cpu" {
			require.InDelta(t, *want.Measured, *got.Measured, 2+*want.Measured/100, "%s %s", want.Step, want.Threshold)
		}
	}
	extremes := func(f *result.Figures) []*result.Extreme {
		return []*result.Extreme{f.MinimumCompleted, f.MaximumCompleted, f.MinimumReceived, f.MaximumReceived}
	}
	for i := range one.Steps {
		got := extremes(all.Steps[i].Figures)
		for k, want := range extremes(one.Steps[i].Figures) { // nil if the side takes no part
			if require.Equal(t, want == nil, got[k] == nil, "%s %d", one.Steps[i].Name, k); want != nil {
				require.InDelta(t, want.PerSecond, got[k].PerSecond, 10, "%s %d", one.Steps[i].Name, k)
			}
		}
	}
	require.Len(t, all.Thresholds, 30)
	require.Zero(t, all.Outcome.Status, all.Thresholds)
}

func parsed(t *testing.T, texts ...string) (list []threshold.Threshold) {
	t.Helper()
	for _, text := range texts {
		d, err := threshold.Parse(text)
		require.NoError(t, err)
		list = append(list, d)
	}
	return list
}

// thresholds has one on each metric of a run that sends and receives at a rate and is verified.
func thresholds(t *testing.T) []threshold.Threshold {
	t.Helper()
	var texts []string
	for _, m := range threshold.Metrics() {
		kind, _, _ := strings.Cut(m.Name, ".")
		if m.Needs&(threshold.Transactions|threshold.Openings|threshold.Window|threshold.Requests|threshold.Replies) == 0 && !slices.Contains([]string{"lateness", "b2c", "s2c", "tls", "broker"}, kind) {
			texts = append(texts, m.Name+" >= "+[...]string{"0", "50% of target", "0s", "0%", "0"}[m.Unit])
		}
	}
	return parsed(t, texts...)
}

// sameFigures compares the metrics of merged shards with the metrics of one process.
func sameFigures(t *testing.T, one *result.Result, all *result.Result) {
	t.Helper()
	require.Len(t, all.Thresholds, len(one.Thresholds))
	for i, want := range one.Thresholds {
		got := all.Thresholds[i]
		require.Equal(t, want.Threshold, got.Threshold)
		if want.Metric == "tester.cpu" { // of this machine, in a bubble with a clock of its own
			require.NotNil(t, got.Measured)
			continue
		}
		within := map[string]float64{"rate.missed": 0.1, "stall.max": 20_000}[want.Metric]
		if strings.HasSuffix(want.Metric, ".mean") {
			within = 1 // whole microseconds of each part
		} else if want.Unit == threshold.PerSecond.String() {
			within = 5 // a message due at the very end of a second may count in the next
		}
		require.NotNil(t, want.Measured, want.Threshold)
		require.NotNil(t, got.Measured, want.Threshold)
		require.InDelta(t, *want.Measured, *got.Measured, within, want.Threshold)
		require.Equal(t, want.Kept, got.Kept, want.Threshold)
	}
	require.Equal(t, one.Outcome.Status, all.Outcome.Status)
}

// Lost, duplicated and damaged messages are found over all shards; none of them could find these alone.
func TestShardsFindFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		b.Set(mem.Options{Lose: 150, Duplicate: 100, Damage: 170})
		p := newPlan(b.Factory(), func(_ *plan.Plan, g *plan.Group) {
			g.Producers, g.Consumers, g.Count, g.Rate = 3, 3, 2000, schedule(t, "1000")
		})
		p.StartAt = time.Now().Add(time.Second)
		m, err := merge.Read(inShards(t, t.TempDir(), p, 0, 0, 0), merge.Options{})
		require.NoError(t, err)
		require.False(t, m.Outcome.Success)
		require.Equal(t, 1, m.Outcome.Status)
		truth, found := b.Stats(), &m.Verification.Total
		require.Positive(t, min(truth.Lost, truth.Duplicated, truth.Damaged))
		require.Equal(t, []uint64{truth.Lost, truth.Duplicated, truth.Damaged}, []uint64{found.Lost, found.Duplicates, found.Damaged})
		require.EqualValues(t, 2000, m.Verification.Sent)
		require.NotEmpty(t, m.Outcome.Problems)
	})
}

// Without --verify a merge warns that lost messages are not noticed.
func TestShardsWithoutVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, o := mem.New(), mem.Options{}
		o.Lose = 100
		b.Set(o)
		p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
			p.Verify, g.Producers, g.Consumers, g.Count, g.Rate = false, 3, 3, 600, schedule(t, "1000")
		})
		p.StartAt = time.Now().Add(time.Second)
		m, err := merge.Read(inShards(t, t.TempDir(), p, 0, 0, 0), merge.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 6, b.Stats().Lost)
		require.Nil(t, m.Missing)
		require.Contains(t, fmt.Sprint(m.Outcome.Warnings), "lost messages are not known")
		require.Contains(t, fmt.Sprint(m.Outcome.Warnings), "the broker accepted 600, 594 were received")
	})
}

// One of two processes has its clock up to 2 s ahead or behind: the offset lies within the stated error, half of the
// fastest way there and back. Transfer times below zero are left out, and so are thresholds on the others.
func TestClockOffset(t *testing.T) {
	for _, c := range []struct{ shift, more time.Duration }{
		{0, 0},
		{2 * time.Second, 5 * time.Millisecond},
		{-2 * time.Second, 15 * time.Millisecond},
		{-472_965_215, 15 * time.Millisecond},
		{7 * time.Millisecond, 5 * time.Millisecond},
	} {
		shift, more := c.shift, c.more
		t.Run(fmt.Sprint(shift, more), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, o := mem.New(), mem.Options{}
				o.DeliveryLatency = 10*time.Millisecond + more
				b.Set(o)
				p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
					g.Producers, g.Consumers, g.Rate, g.MaxPending = 2, 2, schedule(t, "50"), 0
					g.Destinations[0].Kind = driver.Topic  // each host receives the messages of both
					p.Steps[0].Duration = 25 * time.Second // the hosts begin up to 2 s apart
				})
				p.StartAt = time.Now().Add(5 * time.Second)
				m, err := merge.Read(inShards(t, t.TempDir(), p, 0, shift), merge.Options{Thresholds: parsed(t, "transfer.p99 < 1m")})
				require.NoError(t, err)
				require.True(t, m.Outcome.Success, m.Outcome.Problems)
				require.Len(t, m.Parts, 2)
				received := m.Total.Consumers
				require.EqualValues(t, received.Received-received.NegativeTransfers, m.Latencies[result.Transfer].Count)
				if far := shift.Abs() > 10*time.Millisecond+more; far || shift == 0 {
					require.Equal(t, !far, received.NegativeTransfers == 0)
					require.Equal(t, !far, m.Thresholds[0].Kept, m.Thresholds[0].String())
				}
				c := m.Parts[1].Clock
				require.NotNil(t, c)
				for _, o := range []result.Offset{c.Start, c.End} {
					require.InDelta(t, shift.Microseconds(), int64(o.Ahead), float64(o.Error))
					require.GreaterOrEqual(t, o.Error, int64(10_000), "the least that a one-way latency of 10 ms allows")
					require.LessOrEqual(t, o.Error, 10_000+more.Microseconds()+500)
				}
				require.Equal(t, &result.Clock{}, m.Parts[0].Clock)
			})
		})
	}
}

// A merge refuses shards that are missing, that are there twice, and that are of other plans or runs.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, o := mem.New(), mem.Options{}
		o.Latency = time.Millisecond
		b.Set(o)
		make3 := func(edit func(*plan.Plan, *plan.Group)) []string {
			p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
				g.Producers, g.Consumers, g.Count = 3, 3, 30
				edit(p, g)
			})
			return inShards(t, t.TempDir(), p, 0, 0, 0)
		}
		dirs := make3(func(*plan.Plan, *plan.Group) {})
		other := make3(func(_ *plan.Plan, g *plan.Group) { g.Count = 31 })
		alone := filepath.Join(t.TempDir(), "alone")
		carryOut(t, alone, *newPlan(b.Factory(), func(_ *plan.Plan, g *plan.Group) { g.Producers, g.Consumers, g.Count = 3, 3, 30 }))

		_, err := merge.Read(dirs[:2], merge.Options{})
		require.ErrorIs(t, err, merge.ErrMissing)
		require.ErrorContains(t, err, "shards are missing: 3/3")
		m, err := merge.Read(dirs[:2], merge.Options{Partial: true})
		require.NoError(t, err)
		require.False(t, m.Verification.Known)
		require.EqualValues(t, 20, m.Total.Producers.Sent)
		require.Contains(t, fmt.Sprint(m.Outcome.Warnings), "shards are missing: 3/3")

		for _, unlike := range [][]string{{dirs[0], dirs[1], dirs[1]}, {dirs[0], dirs[1], other[2]}, {dirs[0], alone}} {
			_, err = merge.Read(unlike, merge.Options{})
			require.ErrorIs(t, err, result.ErrUnlike)
		}
		_, err = merge.Read([]string{dirs[0], t.TempDir()}, merge.Options{})
		require.ErrorIs(t, err, result.ErrNoResult)

		require.NoError(t, os.Remove(filepath.Join(dirs[2], result.VerifyFile)))
		m, err = merge.Read(dirs, merge.Options{})
		require.NoError(t, err)
		require.Nil(t, m.Verification)
		require.Contains(t, fmt.Sprint(m.Outcome.Warnings), "what became of each message is not known")
	})
}

// Connections of shards are cut: messages that a consumer of one shard could not settle go to the other shard. The
// outage explains these copies, so that they fail no run.
func TestShardsAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
			g.Producers, g.Consumers, g.Rate, g.MaxPending, g.Reconnect = 2, 6, schedule(t, "600"), 0, true
			g.ConsumerWork = load.Work{Mean: 8 * time.Millisecond, Exponential: true}
			p.Steps[0].Duration, p.Allow.Disorder = 12*time.Second, true
		})
		for at := range 4 {
			time.AfterFunc(time.Duration(2*at+1)*time.Second+100*time.Millisecond, b.Disconnect)
		}
		dirs := inShards(t, t.TempDir(), p, 0, 0)
		m, err := merge.Read(dirs, merge.Options{})
		require.NoError(t, err)
		v := m.Verification
		require.Positive(t, b.Stats().Redelivered)
		require.Positive(t, v.Total.Duplicates)
		crossed := v.Total.Duplicates
		for _, dir := range dirs {
			r, err := result.Read(dir)
			require.NoError(t, err)
			crossed -= r.Verification.Total.Duplicates
		}
		require.Positive(t, crossed, "copies that went to the other shard")
		require.Equal(t, v.Total.Duplicates, v.Total.AfterOutage)
		require.Zero(t, v.Total.Lost)
		require.True(t, m.Outcome.Success, m.Outcome.Problems)
		// Both shards are of one host, and have seen the same outages.
		require.Len(t, m.Outages, 8)
		var text strings.Builder
		require.NoError(t, merge.Text(&text, m, strings.TrimSpace))
		require.Regexp(t, `(?m)^--- result: +success after 4 outages, the longest [0-9.]+ m?s: 0 lost, \d+ in doubt, \d+ duplicated$`, text.String())
		require.Len(t, regexp.MustCompile(`(?m)^--- outage: .* \(shard [12]\), at .* for .*; 4 workers connected again after `).
			FindAllString(text.String(), -1), 8)
	})
}

// The traces of shards are joined by one clock, although that of the second is a minute ahead.
func TestTraceOfShards(t *testing.T) {
	var shards []string
	base := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, o := mem.New(), mem.Options{}
		o.DeliveryLatency = 20 * time.Millisecond
		b.Set(o)
		p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
			g.Producers, g.Consumers, g.Rate, g.Count, g.MaxPending = 3, 2, schedule(t, "100"), 200, 10
			p.TraceSample = 1
		})
		shards = inShards(t, base, p, 0, time.Minute)
	})
	all, err := merge.Read(shards, merge.Options{})
	require.NoError(t, err)
	dir := filepath.Join(base, "all")
	require.NoError(t, merge.Write(dir, all))
	merged, err := result.Read(dir)
	require.NoError(t, err)
	require.Equal(t, &result.Trace{Sample: "1/1", Events: 1000}, merged.Trace)
	list, err := result.Slowest(1000, dir)
	require.NoError(t, err)
	require.Len(t, list, 200)
	across := 0
	for _, m := range list {
		require.NotZero(t, m.Due, m)
		require.Equal(t, "completed", m.End)
		require.InDelta(t, m.Sent+20_000, m.Received, 21_000, "the clocks are known to half a round trip")
		if m.Producer[len("producer-0"):] != m.Consumer[len("consumer-0"):] {
			across++
		}
	}
	require.Greater(t, across, 50, "messages of one shard were received by the other")
}

// TestShardsOfConnections: three shards open the connections of one schedule, each in its turn, and the merged result
// has the counts, the live connections and the thresholds of the whole.
func TestShardsOfConnections(t *testing.T) {
	base, shards := t.TempDir(), []string(nil)
	whole := filepath.Join(base, "whole")
	for _, divided := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := mem.New()
			b.Set(mem.Options{Login: 3 * time.Millisecond, MostOpen: 95})
			p := newPlan(b.Factory(), func(p *plan.Plan, g *plan.Group) {
				p.Verify = false
				g.Role, g.Destinations, g.Rate = plan.Connections, nil, schedule(t, "25")
				g.Connections, g.Hold, g.MaxPending = 100, 3500*time.Millisecond, 100
				p.Thresholds = parsed(t, "connections.opened == 95", "connections.live >= 95", "connections.refused == 5", "open.max < 4ms")
			})
			p.StartAt = time.Now().Add(time.Second)
			if divided {
				shards = inShards(t, base, p, make([]time.Duration, 3)...)
				return
			}
			carryOut(t, whole, *p)
		})
	}
	one := musttest.Get(result.ReadHistograms(whole))(t)
	all := musttest.Get(merge.Read(shards, merge.Options{}))(t)
	want := &result.Connections{Opened: 95, Refused: 5, Closed: 95, Failures: map[string]uint64{"full": 5}}
	require.Equal(t, want, one.Total.Connections)
	require.Equal(t, want, all.Total.Connections)
	require.Equal(t, bars(one.Latencies[result.Open]), bars(all.Latencies[result.Open]))
	require.EqualValues(t, 95, *one.Figures.MaximumLive)
	require.EqualValues(t, 95, *all.Figures.MaximumLive)
	for _, r := range []*result.Result{one, all} {
		require.Len(t, r.Thresholds, 4)
		for _, o := range r.Thresholds {
			require.True(t, o.Kept, o.String())
		}
	}
	var text strings.Builder
	require.NoError(t, merge.Text(&text, all, func(s string) string { return s }))
	require.Regexp(t, `--- total opened: +95\n--- total refused: +5\n`, text.String())
	for i, dir := range shards { // the schedule is divided exactly
		c := musttest.Get(result.Read(dir))(t).Total.Connections
		require.EqualValues(t, []int{34, 33, 33}[i], c.Opened+c.Refused)
	}
}
