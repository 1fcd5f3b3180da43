package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// idle is a consumer that is open.
type idle struct{ driver.Consumer }

// Only time in which the run checked for arrivals counts as quiet: a paused process could not receive.
func TestWaitedInVain(t *testing.T) {
	const stall = 10 * time.Second
	type moment struct {
		watched, stall time.Duration // one after the other
		message        bool          // comes then
	}
	tests := []struct {
		name  string
		role  plan.Role
		drain time.Duration
		steps []moment
		want  bool
	}{
		{"quiet", plan.Client, 3 * time.Second, []moment{{watched: time.Second}}, true},
		{"not yet", plan.Client, 3 * time.Second, []moment{{watched: 900 * time.Millisecond}}, false},
		{"a message", plan.Client, 3 * time.Second, []moment{{watched: time.Minute, message: true}, {watched: 900 * time.Millisecond}}, false},
		{"stall", plan.Client, 3 * time.Second, []moment{{stall: stall}}, false},
		{"stall, then quiet", plan.Client, 3 * time.Second, []moment{{stall: stall}, {watched: time.Second}}, true},
		{"stall with a message at its end", plan.Client, 3 * time.Second, []moment{{watched: 900 * time.Millisecond, stall: stall, message: true}, {watched: 900 * time.Millisecond}}, false},
		{"short drain", plan.Client, 200 * time.Millisecond, []moment{{watched: 100 * time.Millisecond}}, true},
		{"no drain", plan.Client, 0, []moment{{watched: time.Minute}}, false},
		{"consumer", plan.Consumer, 0, []moment{{watched: time.Second}}, true},
		{"consumer, stall", plan.Consumer, 0, []moment{{watched: 500 * time.Millisecond, stall: stall}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := &consumer{broker: new(plan.Broker), ended: make(chan struct{}), rec: stats.NewConsumerRecorder(), driver: idle{}}
				g := &group{consumers: []*consumer{open}}
				r := &run{
					plan: &plan.Plan{DrainTimeout: tt.drain}, role: tt.role, clock: load.NewClock(), verify: newVerification(""), id: 1,
					step: &step{plan: &plan.Step{}, uses: []*use{{group: g, plan: &plan.Group{}}}, consumers: g.consumers},
				}
				r.addSubscriptions()
				r.clock.Begin()
				r.watchArrivals()
				every := pollInterval
				if tt.role == plan.Consumer {
					every = watchInterval
				}
				for _, s := range tt.steps {
					for range s.watched / every {
						<-time.After(every)
						r.watchArrivals()
					}
					<-time.After(s.stall)
					if s.message {
						id := driver.ID{Run: r.id, Sum: -1} // is illegible: it came, and that is all
						require.Equal(t, verify.Illegible, open.checker.Check(&driver.Delivery{ID: id}, r.clock.Epoch(r.clock.Now())))
					}
				}
				r.recordEnds(t.Context(), r.subs)
				require.Equal(t, tt.want, r.subs[0].drained)
			})
		})
	}
}

type nobody struct{ driver.Producer }

// TestMayPend: a client's own bound on the messages in flight holds once for the producers of a connection.
func TestMayPend(t *testing.T) {
	for name, tt := range map[string]struct {
		bound driver.InFlight
		want  []int // of producers 0 and 1 of one connection, and 2 of another
	}{
		"none":           {driver.InFlight{}, []int{100, 100, 100}},
		"per producer":   {driver.InFlight{Messages: 1}, []int{1, 1, 1}},
		"per connection": {driver.InFlight{Messages: 2, PerConnection: true}, []int{2, 0, 2}},
		"beyond":         {driver.InFlight{Messages: 200, PerConnection: true}, []int{100, 100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Endpoint{Broker: &plan.Broker{}, Factory: mem.Factory()}
			e.Factory.InFlight = func(any, *driver.ProducerSpec) driver.InFlight { return tt.bound }
			seen := map[[2]string]bool{}
			var got []int
			for _, key := range []string{"a", "a", "b"} {
				p := &producer{broker: e, driver: nobody{}}
				p.spec.MaxPending, p.spec.Connection.Key = 100, key
				got = append(got, p.maxInFlight(seen))
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestCountedAnew: after an outage, or once the broker could not be reached, a count that is too low says nothing. One
// that is too high does.
func TestCountedAnew(t *testing.T) {
	for name, c := range map[string]struct {
		outages             int
		unreached           bool
		count               uint64
		added, acknowledged bool // known
	}{
		"too low":                    {0, false, 70, true, true},
		"too low after an outage":    {1, false, 70, true, false},
		"too low, unreached":         {0, true, 70, false, false},
		"right, unreached":           {1, true, 100, true, true},
		"too high, after an outage":  {1, false, 101, true, true},
		"too high, though unreached": {1, true, 101, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			count := &result.Compared{Count: c.count, Least: 100, Most: 100}
			s := &stats.Summary{Result: result.Result{
				Outages: make([]result.Outage, c.outages),
				BrokerCount: &result.BrokerCount{Destinations: []result.DestinationCount{
					{Unreached: c.unreached, Added: count, Acknowledged: count},
				}},
			}}
			countedAnew(s)
			d := &s.BrokerCount.Destinations[0]
			require.Equal(t, [2]bool{c.added, c.acknowledged}, [2]bool{d.Added != nil, d.Acknowledged != nil})
			require.Equal(t, c.added && c.acknowledged, d.Why == "")
		})
	}
}

// A process that was stopped for a minute has heard nothing: that does not show that the broker is silent.
func TestPauseIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{clock: load.NewClock(), collector: stats.NewCollector(nil, nil, time.Now())}
		g := &group{producers: []*producer{{rec: stats.NewProducerRecorder(false, nil)}}, allProducers: 1}
		r.step = &step{plan: &plan.Step{}, uses: []*use{{group: g, plan: &plan.Group{Count: 10}, to: &Endpoint{}}}}
		r.plan = &plan.Plan{}
		r.clock.Begin()
		broken := r.newSilenceCheck()
		<-time.After(time.Minute)
		require.NoError(t, broken())
		for range 7 {
			<-time.After(sampleInterval)
			require.NoError(t, broken())
		}
		<-time.After(sampleInterval)
		require.ErrorContains(t, broken(), "it did nothing for 10s")
	})
}
