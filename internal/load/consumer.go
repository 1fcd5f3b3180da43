package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// maxDelay bounds the delays of delivery that messages tell of.
const maxDelay = 10 * 366 * 24 * time.Hour

// Quota is a number of messages that several consumers may receive together. It is safe for concurrent use.
type Quota struct {
	left atomic.Int64
	used func()
}

// NewQuota returns a quota of n messages; it calls used once, when the last of them was received.
func NewQuota(n uint64, used func()) *Quota {
	q := &Quota{used: used}
	q.left.Store(int64(n))
	return q
}

// ConsumerConfig holds the settings of one consumer.
type ConsumerConfig struct {
	// OwnOnly treats messages of other runs as foreign. It is for runs that receive in the process that sends. A message
	// that does not carry its run counts as foreign if it was not sent since the clock's start.
	OwnOnly bool
	// Run is the number that the messages of this run carry.
	Run int64
	// Boundary, with OwnOnly, tells which messages were due in the warm-up.
	Boundary *Boundary
	// Phases, without OwnOnly, tells which messages were received in the warm-up; nil for a run without one.
	Phases *Phases
	// Shard is the number of this process, from 1, among the Shards that the producers of the run are dealt out to in
	// turn; both are 0 if it is the only one.
	Shard, Shards int
	// Pulse tells of the tester's pauses; it may be nil.
	Pulse *stats.Pulse
	// Quota, if not nil, ends the run when it is used up.
	Quota *Quota
	// Precise lets that sleep by the operating system's best timer; not under a fake clock.
	Precise bool
	// Checker, if not nil, verifies the messages; it then tells which are foreign to a run that receives its own messages.
	Checker *verify.Checker
}

// Consumer records the messages that one driver.Consumer receives.
type Consumer struct {
	cfg      ConsumerConfig
	clock    *Clock
	rec      *stats.ConsumerRecorder
	consumer driver.Consumer

	job    atomic.Pointer[Job] // of the present step
	worker *worker             // on that, of Run's goroutine; nil without work
	ctx    context.Context     //nolint:containedctx // Run's, which ends the work
}

// Job is the treatment of each message by a consumer in a step.
type Job struct {
	Work Work          // done before the message is settled
	Each time.Duration // least time from one message to the next, of a rate; 0 for any
	Fail *Fail         // which messages are not accepted; nil for none
}

// works tells whether a message takes time.
func (j *Job) works() bool { return !j.Work.IsZero() || j.Each > 0 }

// NewConsumer returns a consumer that records the messages that c receives.
func NewConsumer(cfg ConsumerConfig, clock *Clock, rec *stats.ConsumerRecorder, c driver.Consumer) *Consumer {
	if cfg.Phases == nil {
		cfg.Phases = new(Phases)
	}
	return &Consumer{cfg: cfg, clock: clock, rec: rec, consumer: c}
}

// Do sets the treatment of the messages from now on. It is safe to call while Run goes on.
func (c *Consumer) Do(job Job) {
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
		c.count(d, received, verdict, job != nil && job.Fail != nil && d.Redelivered)
	}
	if job != nil && job.works() {
		if c.worker == nil || c.worker.job != job {
			c.endWork()
			c.worker = newWorker(c.ctx, job, c.clock, c.cfg.Precise)
		}
		c.rec.Work(received)
		c.rec.Worked(c.worker.do(received))
	}
	return verdict
}

func (c *Consumer) endWork() {
	if c.worker != nil {
		c.worker.wait.Close()
	}
}

// count counts a message that does not come again, as far as its consumer is concerned: one that is accepted or
// rejected.
func (c *Consumer) count(d *driver.Delivery, since time.Duration, verdict driver.Verdict, again bool) {
	now := c.clock.Epoch(since)
	m := stats.Receipt{
		Stamped:     d.HasTime && d.Time > 0 && d.Time < now+stats.MaxLatency.Microseconds(),
		Redelivered: d.Redelivered,
		Rejected:    verdict == driver.Reject,
		Again:       again,
		Size:        len(d.Body),
		At:          since,
	}
	foreign, legible := c.foreign(d, now, m.Stamped)
	if foreign && c.cfg.OwnOnly {
		c.rec.Foreign(since)
		return
	}
	if m.Stamped {
		m.Transfer = time.Duration(now-d.Time) * time.Microsecond
		m.Paused = c.cfg.Pulse.Spans(since-m.Transfer, since)
		m.Delay = time.Duration(min(d.ID.Delay, maxDelay.Milliseconds())) * time.Millisecond
		if d.ID.Run == c.cfg.Run && legible {
			m.Shard = c.cfg.other(d.ID.Producer)
		}
	}
	m.Due = c.phase(d, since)
	c.rec.Received(m)
	if d.Born|d.Stored != 0 {
		c.rec.Ages(m.Due, now, d.Born, d.Stored)
	}
	if q := c.cfg.Quota; q != nil && q.left.Add(-1) == 0 {
		q.used()
	}
}

// other returns the shard of a producer; 0 if that is this process, or not known.
func (c *ConsumerConfig) other(producer int64) int {
	if c.Shards == 0 || producer < 0 {
		return 0
	}
	shard := int(producer%int64(c.Shards)) + 1
	if shard == c.Shard {
		return 0
	}
	return shard
}

// foreign tells whether a message is of another run, as far as that can be told, and whether it says by itself of which
// it is.
func (c *Consumer) foreign(d *driver.Delivery, now int64, stamped bool) (foreign, legible bool) {
	if c.cfg.Checker != nil {
		switch c.cfg.Checker.Check(d, now) {
		case verify.Own:
			return false, true
		case verify.Foreign:
			return true, true
		case verify.Illegible: // the time has to decide
		}
	} else if d.ID.Run > 0 {
		return d.ID.Run != c.cfg.Run, true
	}
	return !stamped || d.Time < c.clock.epoch, false
}

// phase returns the phase to which a message belongs.
func (c *Consumer) phase(d *driver.Delivery, since time.Duration) stats.Phase {
	switch {
	case c.cfg.Boundary != nil:
		producer := int64(-1)
		if d.ID.Run == c.cfg.Run {
			producer = d.ID.Producer
		}
		return c.cfg.Boundary.phase(producer, d.Time, c.clock)
	default:
		return c.cfg.Phases.Of(since)
	}
}
