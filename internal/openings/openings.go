// Package openings opens connections as a load: each at its due time, or as soon as another has opened. It holds
// them, sends and receives a few messages over each, and closes them.
//
// A connection costs no goroutine of this package while it rests, unless it receives. An opening that begins late,
// because too many others are in progress, is measured from its due time. Each connection that was due ends in exactly
// one of opened, refused, timed out, unmade and abandoned; an opened one is closed, lost or live.
package openings

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Config says what to open, and when.
type Config struct {
	Driver driver.Driver
	// Spec returns connection number n with its producer and consumer; nil for none.
	Spec func(n uint64) (driver.Connection, *driver.ProducerSpec, *driver.ConsumerSpec)
	// Within calls a function that opens, within the connect time-out.
	Within func(context.Context, func(context.Context) error) error

	Clock   *load.Clock
	Phases  *load.Phases
	Rec     *stats.ConnectionRecorder
	RunID   int64 // in the messages
	Precise bool  // as of [load.NewSleeper]

	Schedule    load.Schedule // of the openings of all shards; zero for the closed loop
	Count       uint64        // openings of all shards; 0 for no limit
	First, Step uint64        // this shard opens First, First + Step, ...
	AtOnce      int           // openings in progress
	Start       time.Duration // of the step, from the start of the run
	Until       time.Duration // from Start: openings due later are not begun, and ctx ends then; 0 for no limit
	Hold        time.Duration // for which all are open together; with Churn, each for itself
	Churn       bool
	Messages    int           // that each connection sends
	Patience    time.Duration // for the answer to a message, and for the next of many that close
}

// Load opens connections.
type Load struct {
	Config
	opening   sync.WaitGroup
	closing   sync.WaitGroup
	receiving context.Context //nolint:containedctx // ends with Close
	stop      context.CancelFunc
	ended     chan struct{} // closed when Run has returned

	mu      sync.Mutex
	live    map[*link]struct{}
	blocked time.Duration // for which openings waited for others
}

// New returns a load that has not begun.
func New(c *Config) *Load {
	l := &Load{Config: *c, live: map[*link]struct{}{}, ended: make(chan struct{})}
	l.receiving, l.stop = context.WithCancel(context.Background())
	return l
}

// Probe opens the first of the connections, and closes it.
func Probe(ctx context.Context, c *Config) error {
	k := &link{load: &Load{Config: *c}, quiet: true}
	if err := c.Within(ctx, func(ctx context.Context) error { return k.connect(ctx, c.First) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	_ = k.close(ctx) // that it opened is all that matters
	return nil
}

// Blocked returns the time for which openings that were due waited for others to end.
func (l *Load) Blocked() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked
}

// Run opens the connections that are due, until all are opened and were held for their time, or ctx ends. Connections
// may still be open when it returns: see [Load.Close].
func (l *Load) Run(ctx context.Context) {
	defer close(l.ended)
	l.openAll(ctx)
	l.opening.Wait() // each opening is bounded
	if l.Until == 0 || !l.Churn && l.Hold > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, l.Hold) // with churn: of the last one
		defer end()
	}
	<-ctx.Done()
}

// openAll begins the openings, and counts due ones that do not begin.
func (l *Load) openAll(ctx context.Context) {
	sleeper := load.NewSleeper(ctx, l.Clock, l.Precise)
	defer sleeper.Close()
	room := make(chan struct{}, l.AtOnce)
	limit, scheduled := l.Count, !l.Schedule.IsZero()
	if limit == 0 {
		limit = math.MaxUint64
	}
	for n := l.First; n < limit; n += l.Step {
		var due time.Duration
		if scheduled {
			at := l.Schedule.At(n)
			if at == math.MaxInt64 || l.Until > 0 && at >= l.Until {
				return
			}
			if due = l.Start + at; !sleeper.Until(due) {
				return
			}
		}
		if !l.enter(ctx, room) {
			if scheduled {
				l.abandon(n, limit)
			}
			return
		}
		if !scheduled {
			due = l.Clock.Now()
		}
		l.opening.Go(func() { l.open(ctx, n, due, func() { <-room }) })
	}
}

// enter waits until there is room for another opening. It is false when ctx has ended.
func (l *Load) enter(ctx context.Context, room chan<- struct{}) bool {
	select {
	case room <- struct{}{}:
		return ctx.Err() == nil
	default:
	}
	since := l.Clock.Now()
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.blocked += l.Clock.Now() - since
	l.mu.Unlock()
	return ctx.Err() == nil
}

// abandon counts the openings from n to below limit that are due by now.
func (l *Load) abandon(n, limit uint64) {
	now := l.Clock.Now() - l.Start
	if l.Until > 0 {
		now = min(now, l.Until)
	}
	for limit = min(limit, l.Schedule.Due(now)); n < limit; n += l.Step {
		l.Rec.Add(l.Phases.PhaseAt(l.Start+l.Schedule.At(n)), result.OpenAbandoned, 1)
	}
}

// open opens a connection, and sends its messages.
func (l *Load) open(ctx context.Context, number uint64, due time.Duration, opened func()) {
	k := &link{load: l, phase: l.Phases.PhaseAt(due)}
	err := l.Within(ctx, func(ctx context.Context) error { return k.connect(ctx, number) })
	took := l.Clock.Now() - due
	opened()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		l.Rec.Add(k.phase, result.OpenAbandoned, 1)
		return
	default:
		l.Rec.NotOpened(k.phase, err)
		return
	}
	l.Rec.Timed(k.phase, result.Opened, result.Open, took)
	k.prepare()
	l.keep(k)
	k.watch()
	k.send(ctx)
}

// keep adds an open connection to the held ones.
func (l *Load) keep(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[k] = struct{}{}
	if l.Churn {
		k.timer = time.AfterFunc(l.Hold, func() { l.end(context.Background(), k) })
	}
}

// take removes a held connection, for its closing. It is false for one that is closing already.
func (l *Load) take(k *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, held := l.live[k]; !held {
		return false
	}
	delete(l.live, k)
	l.closing.Add(1)
	if k.timer != nil {
		k.timer.Stop()
	}
	return true
}

// end closes a connection by plan. It reports whether the broker has confirmed that.
func (l *Load) end(ctx context.Context, k *link) bool {
	if !l.take(k) {
		return true
	}
	defer l.closing.Done()
	began := l.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()
	err := k.close(ctx)
	if err != nil || ctx.Err() != nil {
		l.Rec.Add(k.phase, result.ConnectionsClosed, 1)
		return false
	}
	l.Rec.Timed(k.phase, result.ConnectionsClosed, result.Close, l.Clock.Now()-began)
	return true
}

// lost counts a connection that has ended by itself, and closes the rest of it.
func (l *Load) lost(k *link, why error) {
	if !l.take(k) {
		return
	}
	l.Rec.Lost(k.phase, why)
	go func() {
		defer l.closing.Done()
		ctx, cancel := context.WithTimeout(context.Background(), l.Patience)
		defer cancel()
		_ = k.close(ctx) // nothing is left to confirm it
	}()
}

// closeAtOnce is the number of connections that close at the same time.
const closeAtOnce = 64

// Close closes all connections. It gives up waiting for the broker's confirmations when none has come for Patience, or
// when ctx ends, and returns the number of connections without. The context of Run has ended, or Run has returned.
func (l *Load) Close(ctx context.Context) (unconfirmed int) {
	<-l.ended
	l.mu.Lock()
	list := slices.Collect(maps.Keys(l.live))
	l.mu.Unlock()
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	patience := time.AfterFunc(l.Patience, giveUp)
	defer patience.Stop()
	var missing atomic.Int64
	var workers errgroup.Group
	workers.SetLimit(closeAtOnce)
	for _, k := range list {
		workers.Go(func() error {
			if l.end(ctx, k) {
				patience.Reset(l.Patience)
			} else {
				missing.Add(1)
			}
			return nil
		})
	}
	_ = workers.Wait() // none fails
	l.stop()
	l.closing.Wait()
	return int(missing.Load())
}
