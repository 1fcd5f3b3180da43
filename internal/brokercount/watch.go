package brokercount

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// interval is the time between two questions to a broker.
	interval = time.Second
	// patience bounds one question, lastPatience one at the end of a run.
	patience     = 2 * time.Second
	lastPatience = time.Second
	// stale is the age from which on a depth is no longer told.
	stale = 2500 * time.Millisecond
	// MaxDestinations is how many destinations of a broker are asked for: each is a question or more per second.
	MaxDestinations = 200
)

// lagging is an inspector whose counters are not those of the moment.
type lagging interface{ Lag() time.Duration }

// closing is an inspector with something to close.
type closing interface{ Close() }

// Depth is how many messages a destination has.
type Depth struct {
	Destination string
	Messages    uint64
}

// Watch asks brokers for their counters. Its methods are for one goroutine, but for Depths.
type Watch struct {
	// Patience bounds one question; 0 is a default.
	Patience time.Duration

	mu      sync.Mutex
	brokers []*broker
	asking  sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // of the goroutines that ask
}

// broker is a broker that counts some destinations.
type broker struct {
	name         string // in notes
	inspector    driver.Inspector
	destinations []driver.Destination

	turn chan struct{} // held while the broker is asked

	// Guarded by Watch.mu.
	counts []count
	asked  time.Time // when the last answer came
	over   bool      // it will not be asked again
	why    string    // the first failure worth a note
	failed bool      // the last question had no answer
	broke  bool      // a question had no answer because there was no connection
}

// count has the known counts of one destination.
type count struct {
	first, last driver.DestinationCount
	gone        bool // the broker does not have it any more
	anew        bool // it counts anew: the earlier count is lost
}

// Growth is by how much the counters of a destination have grown.
type Growth struct {
	Depth, Added, Acknowledged driver.Count
	// the broker does not have the destination any more; the counts are the last ones before
	Gone bool
	// Broke: the broker could not be reached for a while. It may have started again meanwhile, and its counters may be
	// beyond the last answer by the next: less growth than expected says nothing.
	Broke bool
	Why   string // why the growth is not known
}

// New returns a watch without brokers.
func New() *Watch {
	w := &Watch{Patience: patience}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Add takes the counters from which those of destinations grow, and asks for them each second from then on. It waits
// for the first answer, for a time. The name is that of the broker in notes.
func (w *Watch) Add(ctx context.Context, name string, inspector driver.Inspector, destinations []driver.Destination) {
	b := &broker{name: name, inspector: inspector, destinations: destinations, turn: make(chan struct{}, 1)}
	w.mu.Lock()
	w.brokers = append(w.brokers, b)
	w.mu.Unlock()
	if len(destinations) > MaxDestinations {
		b.over, b.failed, b.why = true, true, fmt.Sprintf("it is asked for at most %d destinations, and the run has %d",
			MaxDestinations, len(destinations))
		return
	}
	w.ask(ctx, b)
	w.mu.Lock()
	known := b.counts != nil
	b.over = b.over || !known // later answers would lack a beginning
	w.mu.Unlock()
	if !known {
		return
	}
	w.settleFirst(ctx, b)
	w.asking.Go(func() { w.follow(b) })
}

// settleFirst waits until messages from before the run are in the counters of a broker whose counters lag, if there
// were any.
func (w *Watch) settleFirst(ctx context.Context, b *broker) {
	l, ok := b.inspector.(lagging)
	if !ok || l.Lag() == 0 {
		return
	}
	w.mu.Lock()
	used := false
	for i := range b.counts {
		used = used || b.counts[i].first.Added.N > 0
	}
	w.mu.Unlock()
	if !used {
		return
	}
	select {
	case <-time.After(l.Lag()):
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	b.counts = nil
	w.mu.Unlock()
	w.ask(ctx, b)
}

// follow asks a broker each second until the watch ends.
func (w *Watch) follow(b *broker) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return
		}
		if !w.ask(w.ctx, b) {
			return
		}
	}
}

// ask asks a broker once. It returns false when there is no use in asking again.
func (w *Watch) ask(ctx context.Context, b *broker) (again bool) { return w.askFor(ctx, b, w.Patience) }

func (w *Watch) askFor(ctx context.Context, b *broker, limit time.Duration) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return true
	}
	list, err := b.inspector.Inspect(ctx, b.destinations)
	if err == nil && len(list) != len(b.destinations) {
		err = fmt.Errorf("it returned the counters of %d destinations instead of %d", len(list), len(b.destinations))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.ctx.Err() == nil {
		b.failed = true
		class := driver.ClassOf(err)
		if b.why == "" && class != driver.ClassUnsupported {
			b.why = err.Error()
		}
		b.broke = b.broke || class == driver.ClassConnect || class == driver.ClassConnectionLost
		b.over = b.over || class == driver.ClassUnsupported || class == driver.ClassAuth
	}
	if err != nil {
		return !b.over
	}
	b.asked, b.failed = time.Now(), false
	if b.counts == nil {
		b.counts = make([]count, len(list))
		for i := range list {
			b.counts[i] = count{first: list[i], last: list[i]}
		}
		return true
	}
	for i := range list {
		b.counts[i].see(&list[i])
	}
	return true
}

// see takes an answer. A destination that the broker removes, as brokers do with unused destinations, keeps its last
// counts; when it is made again, or the broker has started again, the count has begun anew.
func (c *count) see(now *driver.DestinationCount) {
	less := now.Added.N < c.last.Added.N || now.Acknowledged.N < c.last.Acknowledged.N
	switch {
	case less && now.Added.N == 0 && now.Acknowledged.N == 0 && now.Depth.N == 0:
		c.gone = true
		c.last.Depth, c.last.Consumers = now.Depth, now.Consumers
		return
	case less, c.gone && now.Added.N > 0:
		c.anew = true
	}
	c.gone, c.last = false, *now
}

// Depths returns the depths of the destinations in the last answer, if that is not long ago, in the order in which
// the destinations were added. It does not wait for any broker.
func (w *Watch) Depths() (list []Depth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, b := range w.brokers {
		if now.Sub(b.asked) > stale {
			continue
		}
		for i := range b.counts {
			if depth := b.counts[i].last.Depth; depth.Known {
				list = append(list, Depth{b.destinations[i].String(), depth.N})
			}
		}
	}
	return list
}

// Ask asks all brokers once more, side by side.
func (w *Watch) Ask(ctx context.Context) {
	w.mu.Lock()
	brokers := w.brokers
	w.mu.Unlock()
	var all sync.WaitGroup
	for _, b := range brokers {
		w.mu.Lock()
		over := b.over
		w.mu.Unlock()
		if !over {
			all.Go(func() { w.askFor(ctx, b, min(w.Patience, lastPatience)) })
		}
	}
	all.Wait()
}

// Lag returns how old the counters of the broker that lags most may be.
func (w *Watch) Lag() (lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.brokers {
		if l, ok := b.inspector.(lagging); ok && !b.over {
			lag = max(lag, l.Lag())
		}
	}
	return lag
}

// Growth returns by how much the counters of a destination of the broker that was added as the n-th have grown, as of
// the last answer.
func (w *Watch) Growth(n, destination int) (g Growth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.brokers[n]
	if b.counts == nil {
		g.Why = b.why
		return g
	}
	c := &b.counts[destination]
	g.Depth, g.Gone, g.Broke = c.last.Depth, c.gone, b.broke
	switch {
	case c.anew:
		g.Why = "the broker has begun to count anew"
	case b.failed:
		g.Why = b.why
	default:
		g.Added, g.Acknowledged = grown(c.first.Added, c.last.Added), grown(c.first.Acknowledged, c.last.Acknowledged)
		if c.first.Added.Known && !c.last.Added.Known {
			g.Why = "the broker has not counted messages of these destinations"
		}
	}
	return g
}

// grown returns the growth of a counter, which is known if both counts are. A counter of a destination that was not
// there before may be known later only.
func grown(first, last driver.Count) driver.Count {
	return driver.Count{N: last.N - min(first.N, last.N), Known: first.Known && last.Known}
}

// Note is why a broker did not answer, or not always.
type Note struct{ Broker, Text string }

// Notes returns a note for each broker that did not answer the last question, or the first. One that was late in
// between, as brokers on a busy machine are, has lost nothing but a depth.
func (w *Watch) Notes() (list []Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.brokers {
		if b.why != "" && b.failed {
			list = append(list, Note{b.name, b.why})
		}
	}
	return list
}

// Close ends the questions. It returns soon: it does not wait longer for a broker that does not answer.
func (w *Watch) Close() {
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.asking.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
	}
	for _, b := range w.brokers {
		if c, ok := b.inspector.(closing); ok {
			c.Close()
		}
	}
}
