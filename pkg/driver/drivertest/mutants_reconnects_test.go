package drivertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// reconnecting is a driver that connects again by itself, as some client libraries do.
func reconnecting() broken {
	return broken{
		factory: func(f *driver.Factory) { f.Capabilities.Reconnects = true },
		send: func(p *producer, ctx context.Context, m *driver.Message) error {
			err := p.Producer.Send(ctx, m)
			if err == nil || driver.ClassOf(err) != driver.ClassConnectionLost {
				return err
			}
			_ = p.Producer.Close(ctx)
			again, err := p.d.Driver.Producer(ctx, p.spec, p.done)
			if err != nil {
				pause(time.Millisecond) // or time stands still in a bubble
				p.done.Done(m.Slot, driver.Outcome{State: driver.Failed, Class: driver.ClassConnect, Err: err})
				return nil //nolint:nilerr // it was told
			}
			p.Producer = again
			return p.Producer.Send(ctx, m)
		},
		run: func(c *consumer, ctx context.Context, next deliver) error {
			for {
				err := c.Consumer.Run(ctx, next)
				if driver.ClassOf(err) != driver.ClassConnectionLost {
					return err
				}
				_ = c.Consumer.Close(ctx)
				again, err := c.d.Driver.Consumer(ctx, c.spec)
				for err != nil && ctx.Err() == nil {
					pause(time.Millisecond)
					again, err = c.d.Driver.Consumer(ctx, c.spec)
				}
				if err != nil {
					return nil //nolint:nilerr // the end of ctx is none
				}
				c.Consumer = again
			}
		},
	}
}

// reconnects are settings for it: it has a victim that does not come back.
func reconnects(b *mem.Broker) func(*drivertest.Config) {
	return func(c *drivertest.Config) {
		c.Victim = func(testing.TB) (string, func()) {
			line := b.Line()
			return line.URL(), line.Cut
		}
		c.Factory = limited(without(c.Factory, drivertest.Transactions, drivertest.TransactedReceive))
	}
}

// TestReconnects: a driver that connects again by itself passes when it says so.
func TestReconnects(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		k := reconnecting()
		return k.config(context.Background(), b, reconnects(b))
	})
}

// reconnectMutants connect again by themselves, with a fault in that or in the steps before it.
func reconnectMutants() []mutant {
	failing := func(p *producer, ctx context.Context, m *driver.Message) error { return p.Producer.Send(ctx, m) }
	ending := func(c *consumer, ctx context.Context, next deliver) error { return c.Consumer.Run(ctx, next) }
	deaf := func(c *consumer, ctx context.Context, next deliver) error {
		if err := c.Consumer.Run(ctx, next); driver.ClassOf(err) != driver.ClassConnectionLost {
			return err
		}
		<-ctx.Done()
		return nil
	}
	with := func(change func(*broken)) func() broken {
		return func() broken {
			k := reconnecting()
			change(&k)
			return k
		}
	}
	list := []mutant{
		{name: "run ends though it connects again", check: "Fault/Cut", says: "but Run returned", broken: with(func(k *broken) { k.run = ending })},
		{name: "run ends though it connects again", check: "Settle/AfterVerdict", says: "but Run returned", broken: with(func(k *broken) { k.run = ending })},
		{name: "send fails though it connects again", check: "Fault/Cut", says: "a send that fails ends with Done", broken: with(func(k *broken) { k.send = failing })},
		{name: "send fails though it connects again", check: "Fault/Kill", says: "of a client that connects again by itself", broken: with(func(k *broken) { k.send = failing })},
		{name: "what may have left has failed", check: "Fault/Cut", says: "Unknown for messages that may have left", broken: with(func(k *broken) {
			k.done = outcomes(func(o driver.Outcome) driver.Outcome {
				if o.State == driver.Unknown {
					o.State = driver.Failed
				}
				return o
			})
		})},
		{name: "what may have left was accepted", check: "Fault/Cut", says: "want the first 100 only", broken: with(func(k *broken) {
			k.done = outcomes(func(driver.Outcome) driver.Outcome { return driver.Outcome{} })
		})},
		{name: "accepted without a broker", check: "Fault/Cut", says: "a send without a broker was accepted", broken: with(func(k *broken) {
			k.send = func(p *producer, ctx context.Context, m *driver.Message) error {
				if err := p.Producer.Send(ctx, m); driver.ClassOf(err) == driver.ClassConnectionLost {
					p.done.Done(m.Slot, driver.Outcome{})
				}
				return nil
			}
		})},
		{name: "failures without their class", check: "Fault/Cut", says: "classes of sends that found no broker", broken: with(func(k *broken) {
			k.send = func(p *producer, ctx context.Context, m *driver.Message) error {
				if err := p.Producer.Send(ctx, m); driver.ClassOf(err) == driver.ClassConnectionLost {
					p.done.Done(m.Slot, driver.Outcome{State: driver.Failed, Class: driver.ClassOther})
				}
				return nil
			}
		})},
		{name: "never sends again", check: "Fault/Again", says: "accepted once there is a broker again", broken: with(func(k *broken) {
			k.send = func(p *producer, ctx context.Context, m *driver.Message) error {
				if err := p.Producer.Send(ctx, m); driver.ClassOf(err) == driver.ClassConnectionLost {
					p.done.Done(m.Slot, driver.Outcome{State: driver.Failed, Class: driver.ClassConnect})
				}
				return nil
			}
		})},
		{name: "never receives again", check: "Fault/Again", says: "receive again after a cut", broken: with(func(k *broken) { k.run = deaf })},
	}
	return list
}
