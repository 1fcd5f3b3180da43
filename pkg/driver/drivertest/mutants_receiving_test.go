package drivertest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// receivingMutants receive or settle wrongly.
func receivingMutants() []mutant {
	return append(settlingMutants(), []mutant{
		{name: "subscribes late", check: "Subscribed", only: "topic", says: "20 missing", broken: func() broken {
			return broken{consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
				return &lateConsumer{d: d, spec: s}, nil
			}}
		}},
		{name: "receives nothing", check: "Subscribed", says: "20 missing", broken: func() broken {
			return broken{run: func(_ *consumer, ctx context.Context, _ deliver) error { <-ctx.Done(); return nil }}
		}},
		{name: "run ignores its context", check: "Run/Ends", says: "Consumer.Run, after the end of its context, did not return", broken: func() broken {
			return broken{run: func(c *consumer, _ context.Context, next deliver) error { return c.Consumer.Run(c.d.end, next) }}
		}},
		{name: "run delivers one more", check: "Run/Stops", says: "messages were delivered after the end of the context", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				later, stop := context.WithCancel(context.WithoutCancel(ctx))
				defer stop()
				return c.Consumer.Run(later, func(d *driver.Delivery) driver.Verdict {
					if ctx.Err() != nil {
						stop()
					}
					return next(d)
				})
			}}
		}},
		{name: "run returns the error of its context", check: "Run/Ends", says: "context canceled", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				return errors.Join(c.Consumer.Run(ctx, next), ctx.Err())
			}}
		}},
		{name: "run delivers when it has returned", check: "Run/Ends", says: "deliver was called after Run had returned", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				var last driver.Delivery
				defer func() { time.AfterFunc(time.Millisecond, func() { next(&last) }) }()
				return c.Consumer.Run(ctx, func(d *driver.Delivery) driver.Verdict {
					last = *d
					return next(d)
				})
			}}
		}},
		{name: "the largest body ignored", check: "MaxBody", says: "did not return", broken: func() broken {
			return broken{open: func(o *driver.OpenOptions) { o.MaxBody = 0 }}
		}},
		{name: "the largest body is too large", check: "MaxBody", says: "1 missing", broken: func() broken {
			return broken{open: func(o *driver.OpenOptions) { o.MaxBody = max(0, o.MaxBody-1) }}
		}},
		{name: "too large is lost", check: "MaxBody", says: "class of the error of Run", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				if err := c.Consumer.Run(ctx, next); err != nil {
					return driver.Errorf(driver.ClassConnectionLost, "receive", "", "%v", err)
				}
				return nil
			}}
		}},
		{name: "concurrent", check: "Credit", only: "queue", says: "another call had not returned", broken: func() broken {
			return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
				var calls sync.WaitGroup
				defer calls.Wait()
				return c.Consumer.Run(ctx, func(d *driver.Delivery) driver.Verdict {
					kept := *d
					kept.Body = bytes.Clone(d.Body)
					calls.Go(func() { next(&kept) })
					return driver.Accept
				})
			}}
		}},
		{name: "credit ignored", check: "Credit", says: "credit of 10", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Credit = 0 }}
		}},
		{
			name: "credit ignored, which the path shows", check: "Credit", only: "topic", says: "bytes that were sent ahead",
			broken: func() broken { return broken{receives: func(s *driver.ConsumerSpec) { s.Credit = 0 }} },
			with:   lacking(drivertest.SharedSubscription),
		},
		{name: "a buffer used again", check: "Credit", says: "a message changed while deliver was running", broken: bufferUsedAgain},
	}...)
}

// lacking says that the broker lacks something, so that the suite takes another way.
func lacking(features ...drivertest.Feature) func(*drivertest.Config) {
	return func(c *drivertest.Config) {
		c.Lacks = map[drivertest.Feature]string{}
		for _, f := range features {
			c.Lacks[f] = "for the test's sake"
		}
	}
}

// lateConsumer subscribes when it runs.
type lateConsumer struct {
	d    *brokenDriver
	spec driver.ConsumerSpec
	c    driver.Consumer
}

func (l *lateConsumer) Run(ctx context.Context, next deliver) (err error) {
	if l.c, err = l.d.openConsumer(ctx, l.spec); err != nil {
		return err
	}
	return l.c.Run(ctx, next)
}

func (l *lateConsumer) Close(ctx context.Context) error {
	if l.c == nil {
		return nil
	}
	return l.c.Close(ctx)
}

// bufferUsedAgain overwrites the body of a message that is being delivered when another consumer is opened.
func bufferUsedAgain() broken {
	var mu sync.Mutex
	var buffer []byte
	return broken{
		deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
			mu.Lock()
			buffer = bytes.Clone(d.Body)
			d.Body = buffer
			mu.Unlock()
			return next(d)
		},
		consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
			mu.Lock()
			clear(buffer)
			mu.Unlock()
			return d.openConsumer(ctx, s)
		},
	}
}

// early settles each message before it delivers it: a goroutine takes and accepts messages, and Run delivers them
// afterwards.
func early() broken { return earlyBy(time.Millisecond) }

func earlyBy(head time.Duration) broken {
	return broken{run: func(c *consumer, ctx context.Context, next deliver) error {
		taken := make(chan driver.Delivery, 1000)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Consumer.Run(ctx, func(d *driver.Delivery) driver.Verdict {
				taken <- *d
				return driver.Accept
			})
		}()
		for {
			select {
			case d := <-taken:
				if head > 0 {
					pause(head)
				}
				if ctx.Err() == nil {
					next(&d)
				}
			case err := <-ended:
				return err
			}
		}
	}}
}

// judged changes the verdicts of messages that come for the first time: or there would be no end.
func judged(from, to driver.Verdict) func() broken {
	return func() broken {
		return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
			if v := next(d); v != from || d.Redelivered {
				return v
			}
			return to
		}}
	}
}

func settlingMutants() []mutant {
	redelivered := func(set func(*driver.Delivery)) func() broken {
		return func() broken {
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				set(d)
				return next(d)
			}}
		}
	}
	never := redelivered(func(d *driver.Delivery) { d.Redelivered = false })
	always := redelivered(func(d *driver.Delivery) { d.Redelivered = true })
	return []mutant{
		{name: "what was sent ahead is accepted", check: "Settle/Unsettled", says: "missing", broken: early},
		{
			name: "what was sent ahead is kept", check: "Settle/Unsettled", only: "queue", says: "missing",
			broken: func() broken { return broken{closeC: func(*consumer, context.Context) error { return nil }} },
		},
		{name: "settles nothing", check: "Settle/Unsettled", says: "more than once", broken: judged(driver.Accept, driver.Release)},
		{name: "acknowledged before deliver", check: "Settle/AfterVerdict", says: "it was settled too early", broken: early},
		{name: "a cut loses what was sent ahead", check: "Settle/AfterVerdict", says: "which was not delivered, was lost", broken: lostAhead},
		{name: "redelivered never set", check: "Settle/Redelivered", says: "came again without Redelivered", broken: never},
		{name: "redelivered always set", check: "Settle/Redelivered", says: "with Redelivered set, the first time", broken: always},
		{name: "always redelivered", check: "Done/slots=100", says: "with Redelivered set, the first time", broken: always},
		{name: "rejected is released", check: "Settle/Reject", says: "deliveries of message 0", broken: judged(driver.Reject, driver.Release)},
		{name: "rejected is accepted", check: "Settle/Reject", says: "0 messages are rejected at the broker instead of 10", broken: judged(driver.Reject, driver.Accept)},
		{name: "rejected stays", check: "Settle/Reject", says: "came to another consumer", broken: kept(driver.Reject)},
		{name: "released is accepted", check: "Settle/Release", says: "20 of 30 came", broken: judged(driver.Release, driver.Accept)},
		{name: "accepted is released once", check: "Settle/Release", says: "deliveries of message", broken: func() broken {
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if v := next(d); v == driver.Release || d.Redelivered {
					return v
				}
				return driver.Release
			}}
		}},
	}
}

// lostAhead loses some messages of a consumer after its connection was lost: the next consumer swallows them.
func lostAhead() broken {
	return broken{deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
		if c.spec.KeepSubscription || c.spec.Name == "" || d.Redelivered || d.Time%10 != 9 {
			return next(d)
		}
		return driver.Accept
	}}
}

// kept gives messages of a verdict back when their consumer closes.
func kept(which driver.Verdict) func() broken {
	return func() broken {
		return broken{
			deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				v := next(d)
				if v == which {
					c.d.mu.Lock()
					c.d.last = driver.Delivery{Time: d.Time, HasTime: true}
					c.d.mu.Unlock()
				}
				return v
			},
			run: func(c *consumer, ctx context.Context, next deliver) error {
				c.d.mu.Lock()
				again := c.d.last
				c.d.mu.Unlock()
				if again.HasTime {
					next(&again)
				}
				return c.Consumer.Run(ctx, next)
			},
		}
	}
}
