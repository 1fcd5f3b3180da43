package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// maxDelay bounds the delays of delivery that messages carry.
const maxDelay = 10 * 366 * 24 * time.Hour

// NewQuota returns a function to call for each of n messages that several consumers may receive together; it calls used
// once, when the last of them was received. It is safe for concurrent use.
func NewQuota(n uint64, used func()) func() {
	var left atomic.Int64
	left.Store(int64(n))
	return func() {
		if left.Add(-1) == 0 {
			used()
		}
	}
}

// ConsumerConfig holds the settings of one consumer.
type ConsumerConfig struct {
	// OwnOnly treats messages of other runs as foreign. It is for runs that send and receive in one process. A message
	// without a run number counts as foreign if it was not sent since the clock's start.
	OwnOnly bool
	// Run is the run number in the messages of this run.
	Run int64
	// Boundary decides, with OwnOnly, which messages were due in the warm-up.
	Boundary *Boundary
	// Phases decides, without OwnOnly, which messages were received in the warm-up.
	Phases *Phases
	// Shard is the number of this process, from 1 to Shards; the producers of the run are dealt out to the shards in turn.
	// Both are 0 in a run of one process.
	Shard, Shards int
	// Pulse has perfmq's pauses; it may be nil.
	Pulse *stats.Pulse
	// Quota, if not nil, is called for each message received, and ends the run when it is used up: see [NewQuota].
	Quota func()
	// Precise makes that work sleep on the operating system's best timer; not under a fake clock.
	Precise bool
	// Trace notes the sampled messages; nil for none.
	Trace *Trace
	// Checker, if not nil, verifies the messages; with OwnOnly it also decides which messages are foreign.
	Checker *verify.Checker
}

// Consumer records the messages that one driver.Consumer receives.
type Consumer struct {
	cfg      ConsumerConfig
	clock    *Clock
	rec      *stats.ConsumerRecorder
	consumer driver.Consumer

	job    atomic.Pointer[Job] // of the present step
	worker *worker             // works on job in Run's goroutine; nil without work
	ctx    context.Context     //nolint:containedctx // Run's, which ends the work
}

// Job is a consumer's treatment of each message in a step.
type Job struct {
	Work Work          // done before the message is settled
	Each time.Duration // minimum time between messages, by a rate; 0 for none
	Fail *Fail         // selects the messages that are not accepted; nil for none
}

// NewConsumer returns a consumer that records the messages that c receives.
func NewConsumer(cfg ConsumerConfig, clock *Clock, rec *stats.ConsumerRecorder, c driver.Consumer) *Consumer {
	return &Consumer{cfg: cfg, clock: clock, rec: rec, consumer: c}
}

// SetJob sets the treatment of the messages from now on. It is safe to call during Run.
func (c *Consumer) SetJob(job Job) {
	if job == (Job{}) {
		c.job.Store(nil)
		return
	}
	c.job.Store(&job)
}

// Run receives until ctx ends, and then returns nil, or until the driver fails.
func (c *Consumer) Run(ctx context.Context) error {
	c.ctx = ctx
	c.rec.Ready(c.clock.Now())
	defer c.endWork()
	return c.consumer.Run(ctx, c.deliver)
}

func (c *Consumer) deliver(d *driver.Delivery) driver.Verdict {
	received := c.clock.Now()
	job, verdict := c.job.Load(), driver.Accept
	if job != nil && job.Fail != nil && (!c.cfg.OwnOnly || d.ID.Run == c.cfg.Run) {
		verdict = job.Fail.next()
	}
	if verdict == driver.Release {
		c.rec.Released(c.phase(d, received), received)
	} else {
		c.countMessage(d, received, verdict, job != nil && job.Fail != nil && d.Redelivered)
	}
	if job != nil && (!job.Work.IsZero() || job.Each > 0) {
		if c.worker == nil || c.worker.job != job {
			c.endWork()
			c.worker = newWorker(c.ctx, job, c.clock, c.cfg.Precise)
		}
		c.rec.Work(received)
		c.rec.Worked(c.worker.workOn(received))
	}
	if c.cfg.Trace != nil && c.traces(&d.ID) {
		c.trace(d, received, verdict)
	}
	return verdict
}

func (c *Consumer) endWork() {
	if c.worker != nil {
		c.worker.wait.Close()
	}
}

// countMessage counts a message that is accepted or rejected, so that the consumer does not expect it again.
func (c *Consumer) countMessage(d *driver.Delivery, since time.Duration, verdict driver.Verdict, again bool) {
	now := c.clock.Epoch(since)
	m := stats.Receipt{
		Stamped:     d.HasTime && d.Time > 0 && d.Time < now+stats.MaxLatency.Microseconds(),
		Redelivered: d.Redelivered,
		Rejected:    verdict == driver.Reject,
		Again:       again || d.Deferred,
		Size:        len(d.Body),
		At:          since,
	}
	foreign, legible := c.isForeign(d, now, m.Stamped)
	if foreign && c.cfg.OwnOnly {
		c.rec.Foreign(since)
		return
	}
	if m.Stamped {
		m.Transfer = time.Duration(now-d.Time) * time.Microsecond
		sent := since - m.Transfer // of another process maybe while this one was paused
		m.Paused = c.cfg.Pulse.Spans(sent, since) || !c.cfg.OwnOnly && c.cfg.Pulse.Delayed(sent, since)
		m.Delay = time.Duration(min(d.ID.Delay, maxDelay.Milliseconds())) * time.Millisecond
		if d.ID.Run == c.cfg.Run && legible {
			m.Shard = c.cfg.otherShard(d.ID.Producer)
		}
	}
	m.Due = c.phase(d, since)
	c.rec.Received(m)
	if d.Born|d.Stored != 0 {
		c.rec.Ages(m.Due, now, d.Born, d.Stored)
	}
	if c.cfg.Quota != nil {
		c.cfg.Quota()
	}
}

// otherShard returns the shard of a producer; 0 for this process, or if unknown.
func (c *ConsumerConfig) otherShard(producer int64) int {
	if c.Shards == 0 || producer < 0 {
		return 0
	}
	shard := int(producer%int64(c.Shards)) + 1
	if shard == c.Shard {
		return 0
	}
	return shard
}

// isForeign reports whether a message is of another run, as far as known, and whether the message itself names its run.
func (c *Consumer) isForeign(d *driver.Delivery, now int64, stamped bool) (foreign, legible bool) {
	if c.cfg.Checker != nil {
		switch c.cfg.Checker.Check(d, now) {
		case verify.Own:
			return false, true
		case verify.Foreign:
			return true, true
		case verify.Illegible: // the time decides
		}
	} else if d.ID.Run > 0 {
		return d.ID.Run != c.cfg.Run, true
	}
	return !stamped || d.Time < c.clock.epoch, false
}

// phase returns the phase to which a message belongs.
func (c *Consumer) phase(d *driver.Delivery, since time.Duration) stats.Phase {
	if c.cfg.Boundary == nil {
		return c.cfg.Phases.PhaseAt(since)
	}
	producer := int64(-1)
	if d.ID.Run == c.cfg.Run {
		producer = d.ID.Producer
	}
	return c.cfg.Boundary.phase(producer, d.Time, c.clock)
}

// Mender is a [driver.Producer] that replaces its lost connection while no message is due.
type Mender interface {
	// OnNews sets the function to call when Mend has something to do. Any goroutine calls it.
	OnNews(func())
	// Mend begins to replace a lost connection, or takes over the new one. It does not wait for the broker. The error
	// is the reason why the producer cannot continue. The goroutine of [Producer.Run] calls it, between messages.
	Mend(ctx context.Context) error
}

// WaiterOf returns a worker as a [driver.Waiter]; nil if it, or the connection that it replaces when lost, reports no
// waits.
func WaiterOf(worker any) driver.Waiter {
	if w, ok := worker.(interface{ Waiter() driver.Waiter }); ok {
		return w.Waiter()
	}
	w, _ := worker.(driver.Waiter)
	return w
}

// news tells Run, while it waits for the time of a message, that the connection has changed or a message is in doubt.
type news struct {
	mu   sync.Mutex
	due  bool
	why  error // why the driver's producer has ended; nil if it has not, or if it replaces its connection itself
	wake context.CancelFunc
}

// watchConnection lets the driver's producer report the end of its connection.
func (p *Producer) watchConnection() {
	switch w := p.producer.(type) {
	case Mender:
		w.OnNews(func() { p.news.signal(nil) })
	case driver.Watched:
		w.OnEnd(p.news.signal)
	}
}

func (n *news) signal(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due = true; why != nil {
		n.why = why
	}
	if n.wake != nil {
		n.wake()
	}
}

// context returns a context that ends with ctx, and with the next news.
func (n *news) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wake = cancel; n.due {
		cancel()
	}
	return ctx, cancel
}

// handleNews handles the news. It returns an error if the producer cannot continue.
func (p *Producer) handleNews(ctx context.Context) error {
	p.news.mu.Lock()
	p.news.due = false
	why := p.news.why
	p.news.mu.Unlock()
	if m, ok := p.producer.(Mender); ok {
		return m.Mend(ctx)
	}
	return why
}

// dueWait waits for the times of messages, or for news.
type dueWait struct {
	*Sleeper
	ctx  context.Context //nolint:containedctx // it lives within one call of Producer.Run
	stop context.CancelFunc
}

func (p *Producer) newDueWait(ctx context.Context) *dueWait {
	w := new(dueWait)
	w.ctx, w.stop = p.news.context(ctx)
	w.Sleeper = NewSleeper(w.ctx, p.clock, p.cfg.Precise)
	return w
}

func (w *dueWait) close() {
	w.Close()
	w.stop()
}
