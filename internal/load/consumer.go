package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

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

// ConsumerConfig says what one consumer expects.
type ConsumerConfig struct {
	// OwnOnly treats messages that were not sent since the clock's start as foreign. It is for runs that receive in the
	// process that sends.
	OwnOnly bool
	// Quota, if not nil, ends the run when it is used up.
	Quota *Quota
	// Checker, if not nil, verifies the messages; it then tells which are foreign to a run that receives what it sends.
	Checker *verify.Checker
}

// Consumer notes what one driver.Consumer receives.
type Consumer struct {
	cfg      ConsumerConfig
	clock    *Clock
	rec      *stats.ConsumerRecorder
	consumer driver.Consumer
}

// NewConsumer returns a consumer that records what c receives.
func NewConsumer(cfg ConsumerConfig, clock *Clock, rec *stats.ConsumerRecorder, c driver.Consumer) *Consumer {
	return &Consumer{cfg: cfg, clock: clock, rec: rec, consumer: c}
}

// Run receives until ctx ends, and then returns nil, or until the driver fails.
func (c *Consumer) Run(ctx context.Context) error { return c.consumer.Run(ctx, c.deliver) }

func (c *Consumer) deliver(d *driver.Delivery) {
	now := c.clock.Epoch(c.clock.Now())
	usable := d.HasTime && d.Time > 0 && d.Time < now+stats.MaxLatency.Microseconds()
	foreign := !usable || d.Time < c.clock.epoch
	if c.cfg.Checker != nil {
		switch c.cfg.Checker.Check(d, now) {
		case verify.Own:
			foreign = false
		case verify.Foreign:
			foreign = true
		case verify.Illegible: // the time has to decide
		}
	}
	switch {
	case c.cfg.OwnOnly && foreign:
		c.rec.Foreign()
		return
	case usable:
		c.rec.Received(time.Duration(now-d.Time)*time.Microsecond, d.Redelivered)
	default:
		c.rec.Unstamped(d.Redelivered)
	}
	if d.Born|d.Stored != 0 {
		c.rec.Ages(now, d.Born, d.Stored)
	}
	if q := c.cfg.Quota; q != nil && q.left.Add(-1) == 0 {
		q.used()
	}
}
