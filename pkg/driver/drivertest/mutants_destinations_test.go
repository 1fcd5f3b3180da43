package drivertest_test

import (
	"context"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/pkg/driver"
)

// destinationMutants take one destination for another, or treat subscriptions wrongly.
func destinationMutants() []mutant {
	return append(subscriptionMutants(), []mutant{
		{name: "queues are topics", check: "Queue/Waits", says: "200 missing", broken: kindsAs(driver.Topic)},
		{name: "queues are topics, to several", check: "Queue/Competing", says: "more than once", broken: kindsAs(driver.Topic)},
		{name: "topics are queues", check: "Topic/FanOut", says: "missing", broken: kindsAs(driver.Queue)},
		{name: "delivers twice", check: "Queue/Waits", says: "more than once", broken: func() broken {
			twice := everyFiftieth()
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if twice() {
					next(d)
				}
				return next(d)
			}}
		}},
		{name: "loses a message", check: "Queue/Competing", says: "received 588 messages instead of 600: 12 missing", broken: func() broken {
			skip := everyFiftieth()
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if skip() {
					return driver.Accept
				}
				return next(d)
			}}
		}},
		{name: "an old message first", check: "Topic/NotBefore", says: "with an unknown time property", broken: func() broken {
			return broken{deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if c.n++; c.n == 1 && c.d.mark("delivered") {
					stale := *d
					stale.Time = 1_700_000_000_000_000
					next(&stale)
				}
				return next(d)
			}}
		}},
		{name: "blanks are left out", check: "Names", says: "did not get just the messages sent to it", broken: func() broken {
			return broken{
				receives: func(s *driver.ConsumerSpec) { s.Destination.Name = strings.TrimSpace(s.Destination.Name) },
				sends:    func(s *driver.ProducerSpec) { s.Destination.Name = strings.TrimSpace(s.Destination.Name) },
			}
		}},
		{name: "a retained message to a new subscriber", check: "Topic/NotBefore", says: "more messages came than were due", broken: retained(false)},
		{name: "a retained message to the only subscriber", check: "Topic/NotBefore", says: "more messages came than were due", broken: retained(true)},
		{name: "names fail late", check: "Names", says: "refused with the class other", broken: func() broken {
			return broken{consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
				if strings.Contains(s.Destination.Name, " ") {
					return nil, driver.Errorf(driver.ClassOther, "open", "", "something broke")
				}
				return d.openConsumer(ctx, s)
			}}
		}},
		{name: "selector ignored", check: "Selector", says: "unknown time property", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Selector = "" }}
		}},
		{name: "selector in lower case", check: "Selector", says: "missing", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Selector = strings.ReplaceAll(s.Selector, "red", "RED") }}
		}},
	}...)
}

// retained delivers the last message of a destination to each new subscriber, or only to one that is alone.
func retained(alone bool) func() broken {
	return func() broken {
		var mu sync.Mutex
		var open int
		var last driver.Message
		due := map[*consumer]driver.Delivery{}
		return broken{
			send: func(p *producer, ctx context.Context, m *driver.Message) error {
				mu.Lock()
				last = *m
				mu.Unlock()
				return p.Producer.Send(ctx, m)
			},
			consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
				mu.Lock()
				defer mu.Unlock()
				c, err := d.openConsumer(ctx, s)
				if err == nil && last.Time > 0 && (!alone || open == 0) {
					due[c.(*consumer)] = driver.Delivery{Time: last.Time, HasTime: true}
				}
				open++
				return c, err
			},
			run: func(c *consumer, ctx context.Context, next deliver) error {
				mu.Lock()
				again, retained := due[c]
				mu.Unlock()
				if retained {
					next(&again)
				}
				return c.Consumer.Run(ctx, next)
			},
			closeC: func(c *consumer, ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				if c.n++; c.n == 1 {
					open--
				}
				return c.Consumer.Close(ctx)
			},
		}
	}
}

// kindsAs gives all destinations one kind.
func kindsAs(kind driver.Kind) func() broken {
	return func() broken {
		return broken{
			receives: func(s *driver.ConsumerSpec) { s.Destination.Kind = kind },
			sends:    func(s *driver.ProducerSpec) { s.Destination.Kind = kind },
		}
	}
}

// stays receives after its Close, as a consumer does that never unsubscribes.
func stays() broken {
	return broken{closeC: func(c *consumer, _ context.Context) error {
		if c.n++; c.n == 1 {
			go func() { _ = c.Consumer.Run(c.d.end, func(*driver.Delivery) driver.Verdict { return driver.Accept }) }()
		}
		return nil
	}}
}

func subscriptionMutants() []mutant {
	staying := func() broken { return broken{closeC: func(*consumer, context.Context) error { return nil }} }
	return []mutant{
		{name: "never unsubscribes from a queue", check: "Leave", only: "queue", says: "missing|unexpected goroutines", broken: stays},
		{name: "never unsubscribes from a topic", check: "Leave", only: "topic", says: "goes on sending to a consumer that was closed", broken: stays},
		{name: "leaves its subscription behind", check: "Leave", only: "topic", says: "2 subscriptions instead of 1", broken: staying},
		{name: "never unsubscribes from what is shared", check: "Shared", says: "missing|unexpected goroutines", broken: stays},
		{name: "shared ignored", check: "Shared", says: "more than once", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Shared, s.Subscription = false, "" }}
		}},
		{name: "only one shares", check: "Shared", says: "not busy", broken: func() broken {
			return broken{consumer: func(d *brokenDriver, ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
				if s.Shared && s.Name == "consumer-2" {
					s.Destination.Name += "-beside"
				}
				return d.openConsumer(ctx, s)
			}}
		}},
		{name: "durable ignored", check: "Durable/Kept", says: "missing", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.Durable, s.Subscription = false, "" }}
		}},
		{name: "durable not kept", check: "Durable/Kept", says: "missing", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.KeepSubscription = false }}
		}},
		{name: "durable not removed", check: "Durable/Removed", says: "unknown time property", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.KeepSubscription = s.Durable }}
		}},
		{name: "properties ignored, which a selector shows", check: "Selector", says: "missing", broken: func() broken {
			return broken{sends: eachVariant(func(v *driver.Variant) { v.Properties = nil })}
		}},
	}
}
