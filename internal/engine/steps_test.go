package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// scenario builds a plan of several steps on one broker.
type scenario struct {
	plan     *plan.Plan
	endpoint *engine.Endpoint
	others   []*engine.Endpoint
}

func newScenario(f driver.Factory, verified bool) *scenario {
	return &scenario{
		plan:     &plan.Plan{Name: "test", DrainTimeout: drainTimeout, FakeClock: true, Verify: verified},
		endpoint: endpoint(f, "main"),
	}
}

func (s *scenario) senders(name string, edit func(*plan.Group)) *plan.Group {
	g := &plan.Group{
		Name: name, Role: plan.Producer, ProducerBroker: s.endpoint.Broker, Destinations: []driver.Destination{{Name: "TEST"}}, Producers: 1,
		Mix: bodies(64),
	}
	g.MaxPending = 10
	if edit != nil {
		edit(g)
	}
	return g
}

func (s *scenario) readers(name string, edit func(*plan.Group)) *plan.Group {
	g := &plan.Group{
		Name: name, Role: plan.Consumer, ConsumerBroker: s.endpoint.Broker, Destinations: []driver.Destination{{Name: "TEST"}}, Consumers: 1,
	}
	if edit != nil {
		edit(g)
	}
	return g
}

func (s *scenario) step(name string, edit func(*plan.Step), groups ...*plan.Group) {
	step := plan.Step{Name: name, Groups: groups}
	if edit != nil {
		edit(&step)
	}
	s.plan.Steps = append(s.plan.Steps, step)
}

// unreachable is the broker of the groups that follow.
func (s *scenario) unreachable() {
	s.others = append(s.others, s.endpoint)
	s.endpoint = endpoint(s.endpoint.Factory, "other")
	s.endpoint.URL = "mem://unreachable"
}

// config returns the run of the scenario.
func (s *scenario) config() *engine.Config { return config(s.plan, append(s.others, s.endpoint)...) }

// run carries the scenario out and checks the invariants of every run of several steps.
func (s *scenario) run(t *testing.T, stop <-chan struct{}) *stats.Summary {
	t.Helper()
	rep := new(recorder)
	sum, err := engine.Run(t.Context(), stop, s.config(), rep)
	require.NoError(t, err)
	var total, steps result.Counts
	at, byStep := 0, map[string]result.Counts{}
	for i, snap := range rep.snapshots {
		for snap.Step != s.plan.Steps[at].Name {
			at++ // fails by running out of steps if they go back
		}
		if i > 0 {
			require.False(t, snap.From.Before(rep.snapshots[i-1].To), "intervals do not overlap")
		}
		step := byStep[snap.Step]
		step.Add(&snap.Counts)
		byStep[snap.Step] = step
		total.Add(&snap.Counts)
		requireEqual(t, snap.Total, total, "intervals add up to the totals")
	}
	requireEqual(t, sum.Total, total, "intervals add up to the run")
	requireGroupIntervals(t, rep.snapshots, sum)
	var acks int64
	for i := range sum.Ended {
		steps.Add(&sum.Ended[i].Total)
		requireEqual(t, byStep[sum.Ended[i].Name], sum.Ended[i].Total, "the intervals of a step add up to it")
		if l := sum.Ended[i].Latencies[result.Ack]; l != nil {
			acks += l.Count
			require.EqualValues(t, sum.Ended[i].Measured.Get(result.Completed), l.Count)
		}
	}
	if len(s.plan.Steps) == 1 {
		require.Empty(t, sum.Ended)
		return sum
	}
	requireEqual(t, sum.Total, steps, "the steps add up to the run")
	if sum.Latencies[result.Ack] != nil {
		require.Equal(t, sum.Latencies[result.Ack].Count, acks)
	}
	return sum
}

// requireGroupIntervals: intervals add up to their group in each step and in the run; groups add up to the run.
func requireGroupIntervals(t *testing.T, snapshots []*stats.Snapshot, sum *stats.Summary) {
	t.Helper()
	if len(sum.Groups) < 2 {
		return
	}
	type key struct{ step, group string }
	counts, acks, transfers := map[key]*result.Counts{}, map[key]int64{}, map[key]int64{}
	count := func(l *result.Latencies, kind result.Kind) int64 {
		if l == nil || l[kind] == nil {
			return 0
		}
		return l[kind].Count
	}
	for _, s := range snapshots {
		var delta result.Counts
		var ack, transfer int64
		for i := range s.Groups {
			g := &s.Groups[i]
			delta.Add(&g.Counts)
			ack, transfer = ack+count(g.Latencies, result.Ack), transfer+count(g.Latencies, result.Transfer)
			for _, step := range []string{s.Step, ""} {
				k := key{step, g.Name}
				if counts[k] == nil {
					counts[k] = new(result.Counts)
				}
				counts[k].Add(&g.Counts)
				if s.Phase != result.Warmup {
					acks[k], transfers[k] = acks[k]+count(g.Latencies, result.Ack), transfers[k]+count(g.Latencies, result.Transfer)
				}
			}
		}
		all, want := delta.Values(), s.Values()
		all[result.Sent], all[result.Blocked] = want[result.Sent], want[result.Blocked] // some may be of the next interval to its group
		require.Equal(t, want, all)
		require.Equal(t, count(&s.Latencies, result.Ack), ack)
		require.Equal(t, count(&s.Latencies, result.Transfer), transfer)
	}
	check := func(step string, list []stats.Summary) {
		for i := range list {
			g, k := &list[i], key{step, list[i].Name}
			if counts[k] == nil {
				counts[k] = new(result.Counts)
			}
			require.Equal(t, g.Total.Values(), counts[k].Values(), "%s of %s", g.Name, step)
			require.Equal(t, count(&g.Latencies, result.Ack), acks[k])
			require.Equal(t, count(&g.Latencies, result.Transfer), transfers[k])
		}
	}
	check("", sum.Groups)
	for i := range sum.Ended {
		check(sum.Ended[i].Name, sum.Ended[i].Groups)
	}
}

func sending(n uint64) func(*plan.Group) { return func(g *plan.Group) { g.Count = n } }

func paced(n string) func(*plan.Group) { return func(g *plan.Group) { g.Rate = rate(n) } }

func lasting(d time.Duration) func(*plan.Step) { return func(s *plan.Step) { s.Duration = d } }

func drainedStep(s *plan.Step) { s.Drained = true }

// A later step receives the messages that a step leaves in a queue; the numbers of all steps add up.
func TestStepsShareOneNumbering(t *testing.T) {
	for _, verified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), verified)
			s.step("fill", nil, s.senders("senders", sending(1000)))
			s.step("both", lasting(10*time.Second), s.senders("senders", paced("50")), s.readers("readers", nil))
			s.step("paced", func(step *plan.Step) { step.Duration, step.Warmup = 10*time.Second, 4*time.Second }, s.senders("senders", paced("100")))
			s.step("drain", drainedStep, s.readers("readers", nil))
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success, "%q", sum.Problems())
			require.Zero(t, sum.Total.Get(result.NegativeTransfers))
			require.EqualValues(t, 1000+500+1000, sum.Total.Get(result.Completed))
			require.Equal(t, sum.Total.Get(result.Completed), sum.Total.Get(result.Received))
			require.Equal(t, sum.Total.Get(result.Received), *sum.Expected)
			require.Zero(t, *sum.Missing)
			var got [][2]uint64
			for i := range sum.Ended {
				got = append(got, [2]uint64{sum.Ended[i].Total.Get(result.Completed), sum.Ended[i].Total.Get(result.Received)})
			}
			require.Equal(t, [][2]uint64{{1000, 0}, {500, 1500}, {1000, 0}, {0, 1000}}, got)
			require.Equal(t, []string{"message count reached", "duration reached", "duration reached", "drained"},
				[]string{sum.Ended[0].Outcome.Reason, sum.Ended[1].Outcome.Reason, sum.Ended[2].Outcome.Reason, sum.Ended[3].Outcome.Reason})
			require.EqualValues(t, 600, sum.Ended[2].Measured.Get(result.Sent), "the warm-up of a step is its own")
			require.EqualValues(t, 500, sum.Ended[1].Measured.Get(result.Sent))
			require.EqualValues(t, 500+600, sum.Latencies[result.Response].Count, "the messages of the first step had no rate")
			if verified {
				require.EqualValues(t, 2500, sum.Verification.Total.Once)
			}
		})
	}
}

// Connections and subscriptions stay open from step to step; a group with other workers is reopened.
func TestStepsKeepConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		opened := map[string]int{}
		count := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			opened[name]++
		}
		h := &hooks{opened: count, open: func(context.Context) error { count("driver"); return nil }}
		s := newScenario(h.factory(mem.New().Factory()), true)
		s.step("one", lasting(2*time.Second), s.senders("senders", paced("10")), s.readers("readers", nil))
		s.step("two", lasting(2*time.Second), s.senders("senders", paced("20")), s.readers("readers", func(g *plan.Group) {
			g.ConsumerRate = plainRate("100")
		}))
		s.step("three", lasting(2*time.Second), s.senders("senders", paced("20")), s.readers("readers", func(g *plan.Group) { g.Credit = 7 }))
		s.step("four", lasting(2*time.Second), s.senders("others", paced("30")), s.readers("readers", func(g *plan.Group) { g.Credit = 7 }))
		s.step("five", lasting(2*time.Second), s.senders("senders", paced("40")))
		s.step("six", drainedStep, s.readers("readers", nil))
		sum := s.run(t, nil)
		require.True(t, sum.Outcome.Success, "%q", sum.Problems())
		require.Equal(t, map[string]int{"driver": 1, "senders-0": 2, "others-0": 1, "readers-0": 3}, opened)
		require.EqualValues(t, 2*(10+20+20+30+40), sum.Total.Get(result.Received))
		require.EqualValues(t, sum.Total.Get(result.Received), sum.Verification.Total.Once)
		require.Zero(t, sum.Total.InFlight())
		require.Empty(t, sum.Outcome.LeftBehind)
	})
}

// A group that is away for a step gets, on its return, the messages sent meanwhile if its subscription is durable, and
// none of them if it is not; neither counts as lost.
func TestGroupsThatReturn(t *testing.T) {
	topic := func(g *plan.Group) { g.Destinations = []driver.Destination{{Kind: driver.Topic, Name: "T"}} }
	durable := func(g *plan.Group) {
		topic(g)
		g.Durable, g.ClientID = true, "me"
	}
	for _, verified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := mem.New()
			s := newScenario(b.Factory(), verified)
			senders := func(n uint64) *plan.Group {
				return s.senders("senders", func(g *plan.Group) { topic(g); g.Count = n })
			}
			always, away, lost := s.readers("always", topic), s.readers("away", durable), s.readers("passing", topic)
			s.step("all", drainedStep, senders(100), always, away, lost)
			s.step("without", drainedStep, senders(250), always)
			s.step("again", drainedStep, senders(30), always, away, lost)
			s.step("end", drainedStep, senders(7), always)
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success, "%q", sum.Problems())
			got := map[string]uint64{}
			for _, w := range sum.Workers {
				got[w.Name] = w.Get(result.Received)
			}
			require.Zero(t, b.Subscriptions("T"), "nothing stays at the broker")
			require.Empty(t, sum.Outcome.LeftBehind)
			require.EqualValues(t, map[string]uint64{"senders-0": 0, "always-0": 387, "away-0": 380, "passing-0": 130}, got)
			if verified {
				v := sum.Verification.Total
				require.EqualValues(t, 387+380+130, v.Expected)
				require.Zero(t, v.Left, "the durable subscription is gone with its last step")
			}
		})
	}
}

// A durable subscription is removed at the end, in whatever steps its group was; a run that ended early reports
// subscriptions that it could not remove.
func TestDurableSubscriptionsOfSteps(t *testing.T) {
	durable := func(g *plan.Group) {
		g.Destinations = []driver.Destination{{Kind: driver.Topic, Name: "T"}}
		g.Durable, g.ClientID = true, "me"
	}
	for _, tt := range []struct {
		name  string
		steps []bool // in which the group is
		stop  time.Duration
		keep  bool
		left  int // subscriptions at the broker
	}{
		{"one step", []bool{true}, 0, false, 0},
		{"all steps", []bool{true, true, true}, 0, false, 0},
		{"away", []bool{true, false, true}, 0, false, 0},
		{"away at the end", []bool{true, true, false}, 0, false, 0},
		{"kept", []bool{true, false, true}, 0, true, 1},
		{"interrupted while away", []bool{true, false, true}, 3 * time.Second, false, 1},
		{"interrupted before it is away", []bool{true, false, true}, time.Second, false, 1},
		{"interrupted", []bool{true, true, true}, 3 * time.Second, false, 0},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			b := mem.New()
			s := newScenario(b.Factory(), false)
			readers := s.readers("readers", func(g *plan.Group) { durable(g); g.KeepSubscription = tt.keep })
			for i, present := range tt.steps {
				groups := []*plan.Group{s.senders("senders", func(g *plan.Group) { paced("10")(g); g.Destinations = readers.Destinations })}
				if present {
					groups = append(groups, readers)
				}
				s.step("step"+strconv.Itoa(i), lasting(2*time.Second), groups...)
			}
			var stop chan struct{}
			if tt.stop > 0 {
				stop = make(chan struct{})
				time.AfterFunc(tt.stop, func() { close(stop) })
			}
			sum, err := engine.Run(t.Context(), stop, s.config(), new(recorder))
			require.NoError(t, err)
			require.Equal(t, tt.left, b.Subscriptions("T"))
			if tt.left > 0 && !tt.keep {
				require.Len(t, sum.Outcome.LeftBehind, 1)
				require.Contains(t, sum.Outcome.LeftBehind[0], "readers-0: its durable subscription perfmq-readers-T-0 stays at the broker")
			} else {
				require.Empty(t, sum.Outcome.LeftBehind)
			}
		})
	}
}

// A threshold that says so ends the run as soon as it is not kept.
func TestThresholdsThatAbort(t *testing.T) {
	for _, tt := range []struct {
		name, run, step string
		steps           int
		sent            uint64
		kept            []bool
	}{
		{"kept", "sent <= 3000", "completed.min >= 90% of target", 2, 3000, []bool{true, true}},
		{"of the run", "sent <= 2200", "completed.min >= 90", 2, 2300, []bool{false, true}},
		{"of a step", "sent < 5000", "sent <= 450", 1, 500, []bool{true, false}},
		{"never above", "sent == 250", "sent <= 2000", 1, 300, []bool{false, true}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), true)
			s.plan.Thresholds = aborting(t, tt.run)
			s.step("one", func(step *plan.Step) { step.Duration, step.Thresholds = 20*time.Second, aborting(t, tt.step) },
				s.senders("senders", paced("100")), s.readers("readers", nil))
			s.step("two", lasting(10*time.Second), s.senders("senders", paced("100")), s.readers("readers", nil))
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success, "%q", sum.Problems())
			require.Len(t, sum.Ended, tt.steps)
			require.InDelta(t, tt.sent, sum.Total.Get(result.Sent), 102, "it looks once a second, at the last second")
			require.Equal(t, sum.Total.Get(result.Sent), sum.Total.Get(result.Received), "nothing that was measured is lost")
			var kept []bool
			for i := range sum.Thresholds {
				kept = append(kept, sum.Thresholds[i].Kept)
			}
			require.Equal(t, tt.kept, kept)
			require.Equal(t, !tt.kept[0] || !tt.kept[1], sum.Outcome.Aborted)
			if !tt.kept[0] || !tt.kept[1] {
				require.Contains(t, sum.Outcome.Reason, "threshold failed: ")
			}
		})
	}
}

// An interruption ends the run in whatever step it is, and no measurement is lost.
func TestStepsEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(5*time.Second+50*time.Millisecond, func() { close(stop) })
		s := newScenario(mem.New().Factory(), true)
		s.step("one", lasting(3*time.Second), s.senders("senders", paced("10")), s.readers("readers", nil))
		s.step("two", lasting(30*time.Second), s.senders("senders", paced("10")), s.readers("readers", nil))
		s.step("three", lasting(3*time.Second), s.senders("senders", paced("10")), s.readers("readers", nil))
		sum := s.run(t, stop)
		require.True(t, sum.Outcome.Interrupted)
		require.Len(t, sum.Ended, 2)
		require.EqualValues(t, 30+21, sum.Total.Get(result.Received))
		require.Empty(t, sum.Problems())
	})
}

// TestStepThatCannotBegin: its consumers were opened but never started, so stored messages are left, not lost.
func TestStepThatCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), true)
		s.step("one", lasting(3*time.Second), s.senders("senders", paced("10")))
		readers := s.readers("readers", nil)
		s.unreachable()
		s.step("two", lasting(3*time.Second), readers, s.senders("others", paced("10")))
		sum := s.run(t, nil)
		require.False(t, sum.Outcome.Success)
		require.Equal(t, driver.ClassConnect, driver.ClassOf(sum.Err))
		require.Contains(t, sum.Outcome.Reason, "step two could not begin")
		require.Equal(t, result.Verified{Expected: 30, Left: 30}, sum.Verification.Total)
		require.NotContains(t, strings.Join(sum.Problems(), "\n"), "lost")
	})
}

// Commands run before and after steps; the first that fails ends the run.
func TestCommandsOfSteps(t *testing.T) {
	s := newScenario(mem.New().Factory(), false)
	s.step("one", func(step *plan.Step) {
		step.Before, step.After = []string{"echo begun"}, []string{"echo ended; exit 3", "echo never"}
	}, s.senders("senders", sending(10)))
	s.step("two", nil, s.senders("senders", sending(10)))
	sum, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
	require.NoError(t, err)
	require.False(t, sum.Outcome.Success)
	require.EqualValues(t, 10, sum.Total.Get(result.Completed))
	require.Len(t, sum.Commands, 2)
	for i := range sum.Commands {
		require.Positive(t, sum.Commands[i].Took)
		sum.Commands[i].Took = 0
	}
	three := 3
	require.Equal(t, []result.Command{
		{Step: "one", When: "before", Command: "echo begun", Output: "begun\n", Status: new(int)},
		{Step: "one", When: "after", Command: "echo ended; exit 3", Status: &three, Output: "ended\n"},
	}, sum.Commands)
	require.ErrorContains(t, sum.Err, `the command "echo ended; exit 3" after step one ended with status 3: ended`)

	s.plan.Steps[0].Before = []string{"exit 1"}
	_, err = engine.Run(t.Context(), nil, s.config(), new(recorder))
	require.ErrorContains(t, err, "ended with status 1: it printed nothing")
}

// perfmq waits for a broker that starts late, whether a driver connects when it is opened or only with its workers.
func TestWaitForBroker(t *testing.T) {
	for _, atWorkers := range []bool{false, true} {
		inBubble(t, fmt.Sprintf("at the workers: %t", atWorkers), func(t *testing.T) {
			begun := time.Now()
			down := func(context.Context) error {
				if time.Since(begun) < 5*time.Second {
					return driver.Errorf(driver.ClassConnect, "connect", "", "%w", errors.New("refused"))
				}
				return nil
			}
			h := &hooks{open: down}
			if atWorkers {
				h = &hooks{producer: down, consumer: down}
			}
			s := newScenario(h.factory(mem.New().Factory()), false)
			s.step("one", nil, s.senders("senders", sending(10)), s.readers("readers", nil))
			_, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
			require.ErrorContains(t, err, "refused")
			s.plan.WaitForBroker = 4 * time.Second
			_, err = engine.Run(t.Context(), nil, s.config(), new(recorder))
			require.ErrorContains(t, err, "refused")
			s.plan.WaitForBroker = 6 * time.Second
			begun = time.Now()
			sum := s.run(t, nil)
			require.True(t, sum.Outcome.Success)
		})
	}
}

// A step that waits until it is drained ends also when messages never come, and the run says so, also if a later step
// has no consumers.
func TestDrainedStepsWithLosses(t *testing.T) {
	for _, verified := range []bool{false, true} {
		for _, second := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newScenario(broker(t, func(o *mem.Options) { o.Lose = 100 }).Factory(), verified)
				s.step("fill", nil, s.senders("senders", sending(1000)))
				s.step("empty", drainedStep, s.readers("readers", nil))
				if second {
					s.step("after", nil, s.senders("senders", sending(1)))
				}
				begun := time.Now()
				sum := s.run(t, nil)
				require.Less(t, time.Since(begun), 15*time.Second)
				require.False(t, sum.Outcome.Success)
				require.EqualValues(t, 990, sum.Total.Get(result.Received))
				require.Equal(t, "nothing came any more", sum.Ended[1].Outcome.Reason)
				if second {
					require.Contains(t, sum.Problems(), "step empty: messages not received when the step ended: 10")
				} else {
					require.EqualValues(t, 10, *sum.Missing)
				}
			})
		}
	}
}

// Messages that a drained step lost stay lost in later steps.
func TestLossesOfAnEarlierStep(t *testing.T) {
	elsewhere := func(count uint64) func(*plan.Group) {
		return func(g *plan.Group) {
			g.Destinations = []driver.Destination{{Name: "OTHER"}}
			g.Count, g.Rate = count, rate("10")
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(broker(t, func(o *mem.Options) { o.Lose = 100 }).Factory(), true)
		s.step("first", drainedStep, s.senders("senders", sending(1000)), s.readers("readers", nil))
		s.step("second", drainedStep, s.senders("others", elsewhere(50)), s.readers("takers", elsewhere(0)))
		sum := s.run(t, nil)
		require.Equal(t, result.Verified{Expected: 1050, Received: 1040, Once: 1040, Lost: 10}, sum.Verification.Total)
	})
}

// An interruption while a step begins, or runs its commands, is no failure, and leaves no process behind.
func TestCommandsThatAreInterrupted(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			dir := t.TempDir()
			begun, goOn, mark := filepath.Join(dir, "begun"), filepath.Join(dir, "go"), filepath.Join(dir, "mark")
			hang := []string{"(while [ ! -e " + goOn + " ]; do sleep 0.05; done; echo late >" + mark + ") & echo >" + begun + "; wait"}
			s := newScenario(mem.New().Factory(), false)
			s.step("one", func(step *plan.Step) {
				if when == "after" {
					step.After = hang
				}
			}, s.senders("senders", sending(10)))
			s.step("two", func(step *plan.Step) {
				if when == "before" {
					step.Before = hang
				}
			}, s.senders("senders", sending(10)))
			stop := make(chan struct{})
			go func() {
				for {
					if _, err := os.Stat(begun); err == nil {
						close(stop)
						return
					}
					<-time.After(5 * time.Millisecond)
				}
			}()
			sum, err := engine.Run(t.Context(), stop, s.config(), new(recorder))
			require.NoError(t, err)
			require.True(t, sum.Outcome.Interrupted)
			require.Empty(t, sum.Problems())
			require.EqualValues(t, 10, sum.Total.Get(result.Completed))
			require.NoError(t, os.WriteFile(goOn, nil, 0o600))
			<-time.After(300 * time.Millisecond)
			require.NoFileExists(t, mark, "the children of the command have ended with it")
		})
	}
}

// A command may start a background process that keeps its output open.
func TestCommandsThatStartServers(t *testing.T) {
	s := newScenario(mem.New().Factory(), false)
	open := filepath.Join(t.TempDir(), "open") // its end is that of the server
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	s.step("one", func(step *plan.Step) {
		step.Before = []string{"echo starting; (while [ -e " + open + " ]; do sleep 0.05; done) &"}
	}, s.senders("senders", sending(10)))
	sum, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
	require.NoError(t, err, "it does not wait for what goes on")
	require.True(t, sum.Outcome.Success, "%q", sum.Problems())
	require.Equal(t, "starting\n", sum.Commands[0].Output)
}

// A threshold that ends the run early leaves nothing to ask of the steps that did not come.
func TestAbortedRunAsksNothingOfLaterSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(mem.New().Factory(), false)
		s.plan.Thresholds = aborting(t, "sent < 100")
		s.step("one", lasting(20*time.Second), s.senders("senders", paced("100")))
		s.step("two", nil, s.readers("readers", sending(500)))
		sum := s.run(t, nil)
		require.Empty(t, sum.Problems())
		require.Len(t, sum.Ended, 1)
	})
}

// TestMarksOfSteps: each step counts from its own start.
func TestMarksOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		p := newPlan(b.Factory(), func(p *flat) { steady(p); p.Rate, p.Duration = rate("100"), 3*time.Second })
		second := p.Steps[0]
		p.Steps[0].Marks = []uint64{200}
		second.Name, second.Marks = "second", []uint64{100}
		p.Steps = append([]plan.Step{}, p.Steps[0], second)
		s, _ := run(t, p, nil)
		require.Len(t, s.Marks, 2)
		require.Equal(t, "second", s.Marks[1].Step)
		require.InDelta(t, 2_000_000, s.Marks[0].Elapsed, 20_000)
		require.InDelta(t, 1_000_000, s.Marks[1].Elapsed, 20_000)
	})
}

// TestBrokerOfSteps: each step has the use of the broker's process in its own time, as its rows have it.
func TestBrokerOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(broker(t, nil).Factory(), false)
		s.step("one", lasting(4*time.Second), s.senders("slow", paced("100")))
		s.step("two", lasting(3*time.Second), s.senders("slow", paced("100")))
		c, rep := s.config(), new(recorder)
		var err error
		c.Side, err = brokerside.Open(t.Context(), brokerside.Config{PID: int32(os.Getpid())}) //nolint:gosec // a pid
		require.NoError(t, err)
		sum, err := engine.Run(t.Context(), nil, c, rep)
		require.NoError(t, err)
		require.Len(t, sum.Ended, 2)
		for i := range sum.Ended {
			step, use := &sum.Ended[i], (*result.BrokerUse)(nil)
			for _, snap := range rep.snapshots {
				if snap.Step == step.Name {
					use = brokerside.Join(use, snap.BrokerSide)
				}
			}
			require.Positive(t, step.Values["broker.memory"])
			for name, want := range (&result.Result{BrokerSide: []result.BrokerSide{{Whole: *use}}}).Metrics() {
				require.InDelta(t, want, step.Values[name], 1e-9, "%s of %s", name, step.Name)
			}
		}
	})
}
