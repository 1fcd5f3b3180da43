package drivertest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// broken is the mem driver with one thing wrong. Nil functions leave things as they are.
type broken struct {
	done     func(driver.Done) driver.Done
	producer func(driver.Producer) driver.Producer
	consumer func(driver.Consumer) driver.Consumer
	deliver  func(d *driver.Delivery, next func(*driver.Delivery))
	sends    func(*driver.ProducerSpec)
	receives func(*driver.ConsumerSpec)
	open     func(*driver.OpenOptions)
	opened   func(error) error // changes the error of Producer and Consumer
	factory  func(*driver.Factory)
	late     bool // producers are lateProducers
	handed   bool // producers are handingProducers
	lacks    drivertest.Feature

	check string // the sub-test that has to fail
	says  string // what it has to say
}

func (k broken) wrap(f driver.Factory) driver.Factory {
	inner := f.Open
	f.Open = func(ctx context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		if k.open != nil {
			k.open(&opts)
		}
		d, err := inner(ctx, opts)
		return &brokenDriver{Driver: d, broken: k}, err
	}
	if k.factory != nil {
		k.factory(&f)
	}
	return f
}

type brokenDriver struct {
	driver.Driver
	broken
}

func (d *brokenDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Done) (driver.Producer, error) {
	if d.sends != nil {
		d.sends(&spec)
	}
	if d.done != nil {
		done = d.done(done)
	}
	report := done
	if d.late || d.handed {
		done = func(driver.Slot, driver.Outcome) {}
	}
	p, err := d.Driver.Producer(ctx, spec, done)
	if err != nil && d.opened != nil {
		err = d.opened(err)
	}
	if err == nil && d.late {
		p = &lateProducer{Producer: p, done: report}
	}
	if err == nil && d.handed {
		p = &handingProducer{Producer: p, done: report}
	}
	if err == nil && d.producer != nil {
		p = d.producer(p)
	}
	return p, err
}

func (d *brokenDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if d.receives != nil {
		d.receives(&spec)
	}
	c, err := d.Driver.Consumer(ctx, spec)
	if err != nil && d.opened != nil {
		err = d.opened(err)
	}
	if err == nil && d.deliver != nil {
		inner := c
		c = &consumer{Consumer: inner, run: func(ctx context.Context, deliver func(*driver.Delivery)) error {
			return inner.Run(ctx, func(m *driver.Delivery) { d.deliver(m, deliver) })
		}}
	}
	if err == nil && d.consumer != nil {
		c = d.consumer(c)
	}
	return c, err
}

// producer and consumer replace single methods.
type producer struct {
	driver.Producer
	send  func(context.Context, *driver.Message) error
	close func(context.Context) error
}

func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if p.send != nil {
		return p.send(ctx, m)
	}
	return p.Producer.Send(ctx, m)
}

func (p *producer) Close(ctx context.Context) error {
	if p.close != nil {
		return p.close(ctx)
	}
	return p.Producer.Close(ctx)
}

type consumer struct {
	driver.Consumer
	run   func(context.Context, func(*driver.Delivery)) error
	close func(context.Context) error
}

func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery)) error {
	if c.run != nil {
		return c.run(ctx, deliver)
	}
	return c.Consumer.Run(ctx, deliver)
}

func (c *consumer) Close(ctx context.Context) error {
	if c.close != nil {
		return c.close(ctx)
	}
	return c.Consumer.Close(ctx)
}

// everyFiftieth returns a function that is true each fiftieth time. It is used by one goroutine.
func everyFiftieth() func() bool {
	n := 0
	return func() bool { n++; return n%50 == 0 }
}

func sendWith(f func(p driver.Producer, ctx context.Context, m *driver.Message) error) func(driver.Producer) driver.Producer {
	return func(p driver.Producer) driver.Producer {
		return &producer{Producer: p, send: func(ctx context.Context, m *driver.Message) error { return f(p, ctx, m) }}
	}
}

// brokenSends are drivers that lie about sends.
func brokenSends() map[string]broken {
	return map[string]broken{
		"done twice": {check: "Done/slots=1", says: "twice for one send", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, o driver.Outcome) { done(s, o); done(s, o) }
		}},
		"done never": {check: "Done/slots=100", says: "Done was called for 1960 of 2000 sends", done: func(done driver.Done) driver.Done {
			skip := everyFiftieth()
			return func(s driver.Slot, o driver.Outcome) {
				if !skip() {
					done(s, o)
				}
			}
		}},
		"done for another slot": {check: "Done/slots=100", says: "a slot that is not in flight", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, o driver.Outcome) { done(s+1, o) }
		}},
		"done without class": {check: "Fault/Cut", says: "without a class of failure", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, o driver.Outcome) { done(s, driver.Outcome{State: o.State}) }
		}},
		"pending is accepted when the connection is lost": {check: "Fault/Cut", says: "want the first 100 only", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, _ driver.Outcome) { done(s, driver.Outcome{}) }
		}},
		"done after close": doneAfterClose(),
		"error and done": {check: "Done/slots=1", says: "Send that returned an error", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				return errors.Join(p.Send(ctx, m), errors.New("failed"))
			})},
		"message kept": {check: "Done/slots=1", says: "missing", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				slot := m.Slot
				go func() {
					<-time.After(5 * time.Millisecond)
					_ = p.Send(ctx, &driver.Message{Slot: slot, Time: m.Time, Body: m.Body})
				}()
				return nil
			})},
		"body damaged": {check: "Bodies", says: "was damaged", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				body := append([]byte(nil), m.Body...)
				if len(body) > 60000 {
					body[60000]++
				}
				return p.Send(ctx, &driver.Message{Slot: m.Slot, Time: m.Time, Body: body})
			})},
		"body cut": {check: "Bodies", says: "has another length", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				return p.Send(ctx, &driver.Message{Slot: m.Slot, Time: m.Time, Body: m.Body[:min(len(m.Body), 65535)]})
			})},
		"body read after done": {check: "BodyReuse", says: "was damaged", late: true},
		"ID as float": {check: "ID", says: "the ID of message 3 changed", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				id := m.ID
				id.Run = int64(float64(id.Run) / 2 * 2)
				return p.Send(ctx, &driver.Message{Slot: m.Slot, Time: m.Time, ID: id, Body: m.Body})
			})},
		"ID of the message before": {check: "ID", says: "the ID of message 4 changed", deliver: lastID()},
		"withheld and refused": {check: "Done/slots=1", says: "Withheld, which is for what was accepted", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, _ driver.Outcome) {
				done(s, driver.Outcome{State: driver.Rejected, Class: driver.ClassOther, Withheld: true})
			}
		}},
		"time as float": {check: "Time", says: "time property changed", producer: sendWith(
			func(p driver.Producer, ctx context.Context, m *driver.Message) error {
				return p.Send(ctx, &driver.Message{Slot: m.Slot, Time: int64(float64(m.Time) / 2 * 2), Body: m.Body})
			})},
		"send ignores its context": {check: "Fault/Frozen", says: "Send, after the end of its context, did not return", producer: sendWith(
			func(p driver.Producer, _ context.Context, m *driver.Message) error {
				return p.Send(context.Background(), m)
			})},
		"close hangs": {check: "Fault/Frozen", says: "Producer.Close did not return", producer: func(p driver.Producer) driver.Producer {
			return &producer{Producer: p, close: func(context.Context) error { return p.Close(context.Background()) }}
		}},
		"close does not wait": {check: "Close/InFlight", says: "Done was never called for", done: func(done driver.Done) driver.Done {
			return func(s driver.Slot, o driver.Outcome) { time.AfterFunc(50*time.Millisecond, func() { done(s, o) }) }
		}},
		"second close fails": {check: "Close/InFlight", says: "Producer.Close, called again", producer: func(p driver.Producer) driver.Producer {
			n := 0
			return &producer{Producer: p, close: func(ctx context.Context) error {
				if n++; n == 2 {
					return errors.New("closed already")
				}
				return p.Close(ctx)
			}}
		}},
		"at most once in secret": {check: "Fault/Cut", says: "want the first 100 only", handed: true},
		"goroutine left": {check: "Done/slots=1", says: "goroutines are left", producer: func(p driver.Producer) driver.Producer {
			go func() { select {} }()
			return p
		}},
	}
}

// doneAfterClose calls Done once more 5 ms after Close has returned.
func doneAfterClose() broken {
	var again func()
	return broken{
		check: "Close/Expired", says: "Done was called", // twice, or after Close had returned, as the timer has it
		done: func(done driver.Done) driver.Done {
			again = func() { done(0, driver.Outcome{}) }
			return done
		},
		producer: func(p driver.Producer) driver.Producer {
			return &producer{Producer: p, close: func(ctx context.Context) error {
				defer time.AfterFunc(5*time.Millisecond, again)
				return p.Close(ctx)
			}}
		},
	}
}

// lateProducer reports the end of a send at once and reads the body 5 ms later. The Done of the real send is dropped.
type lateProducer struct {
	driver.Producer
	done driver.Done
	mu   sync.Mutex
}

func (p *lateProducer) Send(_ context.Context, m *driver.Message) error {
	late := *m
	time.AfterFunc(5*time.Millisecond, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.Producer.Send(context.Background(), &late)
	})
	p.done(m.Slot, driver.Outcome{})
	return nil
}

// handingProducer reports a send as accepted when it was handed over: at-most-once delivery.
type handingProducer struct {
	driver.Producer
	done driver.Done
}

func (p *handingProducer) Send(ctx context.Context, m *driver.Message) error {
	if err := p.Producer.Send(ctx, m); err != nil {
		return err
	}
	p.done(m.Slot, driver.Outcome{})
	return nil
}

// brokenReceives are drivers that receive wrongly, or treat settings and connections wrongly.
func brokenReceives() map[string]broken {
	return map[string]broken{
		"loses a message": {
			check: "Done/slots=100", says: "received 1960 messages instead of 2000: 40 missing",
			deliver: skipping(func(d *driver.Delivery, _ func(*driver.Delivery)) {}),
		},
		"delivers twice": {check: "Queue/Waits", says: "more than once", deliver: skipping(func(d *driver.Delivery, next func(*driver.Delivery)) {
			next(d)
			next(d)
		})},
		"delivers concurrently": {check: "Credit", says: "another call had not returned", deliver: func(d *driver.Delivery, next func(*driver.Delivery)) {
			m := *d
			go next(&m)
		}},
		"no time": {check: "Time", says: "without its time property", deliver: func(d *driver.Delivery, next func(*driver.Delivery)) {
			d.HasTime = false
			next(d)
		}},
		"run ignores its context": {check: "Run/Ends", says: "Consumer.Run, after the end of its context, did not return", consumer: func(c driver.Consumer) driver.Consumer {
			return &consumer{Consumer: c, run: func(_ context.Context, deliver func(*driver.Delivery)) error {
				return c.Run(context.Background(), deliver)
			}}
		}},
		"run returns the error of its context": {check: "Run/Ends", says: "context canceled", consumer: func(c driver.Consumer) driver.Consumer {
			return &consumer{Consumer: c, run: func(ctx context.Context, deliver func(*driver.Delivery)) error {
				return errors.Join(c.Run(ctx, deliver), ctx.Err())
			}}
		}},
		"run hides a lost connection": {check: "Fault/Cut", says: "Run returned nil although", consumer: func(c driver.Consumer) driver.Consumer {
			return &consumer{Consumer: c, run: func(ctx context.Context, deliver func(*driver.Delivery)) error {
				_ = c.Run(ctx, deliver)
				return nil
			}}
		}},
		"prefetched messages are lost": {check: "Unsettled", says: "missing", consumer: func(c driver.Consumer) driver.Consumer {
			return &consumer{Consumer: c, close: func(context.Context) error { return nil }}
		}},
		"no credit": {check: "Credit", says: "credit of 10", receives: func(s *driver.ConsumerSpec) { s.Credit = 0 }},
		"subscribes late": {check: "Subscribed", says: "20 missing", consumer: func(c driver.Consumer) driver.Consumer {
			return &consumer{Consumer: c, run: func(ctx context.Context, _ func(*driver.Delivery)) error {
				<-ctx.Done()
				return nil
			}}
		}},
		"topics are queues": {
			check: "Topic/FanOut", says: "missing",
			receives: func(s *driver.ConsumerSpec) { s.Destination.Kind = driver.Queue },
			sends:    func(s *driver.ProducerSpec) { s.Destination.Kind = driver.Queue },
		},
		"blanks are left out": {
			check: "Names", says: "got the messages sent to",
			receives: func(s *driver.ConsumerSpec) { s.Destination.Name = strings.TrimSpace(s.Destination.Name) },
			sends:    func(s *driver.ProducerSpec) { s.Destination.Name = strings.TrimSpace(s.Destination.Name) },
		},
		"names fail late":    {check: "Names", says: "refused with the class other", factory: failingNames},
		"selector ignored":   {check: "Selector", says: "unknown time property", receives: func(s *driver.ConsumerSpec) { s.Selector = "" }},
		"properties ignored": {check: "Selector", says: "missing", sends: func(s *driver.ProducerSpec) { s.Properties = nil }},
		"ttl ignored":        {check: "TTL", says: "unknown time property", sends: func(s *driver.ProducerSpec) { s.TTL = 0 }},
		"durable ignored":    {check: "Durable/Kept", says: "missing", receives: func(s *driver.ConsumerSpec) { s.Durable, s.Subscription = false, "" }},
		"durable not removed": {
			check: "Durable/Removed", says: "unknown time property",
			receives: func(s *driver.ConsumerSpec) { s.KeepSubscription = s.Durable },
		},
		"shared ignored": {check: "Shared", says: "more than once", receives: func(s *driver.ConsumerSpec) { s.Shared, s.Subscription = false, "" }},
		"transactions ignored": {
			check: "Refuses/Transactions", says: "Capabilities.Transactions is false",
			sends: func(s *driver.ProducerSpec) { s.CommitInterval = 0 },
		},
		"group ignored":           {check: "Refuses/Group", says: "Capabilities.Group is false", sends: func(s *driver.ProducerSpec) { s.Group = "" }},
		"priority ignored":        {check: "Refuses/Priority", says: "Capabilities.Priority is false", sends: func(s *driver.ProducerSpec) { s.Priority = -1 }},
		"connect timeout ignored": {check: "Fault/Silent", says: "opening a connection to mem://silent did not return", open: func(o *driver.OpenOptions) { o.ConnectTimeout = time.Hour }},
		"wrong class": {check: "Fault/Unreachable", says: "class of", opened: func(err error) error {
			return driver.Errorf(driver.ClassOther, "connect", "", "%w", err)
		}},
		"password ignored":                 {check: "Fault/WrongPassword", says: "connect with a wrong password", open: func(o *driver.OpenOptions) { o.Password = "p" }},
		"what the broker lacks is ignored": {check: "Refuses/Selector", says: "this broker lacks Selector (no reason), but nothing was said", lacks: drivertest.Selector},
		"options shared": {check: "Factory", says: "the same struct twice", factory: func(f *driver.Factory) {
			o := mem.DefaultOptions()
			f.NewOptions = func() any { return &o }
		}},
	}
}

// lastID gives a message without an ID that of the last one that had one.
func lastID() func(*driver.Delivery, func(*driver.Delivery)) {
	var last driver.ID
	return func(d *driver.Delivery, next func(*driver.Delivery)) {
		if d.ID == (driver.ID{}) {
			d.ID = last
		}
		last = d.ID
		next(d)
	}
}

func skipping(f func(*driver.Delivery, func(*driver.Delivery))) func(*driver.Delivery, func(*driver.Delivery)) {
	hit := everyFiftieth()
	return func(d *driver.Delivery, next func(*driver.Delivery)) {
		if hit() {
			f(d, next)
			return
		}
		next(d)
	}
}

// failingNames makes names with a blank a failure that is not the refusal it should be.
func failingNames(f *driver.Factory) {
	open := f.Open
	f.Open = func(ctx context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		d, err := open(ctx, opts)
		return failingNamesDriver{d}, err
	}
}

type failingNamesDriver struct{ driver.Driver }

func (d failingNamesDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	if strings.Contains(spec.Destination.Name, " ") {
		return nil, driver.Errorf(driver.ClassOther, "open", "", "something broke")
	}
	return d.Driver.Consumer(ctx, spec)
}
