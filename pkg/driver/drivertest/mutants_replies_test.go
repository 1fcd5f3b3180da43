package drivertest_test

import (
	"context"

	"github.com/perfmq/perfmq/pkg/driver"
)

// replyMutants lose or confuse what requests and replies carry.
func replyMutants() []mutant {
	requests := func(f func(*driver.Message)) func() broken {
		return func() broken {
			return broken{send: messages(func(m *driver.Message) {
				if m.ReplyTo != "" {
					f(m)
				}
			})}
		}
	}
	// replies changes a reply, given the one before it.
	replies := func(f func(m, last *driver.Message)) func() broken {
		return func() broken {
			var last driver.Message
			return broken{send: messages(func(m *driver.Message) {
				if len(m.To) > 0 {
					own := driver.Message{To: append([]byte(nil), m.To...), Correlation: append([]byte(nil), m.Correlation...)}
					if last.To != nil {
						f(m, &last)
					}
					last = own
				}
			})}
		}
	}
	delivered := func(f func(*driver.Delivery)) func() broken {
		return func() broken {
			return broken{deliver: func(_ *consumer, d *driver.Delivery, next deliver) driver.Verdict {
				changed := *d
				f(&changed)
				return next(&changed)
			}}
		}
	}
	const wrong = "correlation ID of a reply"
	var list []mutant
	for _, check := range []string{"Reply", "Reply/Dynamic"} {
		list = append(list,
			mutant{name: "correlation of the last reply", check: check, says: wrong, broken: replies(
				func(m, last *driver.Message) { m.Correlation = last.Correlation })},
			mutant{name: "request without correlation", check: check, says: wrong, broken: requests(
				func(m *driver.Message) { m.Correlation = nil })},
			mutant{name: "delivery without correlation", check: check, says: wrong, broken: delivered(
				func(d *driver.Delivery) { d.Correlation = nil })},
			mutant{name: "request without reply-to", check: check, says: "came without its reply-to", broken: requests(
				func(m *driver.Message) { m.ReplyTo = "" })},
			mutant{name: "delivery without reply-to", check: check, says: "came without its reply-to", broken: delivered(
				func(d *driver.Delivery) { d.ReplyTo = nil })},
			mutant{name: "reply to another requester", check: check, says: "missing", broken: replies(
				func(m, last *driver.Message) { m.To = last.To })},
			mutant{name: "reply accepted and not sent", check: check, says: "missing", broken: func() broken {
				skip := everyFiftieth()
				return broken{send: func(p *producer, ctx context.Context, m *driver.Message) error {
					if p.spec.Anonymous && (skip() || p.sent.Load() == 7) {
						p.done.Done(m.Slot, driver.Outcome{})
						return nil
					}
					return p.Producer.Send(ctx, m)
				}}
			}},
			mutant{name: "one address for all", check: check, says: "addresses of two consumers", broken: func() broken {
				return broken{address: func(*consumer) string { return "queue://all" }}
			}},
			mutant{name: "no address", check: check, says: "address of a consumer for replies", broken: func() broken {
				return broken{address: func(*consumer) string { return "" }}
			}},
		)
	}
	again := func(receives func(*driver.ConsumerSpec)) func() broken {
		return func() broken { return broken{receives: receives} }
	}
	return append(list,
		mutant{
			name: "dynamic queue that stays", check: "Reply/Again", says: "a consumer for replies that has closed",
			broken: again(func(s *driver.ConsumerSpec) {
				if s.Dynamic {
					s.Dynamic, s.Destination.Name = false, "replies"
				}
			}),
		},
	)
}
