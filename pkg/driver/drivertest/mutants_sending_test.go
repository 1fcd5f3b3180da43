package drivertest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// sendingMutants lie about sends, or change the messages.
func sendingMutants() []mutant { return append(endMutants(), messageMutants()...) }

func endMutants() []mutant {
	accepted := driver.Outcome{}
	return []mutant{
		{name: "done twice", check: "Done/slots=1", says: "a slot that is not in flight: twice for one send", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) { done.Done(s, o); done.Done(s, o) })}
		}},
		{name: "done never", check: "Done/slots=100", says: "Done was called for 1960 of 2000 sends", broken: func() broken {
			skip := everyFiftieth()
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) {
				if !skip() {
					done.Done(s, o)
				}
			})}
		}},
		{name: "done for another slot", check: "Done/slots=100", says: "a slot that is not in flight", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) { done.Done(s+1, o) })}
		}},
		{name: "places as bytes", check: "Done/slots=1000", says: "a slot that is not in flight", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) {
				done.Done(driver.NewSlot(s.Index()&0xff, s.Generation()), o)
			})}
		}},
		{name: "no generation", check: "Done/slots=1", says: "one without its generation", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) {
				done.Done(driver.NewSlot(s.Index(), 0), o)
			})}
		}},
		{name: "late answer", check: "Done/slots=1", says: "a late or second answer", broken: func() broken {
			var last driver.Slot
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) {
				if last != 0 {
					done.Done(last, o)
				}
				last = s
				done.Done(s, o)
			})}
		}},
		{name: "a range with one slot twice", check: "Done/slots=100", says: "twice for one send", broken: func() broken {
			return broken{done: ends(func(done driver.Completions, s driver.Slot, o driver.Outcome) { done.DoneAll([]driver.Slot{s, s}, o) })}
		}},
		{name: "withheld and refused", check: "Done/slots=1", says: "Withheld, which is for what was accepted", broken: func() broken {
			return broken{done: outcomes(func(driver.Outcome) driver.Outcome {
				return driver.Outcome{State: driver.Rejected, Class: driver.ClassOther, Withheld: true}
			})}
		}},
		{name: "accepted with an error", check: "Done/slots=1", says: "Accepted but class", broken: func() broken {
			return broken{done: outcomes(func(driver.Outcome) driver.Outcome { return driver.Outcome{Class: driver.ClassOther} })}
		}},
		{name: "refuses all", check: "Done/slots=1", says: "50 rejected", broken: func() broken {
			return broken{done: outcomes(func(driver.Outcome) driver.Outcome {
				return driver.Outcome{State: driver.Rejected, Class: driver.ClassOther}
			})}
		}},
		{name: "error and done", check: "Done/slots=1", says: "Send that returned an error", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				return errors.Join(p.Producer.Send(ctx, m), errors.New("failed"))
			}}
		}},
		{name: "accepted and not sent", check: "Done/slots=100", says: "missing", broken: func() broken {
			skip := everyFiftieth()
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				if skip() {
					p.done.Done(m.Slot, accepted)
					return nil
				}
				return p.Producer.Send(ctx, m)
			}}
		}},
		{name: "tried and not sent", check: "TrySend", says: "Done was called for", broken: func() broken {
			skip := everyFiftieth()
			return broken{trySend: func(p *producer, m *driver.Message) bool {
				return skip() || p.Producer.Send(context.Background(), m) == nil
			}}
		}},
		{name: "sent and denied", check: "TrySend", says: "a Send that returned an error", broken: func() broken {
			skip := everyFiftieth()
			return broken{trySend: func(p *producer, m *driver.Message) bool {
				return p.Producer.Send(context.Background(), m) == nil && !skip()
			}}
		}},
		{name: "one message after the next", check: "Order", says: "the messages came in another order", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				if p.sent.Load()%50 == 10 {
					p.held = append(p.held, *m)
					return nil
				}
				err := p.Producer.Send(ctx, m)
				for i := range p.held {
					err = errors.Join(err, p.Producer.Send(ctx, &p.held[i]))
				}
				p.held = nil
				return err
			}}
		}},
		{name: "one delivery after the next", check: "Order", says: "the messages came in another order", broken: func() broken {
			return broken{deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if c.n++; c.n == 10 {
					c.d.last = *d
					return driver.Accept
				}
				v := next(d)
				if c.n == 11 {
					next(&c.d.last)
				}
				return v
			}}
		}},
		{name: "goroutine left", check: "Done/slots=1", says: "goroutines are left", broken: func() broken {
			return broken{closeP: func(p *producer, ctx context.Context) error {
				go func() { <-p.d.end.Done() }()
				return p.Producer.Close(ctx)
			}}
		}},
		{name: "message kept", check: "Done/slots=1", says: "unknown time property", broken: func() broken {
			return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
				slot := m.Slot
				go func() {
					<-time.After(5 * time.Millisecond)
					_ = p.Producer.Send(ctx, &driver.Message{Slot: slot, Time: timeOf(m)})
				}()
				return nil
			}}
		}},
		{name: "announced messages wait for ever", check: "More", says: "Done was called for", broken: holding(false)},
		{name: "announced messages are forgotten", check: "More", says: "Done was never called for", broken: holding(true)},
		{name: "flush hangs", check: "More", says: "Flush did not return", broken: func() broken {
			return broken{flush: func(p *producer, _ context.Context) error { <-p.d.end.Done(); return nil }}
		}},
	}
}

// holding keeps each message after which another is announced, and its Flush does nothing or, with flush, is correct.
func holding(flush bool) func() broken {
	release := func(p *producer, ctx context.Context) error {
		for i := range p.held {
			if err := p.Producer.Send(ctx, &p.held[i]); err != nil {
				return err
			}
		}
		p.held = nil
		return nil
	}
	return func() broken {
		k := broken{
			send: func(p *producer, ctx context.Context, m *driver.Message) error {
				p.held = append(p.held, *m)
				if m.More {
					return nil
				}
				return release(p, ctx)
			},
			flush: func(*producer, context.Context) error { return nil },
		}
		if flush {
			k.flush = release
		}
		return k
	}
}

func messageMutants() []mutant {
	return []mutant{
		{name: "options shared", check: "Factory", says: "the same struct twice", broken: func() broken {
			return broken{factory: func(f *driver.Factory) {
				o := mem.Options{}
				f.NewOptions = func() any { return &o }
			}}
		}},
		{name: "check of what is right", check: "Factory", says: "Factory.Check of Config.URL", broken: func() broken {
			return broken{factory: func(f *driver.Factory) {
				f.Check = func(driver.OpenOptions) error { return errors.New("wrong") }
			}}
		}},
		{name: "name in upper case", check: "Factory", says: "lower case", broken: func() broken {
			return broken{factory: func(f *driver.Factory) { f.Name = strings.ToUpper(f.Name) }}
		}},
		{name: "time as float", check: "Time", says: "time property changed", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.Time = int64(float64(m.Time) / 2 * 2) })}
		}},
		{name: "no time", check: "Time", says: "without its time property", broken: func() broken {
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				d.HasTime = false
				return next(d)
			}}
		}},
		{name: "ID as float", check: "ID", says: "the ID of message 3 changed", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.ID.Run = int64(float64(m.ID.Run) / 2 * 2) })}
		}},
		{name: "ID of the message before", check: "ID", says: "the ID of message 4 changed", broken: func() broken {
			var last driver.ID
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				if d.ID == (driver.ID{}) {
					d.ID = last
				}
				last = d.ID
				return next(d)
			}}
		}},
		{name: "origin ignored", check: "Origin", says: "does not have the ID that ProducerSpec.Origin gives", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.Origin = driver.ID{} }}
		}},
		{name: "body damaged", check: "Bodies", says: "was damaged", broken: func() broken {
			return broken{sends: eachVariant(func(v *driver.Variant) {
				if len(v.Body) > 60000 {
					v.Body = append([]byte(nil), v.Body...)
					v.Body[60000]++
				}
			})}
		}},
		{name: "body cut", check: "Bodies", says: "has another length", broken: func() broken {
			return broken{sends: eachVariant(func(v *driver.Variant) { v.Body = v.Body[:min(len(v.Body), 65535)] })}
		}},
		{name: "variants changed", check: "Bodies", says: "the driver changed ProducerSpec.Variants", broken: func() broken {
			return broken{closeP: func(p *producer, ctx context.Context) error {
				p.spec.Variants[0].Priority = 4
				return p.Producer.Close(ctx)
			}}
		}},
		{name: "variants as bytes", check: "Variants", says: "has another length", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.Variant &= 0xff })}
		}},
		{name: "own body ignored", check: "OwnBodies", says: "message 1 does not have its own body", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.Body = nil })}
		}},
		{name: "own body kept", check: "OwnBodies", says: "does not have its own body", broken: func() broken {
			var last []byte
			return broken{send: messages(func(m *driver.Message) {
				if m.Body != nil {
					last, m.Body = m.Body, append([]byte(nil), last...)
					if len(m.Body) != len(last) {
						m.Body = nil
					}
				}
			})}
		}},
		{name: "own values ignored", check: "Properties/Messages", says: "messages whose own property color is", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.Values = nil })}
		}},
		{
			name: "own values ignored, which a selector shows", check: "Properties/Messages", says: "receive messages that have color = 'blue'",
			broken: func() broken { return broken{send: messages(func(m *driver.Message) { m.Values = nil })} }, with: uninspected(),
		},
		{name: "own values cut", check: "Properties/Messages", says: "messages whose own property color is", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) {
				for i := range m.Values {
					m.Values[i] = bytes.TrimLeft(m.Values[i], "r")
				}
			})}
		}},
		{name: "own values of another property", check: "Properties/Messages", says: "own property", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { slices.Reverse(m.Values) })}
		}},
		{name: "the first variant for all", check: "Variants", says: "has another length", broken: func() broken {
			return broken{send: messages(func(m *driver.Message) { m.Variant = 0 })}
		}},
	}
}

// timeOf reads from a message that is no longer the driver's, which is the mistake that is to be found.
//
//go:norace
func timeOf(m *driver.Message) int64 { return m.Time }
