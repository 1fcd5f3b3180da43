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
)

// idle is a consumer that is open.
type idle struct{ driver.Consumer }

// Consumers waited in vain if nothing came while the run looked for arrivals. A process that stood still had no chance
// to receive messages that came meanwhile.
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
		{"a message, and quiet", plan.Client, 3 * time.Second, []moment{{watched: time.Minute, message: true}, {watched: time.Second}}, true},
		{"stall", plan.Client, 3 * time.Second, []moment{{stall: stall}}, false},
		{"stall at the deadline", plan.Client, 3 * time.Second, []moment{{watched: 500 * time.Millisecond, message: true}, {watched: 500 * time.Millisecond, stall: stall}}, false},
		{"message, then stall", plan.Client, 3 * time.Second, []moment{{watched: time.Minute, message: true}, {stall: stall}}, false},
		{"quiet, then stall", plan.Client, 3 * time.Second, []moment{{watched: time.Second, stall: stall}}, true},
		{"stall, then quiet", plan.Client, 3 * time.Second, []moment{{stall: stall}, {watched: time.Second}}, true},
		{"stall with a message at its end", plan.Client, 3 * time.Second, []moment{{watched: 900 * time.Millisecond, stall: stall, message: true}, {watched: 900 * time.Millisecond}}, false},
		{"short drain", plan.Client, 200 * time.Millisecond, []moment{{watched: 100 * time.Millisecond}}, true},
		{"short drain, stall", plan.Client, 200 * time.Millisecond, []moment{{watched: 50 * time.Millisecond, stall: stall}}, false},
		{"no drain", plan.Client, 0, []moment{{watched: time.Minute}}, false},
		{"consumer", plan.Consumer, 0, []moment{{watched: time.Second}}, true},
		{"consumer, not yet", plan.Consumer, 0, []moment{{watched: 900 * time.Millisecond}}, false},
		{"consumer, stall", plan.Consumer, 0, []moment{{watched: 500 * time.Millisecond, stall: stall}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := &consumer{ended: make(chan struct{}), rec: stats.NewConsumerRecorder(), driver: idle{}}
				g := &group{consumers: []*consumer{open}}
				r := &run{
					plan: &plan.Plan{DrainTimeout: tt.drain}, role: tt.role, clock: load.NewClock(), verify: newVerification(1, ""),
					step: &step{plan: &plan.Step{}, uses: []*use{{group: g, plan: &plan.Group{}, from: &Endpoint{}}}},
				}
				r.subscribe()
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
						id := driver.ID{Run: r.verify.id, Sum: -1} // is illegible: it came, and that is all
						require.Equal(t, verify.Illegible, open.checker.Check(&driver.Delivery{ID: id}, r.clock.Epoch(r.clock.Now())))
					}
				}
				r.stopped(t.Context(), r.subs)
				require.Equal(t, tt.want, r.subs[0].ending.drained)
			})
		})
	}
}
