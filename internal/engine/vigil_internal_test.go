package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Consumers waited in vain if nothing came while somebody looked. A process that stood still had no chance to receive what
// came meanwhile.
func TestWaitedInVain(t *testing.T) {
	const stall = 10 * time.Second
	type step struct {
		watched, stall time.Duration // one after the other
		message        bool          // comes then
	}
	tests := []struct {
		name  string
		role  plan.Role
		drain time.Duration
		steps []step
		want  bool
	}{
		{"quiet", plan.Client, 3 * time.Second, []step{{watched: time.Second}}, true},
		{"not yet", plan.Client, 3 * time.Second, []step{{watched: 900 * time.Millisecond}}, false},
		{"a message", plan.Client, 3 * time.Second, []step{{watched: time.Minute, message: true}, {watched: 900 * time.Millisecond}}, false},
		{"a message, and quiet", plan.Client, 3 * time.Second, []step{{watched: time.Minute, message: true}, {watched: time.Second}}, true},
		{"stall", plan.Client, 3 * time.Second, []step{{stall: stall}}, false},
		{"stall at the deadline", plan.Client, 3 * time.Second, []step{{watched: 500 * time.Millisecond, message: true}, {watched: 500 * time.Millisecond, stall: stall}}, false},
		{"message, then stall", plan.Client, 3 * time.Second, []step{{watched: time.Minute, message: true}, {stall: stall}}, false},
		{"quiet, then stall", plan.Client, 3 * time.Second, []step{{watched: time.Second, stall: stall}}, true},
		{"stall, then quiet", plan.Client, 3 * time.Second, []step{{stall: stall}, {watched: time.Second}}, true},
		{"stall with a message at its end", plan.Client, 3 * time.Second, []step{{watched: 900 * time.Millisecond, stall: stall, message: true}, {watched: 900 * time.Millisecond}}, false},
		{"short drain", plan.Client, 200 * time.Millisecond, []step{{watched: 100 * time.Millisecond}}, true},
		{"short drain, stall", plan.Client, 200 * time.Millisecond, []step{{watched: 50 * time.Millisecond, stall: stall}}, false},
		{"no drain", plan.Client, 0, []step{{watched: time.Minute}}, false},
		{"consumer", plan.Consumer, 0, []step{{watched: time.Second}}, true},
		{"consumer, not yet", plan.Consumer, 0, []step{{watched: 900 * time.Millisecond}}, false},
		{"consumer, stall", plan.Consumer, 0, []step{{watched: 500 * time.Millisecond, stall: stall}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &run{
					plan: &plan.Plan{Role: tt.role, DrainTimeout: tt.drain}, clock: load.NewClock(), verify: newVerification(1, ""),
					consumers: []*consumer{{ended: make(chan struct{})}},
				}
				r.subs = subscriptions(r)
				r.watch()
				r.clock.Begin()
				r.attend()
				every := poll
				if tt.role == plan.Consumer {
					every = glance
				}
				for _, s := range tt.steps {
					for range s.watched / every {
						<-time.After(every)
						r.attend()
					}
					<-time.After(s.stall)
					if s.message {
						id := driver.ID{Run: r.verify.id, Sum: -1} // is illegible: it came, and that is all
						require.Equal(t, verify.Illegible, r.consumers[0].checker.Check(&driver.Delivery{ID: id}, r.clock.Epoch(r.clock.Now())))
					}
				}
				r.stopped(t.Context())
				require.Equal(t, tt.want, r.verify.endings[0].drained)
			})
		})
	}
}
