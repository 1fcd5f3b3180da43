package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// comeback wakes the workers without a connection when one of them is connected again to the same broker, because their
// pauses have grown during the outage. It is safe for concurrent use.
type comeback struct {
	mu   sync.Mutex
	told chan struct{}
}

// comebacks holds a comeback for each broker, by its URL.
type comebacks struct{ sync.Map }

func (c *comebacks) at(url string) *comeback {
	b, _ := c.LoadOrStore(url, &comeback{told: make(chan struct{})})
	return b.(*comeback) //nolint:forcetypeassert // there is nothing else in the map
}

// next returns a channel that is closed when the next worker is connected again.
func (c *comeback) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

func (c *comeback) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.told)
	c.told = make(chan struct{})
}

// news returns a channel that is closed when another worker is connected again; nil for exact pauses.
func (l *link[T]) news() <-chan struct{} {
	if l.backoff.Exact {
		return nil
	}
	return l.others.next()
}

var errGivenUp = errors.New("the time for connecting again is over")

// rest waits for about d, or shorter if another worker is connected again meanwhile: then woken is true. The error is
// that of ctx or errGivenUp.
func (l *link[T]) rest(
	ctx context.Context, d time.Duration, others <-chan struct{}, deadline <-chan time.Time,
) (woken bool, err error) {
	pause := jittered(d)
	if l.backoff.Exact {
		pause = d
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return woken, nil
		case <-others:
			others, woken = nil, true
			if d > firstPause {
				timer.Reset(jittered(firstPause))
			}
		case <-deadline:
			return woken, errGivenUp
		case <-ctx.Done():
			return woken, ctx.Err()
		}
	}
}

// jittered returns a time between half of d and d, so that workers that have lost their connections together do not
// reconnect together.
func jittered(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // nothing secret
}
