// Package reconnect gives a worker another connection for a lost one. However many workers wait for a host, one
// attempt after the other probes it; when one succeeds, all workers connect.
package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Config has the settings and helpers with which a worker reconnects.
type Config struct {
	Name    string // of the worker
	URL     string
	Hosts   *sync.Map     // the same of all workers
	Order   func() []int  // of the hosts for a connection that replaces a lost one; nil for a single host
	Timeout time.Duration // for reconnecting; 0 for none
	Delay   time.Duration // the longest pause between attempts at a host
	// Spread returns how long the worker waits when its host is back; nil for not at all.
	Spread  func() time.Duration
	AtOnce  int // the most workers that connect to a host at the same time
	Outages *stats.Outages
	// Shut calls the Close of a connection that is not used, for a bounded time.
	Shut func(closing func(context.Context) error)
	// Remove removes the worker's remains at the broker; nil if there are none.
	Remove func(context.Context) error
}

type closer interface{ Close(context.Context) error }

// link is the connection of a worker, which is replaced when it is lost. One attempt after the other opens
// connections; the rest of the run sees one producer or consumer with continuous counters and waits.
type link[T closer] struct {
	Config
	produces bool
	// open opens a connection, by the hosts of that order. The function that it returns is called before the use of the
	// connection, if it is used.
	open    func(ctx context.Context, order []int) (T, func(), error)
	down    *driver.Meter  // time without a connection
	surplus sync.WaitGroup // attempts that are no longer needed
	outage  int            // in which the connection was lost last; of the worker's goroutine

	mu     sync.Mutex
	now    T         // the last connection
	opened time.Time // when
	lost   bool      // now is closed or closing
	done   bool      // the worker needs no connection any more
	ended  bool      // Close was called: no more connections
	before Past      // the connections before now

	silent atomic.Bool // the present connection has had no confirmation or receipt yet
}

func newLink[T closer](c *Config, produces bool, opened T) *link[T] {
	l := &link[T]{Config: *c, produces: produces, down: driver.NewMeter(), now: opened, opened: time.Now()}
	l.silent.Store(true)
	return l
}

// current returns the present connection, or the last one.
func (l *link[T]) current() T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Unreachable reports whether an error means that the broker is down, starting or stopping.
func Unreachable(err error) bool {
	return driver.ClassOf(err) == driver.ClassTimeout || lostBy(err)
}

// lostBy reports whether an error means that the connection was lost, not that the worker's task failed.
func lostBy(err error) bool {
	c := driver.ClassOf(err)
	return c == driver.ClassConnect || c == driver.ClassConnectionLost || c == driver.ClassClosedByBroker
}

// leave closes the lost connection, so that all its messages end.
func (l *link[T]) leave(cause error) {
	l.outage = l.Outages.Lost(l.Name, l.produces, false, cause, time.Now())
	l.down.Begin()
	l.mu.Lock()
	l.lost = true
	old := l.now
	l.mu.Unlock()
	l.Shut(old.Close)
}

// comeBack waits until an attempt to connect succeeds, ctx ends or the time-out is over. When ctx ends, it tries once
// more at once. The error is ctx's, or the reason why the worker cannot continue.
func (l *link[T]) comeBack(ctx context.Context, cause error) error {
	defer l.down.End()
	attempts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	outcomes := make(chan func() error)
	order := l.Order() // nil for a single host
	w := &waiter{
		attempts: attempts, produces: l.produces, news: make(chan struct{}, 1),
		refused: map[*host]bool{},
		try: func(ctx context.Context, host int, opened func()) error {
			var hosts []int
			if order != nil {
				hosts = []int{host}
			}
			return l.attempt(ctx, attempts, hosts, opened, outcomes)
		},
	}
	if l.Spread != nil {
		w.spread = l.Spread()
	}
	for i := range max(1, len(order)) {
		if order != nil {
			i = order[i]
		}
		w.hosts = append(w.hosts, l.host(i))
	}
	defer func() {
		cancel()
		w.leave()
		l.windUp(&w.running)
	}()
	var deadline <-chan time.Time
	if l.Timeout > 0 {
		deadline = time.After(l.Timeout)
	}
	began, done := time.Now(), ctx.Done()
	var last <-chan time.Time
	w.enter(time.Since(l.opened) >= lasting)
	for {
		select {
		case outcome := <-outcomes:
			return outcome()
		case <-deadline:
			return fmt.Errorf("not connected again within %s (--reconnect-timeout): %w",
				time.Since(began).Round(time.Millisecond), cmp.Or(w.last(), cause))
		case <-w.further.C:
			w.reach()
		case <-done:
			done, last = nil, time.After(lastTry)
			w.end()
		case <-last:
			return ctx.Err()
		case <-w.news:
			w.reachFurther()
		}
	}
}

// attempt opens a connection by the hosts of that order, and calls opened. A connection that comes too late is closed.
func (l *link[T]) attempt(
	ctx, wanted context.Context, order []int, opened func(), outcomes chan<- func() error,
) error {
	begun := time.Now()
	w, use, err := l.open(ctx, order)
	outcome := func() error { return l.adopt(w, use) }
	if err == nil {
		opened()
	}
	switch {
	case err != nil && wanted.Err() != nil:
		return err
	case err != nil:
		if cause := context.Cause(ctx); cause != nil { // a later attempt has replaced it
			err = cause
		}
		l.Outages.Attempt(err, begun)
		if c := driver.ClassOf(err); c != driver.ClassAuth && c != driver.ClassUnsupported {
			return err
		}
		outcome = func() error { return err }
	}
	select {
	case outcomes <- outcome:
	case <-wanted.Done():
		if err == nil {
			l.Shut(w.Close)
		}
	}
	return err
}

// adopt makes a new connection the present one.
func (l *link[T]) adopt(now T, use func()) error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		l.Shut(now.Close)
		return errEnded
	}
	l.before.Add(l.now) // only now: the new connection may have taken over from it
	l.now, l.lost, l.opened = now, false, time.Now()
	l.silent.Store(true)
	l.mu.Unlock()
	use()
	l.Outages.Connected(l.Name, time.Now())
	return nil
}

var errEnded = errors.New("the run is over")

// recordArrival records the first confirmation or receipt on a connection, which may end an outage. Later calls take no
// lock.
func (l *link[T]) recordArrival(confirmed bool) {
	if l.silent.Load() && l.silent.CompareAndSwap(true, false) {
		l.mu.Lock()
		opened := l.opened
		l.mu.Unlock()
		l.Outages.RecordArrival(confirmed, opened, time.Now())
	}
}

// Close closes the present connection, unless it is lost.
func (l *link[T]) Close(ctx context.Context) error {
	l.mu.Lock()
	ended := l.ended
	l.ended = true
	now, lost := l.now, l.lost
	l.mu.Unlock()
	if err := l.settled(ctx); err != nil {
		return err
	}
	if !lost {
		if err := now.Close(ctx); err != nil {
			return err
		}
	}
	if l.Remove != nil && !ended {
		return l.Remove(ctx)
	}
	return nil
}

// windUp lets attempts end that are no longer needed.
func (l *link[T]) windUp(attempts *sync.WaitGroup) {
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.surplus.Go(attempts.Wait)
	}
	l.mu.Unlock()
	if ended {
		attempts.Wait()
	}
}

// settled waits for the ends of attempts that are no longer needed.
func (l *link[T]) settled(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); l.surplus.Wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Counters implements [driver.Counting].
func (l *link[T]) Counters() []driver.Counter {
	return l.sums().Counters
}

// sums returns the sums of all connections.
func (l *link[T]) sums() Past {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := Past{slices.Clone(l.before.Counters), l.before.Waits}
	all.Add(l.now)
	return all
}

// Waiter returns the link if its connections report their waits: see [load.WaiterOf].
func (l *link[T]) Waiter() driver.Waiter {
	if load.WaiterOf(l.current()) == nil {
		return nil
	}
	return l
}

// Finish sets whether the worker's task is done, so that it needs no connection.
func (l *link[T]) Finish(done bool) {
	l.mu.Lock()
	l.done = done && !l.lost
	released := l.done
	l.mu.Unlock()
	if released {
		l.Outages.Released(l.Name, time.Now())
	}
}

// Waits implements [driver.Waiter]: the waits of all connections, and the time without a connection.
func (l *link[T]) Waits() driver.Waits {
	w, down := l.sums().Waits, l.down.Wait().Time // only the broker is waited for
	if l.produces {
		w.Answer.Time += down
	}
	for _, idle := range []*driver.Idle{&w.Input, &w.Reader} {
		if idle.Known {
			idle.Time += down
		}
	}
	return w
}

// Past sums up closed connections.
type Past struct {
	Counters []driver.Counter // the protocol's
	Waits    driver.Waits
}

// Add adds a producer or consumer.
func (p *Past) Add(worker any) {
	if counting, ok := worker.(driver.Counting); ok {
		p.Counters = stats.AddCounters(p.Counters, counting.Counters())
	}
	waiter := load.WaiterOf(worker)
	if waiter == nil {
		return
	}
	more := waiter.Waits()
	for _, w := range [][2]*driver.Wait{
		{&p.Waits.Credit, &more.Credit}, {&p.Waits.Socket, &more.Socket}, {&p.Waits.Answer, &more.Answer},
	} {
		w[0].Times, w[0].Time = w[0].Times+w[1].Times, w[0].Time+w[1].Time
	}
	for _, i := range [][2]*driver.Idle{{&p.Waits.Input, &more.Input}, {&p.Waits.Reader, &more.Reader}} {
		i[0].Known, i[0].Time = i[0].Known || i[1].Known, i[0].Time+i[1].Time
	}
}
