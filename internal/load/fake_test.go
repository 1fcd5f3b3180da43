package load_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sender is a driver.Producer made of a function.
type sender func(ctx context.Context, m *driver.Message) error

func (s sender) Send(ctx context.Context, m *driver.Message) error { return s(ctx, m) }
func (s sender) Close(context.Context) error                       { return nil }

// waitingSender is a sender that reports its waits.
type waitingSender struct {
	sender
	waits *driver.Waits
}

func (s waitingSender) Waits() driver.Waits { return *s.waits }

// rig is one producer, its recorder and a collector.
type rig struct {
	*running
	clock     *load.Clock
	rec       *stats.ProducerRecorder
	collector *stats.Collector
}

// constant returns the endless schedule of one rate.
func constant(t testing.TB, perSecond string) load.Schedule {
	t.Helper()
	return load.ConstantSchedule(rate(t, perSecond))
}

// setup is the configuration of a producer, and its load.
type setup struct {
	ID, Index, Total int
	Schedule         load.Schedule
	Count            uint64
	Until, Warmup    time.Duration
	Boundary         *load.Boundary
	MaxPending       int
	Precise          bool
	Ledger           *verify.Ledger
	Templates        []template.Message
	Mix              load.Mix
}

func (s setup) config() load.ProducerConfig {
	phases := new(load.Phases)
	phases.Begin(0, s.Warmup)
	return load.ProducerConfig{
		ID: s.ID, Phases: phases, Boundary: s.Boundary, MaxPending: s.MaxPending, Precise: s.Precise, Ledger: s.Ledger,
		Templates: s.Templates, Filler: template.NewFiller(1, 0),
	}
}

func (s setup) load() load.Load {
	return load.Load{Index: s.Index, Total: max(s.Total, 1), Schedule: s.Schedule, Count: s.Count, Until: s.Until, Mix: s.Mix}
}

// running is a producer with its load.
type running struct {
	*load.Producer
	load load.Load
}

func newRunning(s setup, clock *load.Clock, rec *stats.ProducerRecorder) *running {
	return &running{load.NewProducer(s.config(), clock, rec), s.load()}
}

func (r *running) Run(ctx context.Context) error { return r.Producer.Run(ctx, r.load) }

func newRig(cfg setup) *rig {
	r := &rig{clock: load.NewClock(), rec: stats.NewProducerRecorder(!cfg.Schedule.IsZero(), nil)}
	r.running = newRunning(cfg, r.clock, r.rec)
	r.collector = stats.NewCollector([]*stats.ProducerRecorder{r.rec}, nil, r.clock.Start())
	return r
}

func (r *rig) snapshot() *stats.Snapshot { return r.collector.Collect(stats.Measure, time.Now(), true) }

// answers is a broker that accepts each message at once. First Send does something, if not nil.
func (r *rig) answers(first func(*driver.Message)) sender {
	return func(_ context.Context, m *driver.Message) error {
		if first != nil {
			first(m)
		}
		r.Done(m.Slot, driver.Outcome{})
		return nil
	}
}

// later completes messages after a delay that may depend on the time since the start, each on a goroutine of its own.
func (r *rig) later(delay func(at time.Duration) time.Duration) sender {
	return func(_ context.Context, m *driver.Message) error {
		slot := m.Slot
		time.AfterFunc(delay(r.clock.Now()), func() { r.Done(slot, driver.Outcome{}) })
		return nil
	}
}

// pending counts the messages in flight, and fails if a slot is used twice at once.
type pending struct {
	mu        sync.Mutex
	t         testing.TB
	slots     map[driver.Slot]bool
	most      int
	sent      atomic.Uint64
	maxActive int
}

func newPending(t testing.TB, limit int) *pending {
	return &pending{t: t, slots: map[driver.Slot]bool{}, maxActive: limit}
}

func (p *pending) begin(s driver.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent.Add(1)
	if p.slots[s] {
		p.t.Errorf("slot %d is in flight already", s)
	}
	if int(s.Index()) >= p.maxActive {
		p.t.Errorf("slot %d of %d", s, p.maxActive)
	}
	p.slots[s] = true
	p.most = max(p.most, len(p.slots))
}

func (p *pending) end(s driver.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.slots, s)
}

func runFor(t testing.TB, p interface{ Run(context.Context) error }, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, p.Run(ctx))
}

// pass lets time pass on the fake clock of a bubble; nothing really waits.
// inBubble runs a test on a fake clock.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func pass(d time.Duration) { <-time.After(d) }

// sequence returns the variants of all messages of a load, by the numbers of the messages, as its producers send them.
func sequence(t testing.TB, weights []int, cfg setup) []int {
	t.Helper()
	cfg.MaxPending = 1
	list := make([]int, cfg.Count)
	for i := range list {
		list[i] = -1
	}
	for i := range cfg.Total {
		cfg.Index = i
		cfg.Mix = load.NewMix(weights)
		r := newRig(cfg)
		n := i
		r.Attach(r.answers(func(m *driver.Message) {
			list[n] = m.Variant
			n += cfg.Total
		}))
		require.NoError(t, r.Run(t.Context()))
	}
	return list
}
