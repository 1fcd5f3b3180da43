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

// expire starts a goroutine that ends messages of the step that have no answer in time. The function that it returns
// stops it; later calls do nothing: a run ends in a step whose load has not begun.
func (s *step) expire() (end func()) {
	var limited []*use
	every := time.Duration(0)
	for _, u := range s.uses {
		if limit := u.sendTimeout(); limit > 0 && len(u.producers) > 0 {
			limited = append(limited, u)
			if e := load.ExpireEvery(limit); every == 0 || e < every {
				every = e
			}
		}
	}
	if len(limited) == 0 {
		return func() {}
	}
	quit := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
			for _, u := range limited {
				for _, p := range u.producers {
					p.load.Expire(u.plan.SendTimeout)
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		looking.Wait()
	})
}
