package brokerside

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// patience bounds one question.
	patience = 5 * time.Second
	// stale is the age at which a depth is no longer reported.
	stale = 2500 * time.Millisecond
	// maxDestinations bounds the destinations of a broker: each is a question or more per second.
	maxDestinations = 200
)

// lag returns the age that the counters of an inspector may have.
func lag(i driver.Inspector) time.Duration {
	if l, ok := i.(interface{ Lag() time.Duration }); ok {
		return l.Lag()
	}
	return 0
}

// Depth is the number of messages at a destination.
type Depth struct {
	Destination string
	Messages    uint64
}

// Backlog returns the number of messages at all destinations; nil if it is unknown.
func Backlog(depths []Depth) *uint64 {
	if len(depths) == 0 {
		return nil
	}
	var n uint64
	for _, d := range depths {
		n += d.Messages
	}
	return &n
}

// Counts asks brokers for their counters of destinations. Its methods are for one goroutine, except Depths.
type Counts struct {
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

	turn chan struct{} // full while the broker is asked

	// Guarded by Counts.mu.
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

// Growth is the growth of a destination's counters.
type Growth struct {
	Depth, Added, Acknowledged driver.Count
	// Gone: the broker does not have the destination any more; the counts are the last ones before.
	Gone bool
	// Broke: the broker could not be reached for a while. It may have restarted, and its counters may have passed the
	// last answer by the next: less growth than expected says nothing.
	Broke bool
	Why   string // why the growth is not known
}

// NewCounts returns counts of no broker.
func NewCounts() *Counts {
	w := &Counts{}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Add notes the counters of a broker as the start of its destinations' growth, and asks for them each second from then
// on. It waits for the first answer, for a time. Notes call the broker by name.
func (w *Counts) Add(ctx context.Context, name string, inspector driver.Inspector, destinations []driver.Destination) {
	b := &broker{name: name, inspector: inspector, destinations: destinations, turn: make(chan struct{}, 1)}
	defer func() { // from now on others see it
		w.mu.Lock()
		defer w.mu.Unlock()
		w.brokers = append(w.brokers, b)
	}()
	if len(destinations) > maxDestinations {
		b.over, b.failed, b.why = true, true, fmt.Sprintf("it is asked for at most %d destinations, and the run has %d",
			maxDestinations, len(destinations))
		return
	}
	w.ask(ctx, b)
	used := slices.ContainsFunc(b.counts, func(c count) bool { return c.first.Added.N > 0 })
	if lag := lag(inspector); lag > 0 && used { // older messages may not be in the counters yet
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			return
		}
		b.counts = nil
		w.ask(ctx, b)
	}
	if b.over = b.over || b.counts == nil; b.over { // later answers would lack a beginning
		return
	}
	w.asking.Go(func() {
		repeat(w.ctx, func() time.Duration { return interval }, func() bool { return w.ask(w.ctx, b) })
	})
}

// ask asks a broker once. It returns false when asking again is useless.
func (w *Counts) ask(ctx context.Context, b *broker) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done(): // another question has no answer yet
		return true
	}
	list, err := b.inspector.Inspect(ctx, b.destinations)
	if err == nil && len(list) != len(b.destinations) {
		err = fmt.Errorf("it returned the counters of %d destinations instead of %d", len(list), len(b.destinations))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.ctx.Err() == nil {
			b.fail(err)
		}
		return !b.over
	}
	b.asked, b.failed = time.Now(), false
	if b.counts == nil {
		b.counts = make([]count, len(list))
		for i := range list {
			b.counts[i] = count{first: list[i], last: list[i]}
		}
	}
	for i := range list {
		b.counts[i].update(&list[i])
	}
	return true
}

// fail notes a question without an answer.
func (b *broker) fail(err error) {
	class := driver.ClassOf(err)
	b.failed = true
	if b.why == "" && class != driver.ClassUnsupported {
		b.why = err.Error()
	}
	b.broke = b.broke || class == driver.ClassConnect || class == driver.ClassConnectionLost
	b.over = b.over || class == driver.ClassUnsupported || class == driver.ClassAuth
}

// update takes an answer. A destination that the broker removes, as brokers do with unused destinations, keeps its last
// counts. When it is made again, or the broker has restarted, the count begins again.
func (c *count) update(now *driver.DestinationCount) {
	less := now.Added.N < c.last.Added.N || now.Acknowledged.N < c.last.Acknowledged.N
	if less && now.Added.N == 0 && now.Acknowledged.N == 0 && now.Depth.N == 0 {
		c.gone = true
		c.last.Depth, c.last.Consumers = now.Depth, now.Consumers
		return
	}
	c.anew = c.anew || less || c.gone && now.Added.N > 0
	c.gone, c.last = false, *now
}

// Depths returns the depths of the destinations in the last answer, if it is recent, in the order in which the
// destinations were added. It does not wait for any broker.
func (w *Counts) Depths() (list []Depth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.brokers {
		if time.Since(b.asked) > stale {
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
func (w *Counts) Ask(ctx context.Context) {
	w.mu.Lock()
	var all sync.WaitGroup
	for _, b := range w.brokers {
		if !b.over {
			all.Go(func() { w.ask(ctx, b) })
		}
	}
	w.mu.Unlock()
	all.Wait()
}

// Lag returns the greatest age that the counters of a broker may have.
func (w *Counts) Lag() (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.brokers {
		if !b.over {
			longest = max(longest, lag(b.inspector))
		}
	}
	return longest
}

// Growth returns the growth of the counters of a destination as of the last answer. The arguments are the indexes of
// its broker and of the destination, in the order of Add.
func (w *Counts) Growth(broker, destination int) (g Growth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.brokers[broker]
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
		g.Added, g.Acknowledged = growth(c.first.Added, c.last.Added), growth(c.first.Acknowledged, c.last.Acknowledged)
		if c.first.Added.Known && !c.last.Added.Known {
			g.Why = "the broker has not counted messages of these destinations"
		}
	}
	return g
}

// growth returns the growth of a counter, which is known if both counts are.
func growth(first, last driver.Count) driver.Count {
	return driver.Count{N: last.N - min(first.N, last.N), Known: first.Known && last.Known}
}

// Notes returns a note for each broker that did not answer the last question, or the first. A late answer in between
// costs no more than a depth.
func (w *Counts) Notes() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.brokers {
		switch {
		case b.why == "" || !b.failed:
		case b.name == "":
			list = append(list, b.why)
		default:
			list = append(list, "broker "+b.name+": "+b.why)
		}
	}
	return list
}

// Close ends the questions.
func (w *Counts) Close() {
	w.stop()
	w.asking.Wait()
	for _, b := range w.brokers {
		if c, ok := b.inspector.(interface{ Close() }); ok {
			c.Close()
		}
	}
}
