package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// link is the connection of a worker, which is replaced when it is lost. One attempt after the other opens
// connections; the rest of the run sees one producer or consumer with continuous counters and waits.
type link[T interface{ Close(context.Context) error }] struct {
	name     string
	produces bool
	// open opens a connection, by the hosts of that order. The function that it returns is called before the use of the
	// connection, if it is used.
	open    func(ctx context.Context, order []int) (T, func(), error)
	order   func() []int  // of the hosts for a connection that replaces a lost one; nil for a single host
	timeout time.Duration // for reconnecting; 0 for none
	backoff plan.Backoff
	closing time.Duration // bounds the closing of a lost connection
	outages *stats.Outages
	hosts   *sync.Map // of the run
	url     string
	down    *driver.Meter               // time without a connection
	surplus sync.WaitGroup              // attempts that are no longer needed
	outage  int                         // in which the connection was lost last; of the worker's goroutine
	remove  func(context.Context) error // removes the worker's remains at the broker; nil if there are none

	mu     sync.Mutex
	now    T         // the last connection
	opened time.Time // when
	lost   bool      // now is closed or closing
	done   bool      // the worker needs no connection any more
	ended  bool      // Close was called: no more connections
	before past      // the connections before now

	silent atomic.Bool // the present connection has had no confirmation or receipt yet
}

func newLink[T interface{ Close(context.Context) error }](
	r *run, name string, produces bool, g *plan.Group, e *Endpoint, stays *stays, opened T,
) *link[T] {
	l := &link[T]{
		name: name, produces: produces, timeout: g.ReconnectTimeout, backoff: g.Probing(),
		order: func() []int { return stays.orderAfter(g, e) }, closing: min(e.ConnectTimeout, closeTimeout),
		outages: r.outages, hosts: &r.probed, url: e.URL, down: driver.NewMeter(), now: opened, opened: time.Now(),
	}
	l.silent.Store(true)
	return l
}

// current returns the present connection, or the last one.
func (l *link[T]) current() T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// lostBy reports whether an error means that the connection was lost, not that the worker's task failed.
func lostBy(err error) bool { return unreachable(err) && driver.ClassOf(err) != driver.ClassTimeout }

// reconnect replaces the lost connection: it leaves it, and comes back.
func (l *link[T]) reconnect(ctx context.Context, cause error) error {
	l.leave(ctx, cause)
	return l.comeBack(ctx, cause)
}

// leave closes the lost connection, so that all its messages end.
func (l *link[T]) leave(ctx context.Context, cause error) {
	l.outage = l.outages.Lost(l.name, l.produces, false, cause, time.Now())
	l.down.Begin()
	l.drop(ctx)
}

// comeBack waits until an attempt to connect succeeds, ctx ends or the time-out is over. When ctx ends, it tries once
// more at once. The error is ctx's, or the reason why the worker cannot continue.
func (l *link[T]) comeBack(ctx context.Context, cause error) error {
	defer l.down.End()
	attempts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	outcomes := make(chan func() error)
	order := l.order()
	w := &waiter{
		attempts: attempts, produces: l.produces, news: make(chan struct{}, 1),
		fails: map[*host]int{}, tried: map[*host]time.Time{},
		try: func(ctx context.Context, host int) error {
			var hosts []int
			if order != nil {
				hosts = []int{host}
			}
			return l.attempt(ctx, attempts, hosts, outcomes)
		},
	}
	for _, i := range order {
		w.hosts = append(w.hosts, l.host(i))
	}
	if order == nil {
		w.hosts = []*host{l.host(0)}
	}
	defer func() {
		cancel()
		w.leave()
		l.windUp(&w.running)
	}()
	var deadline <-chan time.Time
	if l.timeout > 0 {
		timer := time.NewTimer(l.timeout)
		defer timer.Stop()
		deadline = timer.C
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
			if attempts, last := w.failed(l.backoff.Attempts); last {
				return ctx.Err()
			} else if attempts {
				return fmt.Errorf("not connected again by %d attempts (maxReconnectAttempts): %w", l.backoff.Attempts, w.last())
			}
		}
	}
}

// attempt opens a connection by the hosts of that order. One that comes too late is closed.
func (l *link[T]) attempt(ctx, wanted context.Context, order []int, outcomes chan<- func() error) error {
	begun := time.Now()
	w, use, err := l.open(ctx, order)
	outcome := func() error { return l.adopt(ctx, w, use) }
	switch {
	case err != nil && wanted.Err() != nil:
		return err
	case err != nil:
		if cause := context.Cause(ctx); cause != nil { // a later attempt has replaced it
			err = cause
		}
		l.outages.Attempt(err, begun)
		if !hopeless(err) {
			return err
		}
		outcome = func() error { return err }
	}
	select {
	case outcomes <- outcome:
	case <-wanted.Done():
		if err == nil {
			l.shut(ctx, w)
		}
	}
	return err
}

// shut closes a connection that is not used.
func (l *link[T]) shut(ctx context.Context, w T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.closing)
	defer cancel()
	// its errors do not matter
	_, _ = callWithin(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, w.Close(ctx) })
}

// hopeless reports whether further attempts cannot succeed.
func hopeless(err error) bool {
	switch driver.ClassOf(err) {
	case driver.ClassAuth, driver.ClassUnsupported:
		return true
	default:
		return false
	}
}

// drop closes the lost connection.
func (l *link[T]) drop(ctx context.Context) {
	l.mu.Lock()
	l.lost = true
	old := l.now
	l.mu.Unlock()
	l.shut(ctx, old)
}

// adopt makes a new connection the present one.
func (l *link[T]) adopt(ctx context.Context, now T, use func()) error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		l.shut(ctx, now)
		return errEnded
	}
	l.before.add(l.now) // only now: the new connection may have taken over from it
	l.now, l.lost, l.opened = now, false, time.Now()
	l.silent.Store(true)
	l.mu.Unlock()
	use()
	l.outages.Connected(l.name, time.Now())
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
		l.outages.RecordArrival(confirmed, opened, time.Now())
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
	if l.remove != nil && !ended {
		return l.remove(ctx)
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
	return l.sums().counters
}

// sums returns the sums of all connections.
func (l *link[T]) sums() past {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := past{slices.Clone(l.before.counters), l.before.waits}
	all.add(l.now)
	return all
}

// ReportsWaits reports whether the connections are driver.Waiters: see [load.WaiterOf].
func (l *link[T]) ReportsWaits() bool {
	_, ok := any(l.current()).(driver.Waiter)
	return ok
}

// finish sets whether the worker's task is done, so that it needs no connection.
func (l *link[T]) finish(done bool) {
	l.mu.Lock()
	l.done = done && !l.lost
	released := l.done
	l.mu.Unlock()
	if released {
		l.outages.Released(l.name, time.Now())
	}
}

// Waits implements [driver.Waiter]: the waits of all connections, and the time without a connection.
func (l *link[T]) Waits() driver.Waits {
	w, down := l.sums().waits, l.down.Wait().Time // only the broker is waited for
	if l.produces {
		w.Answer.Time += down
	}
	for _, idle := range []*driver.Idle{&w.Input, &w.Reader, &w.Writer} {
		if idle.Known {
			idle.Time += down
		}
	}
	return w
}

// past sums up closed connections.
type past struct {
	counters []driver.Counter // the protocol's
	waits    driver.Waits
}

func (p *past) add(worker any) {
	if counting, ok := worker.(driver.Counting); ok {
		p.counters = stats.AddCounters(p.counters, counting.Counters())
	}
	waiter, ok := worker.(driver.Waiter)
	if !ok {
		return
	}
	more := waiter.Waits()
	for _, w := range [][2]*driver.Wait{
		{&p.waits.Credit, &more.Credit}, {&p.waits.Socket, &more.Socket}, {&p.waits.Answer, &more.Answer},
	} {
		w[0].Times, w[0].Time = w[0].Times+w[1].Times, w[0].Time+w[1].Time
	}
	for _, i := range [][2]*driver.Idle{
		{&p.waits.Input, &more.Input}, {&p.waits.Reader, &more.Reader}, {&p.waits.Writer, &more.Writer},
	} {
		i[0].Known, i[0].Time = i[0].Known || i[1].Known, i[0].Time+i[1].Time
	}
}
