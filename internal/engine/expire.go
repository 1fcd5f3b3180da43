package engine

import (
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/load"
)

// sendTimeout is the time after which the engine ends a message of the group without an answer; 0 if it does not, or
// the driver does so itself.
func (u *use) sendTimeout() time.Duration {
	if u.to == nil || u.to.Factory.Capabilities.TimesOut {
		return 0
	}
	return u.plan.SendTimeout
}

// startExpiry starts a goroutine for each group with a send time-out, which ends messages without an answer. The
// returned function stops them; later calls do nothing: a run may end before its step's load begins.
func (s *step) startExpiry() (end func()) {
	quit := make(chan struct{})
	var looking sync.WaitGroup
	for _, u := range s.uses {
		limit := u.sendTimeout()
		if limit == 0 || len(u.producers) == 0 {
			continue
		}
		looking.Go(func() {
			ticker := time.NewTicker(load.ExpireEvery(limit))
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-quit:
					return
				}
				for _, p := range u.producers {
					p.load.Expire(limit)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(quit)
		looking.Wait()
	})
}
