package drivertest_test

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// transactionMutants say that something was committed which was not.
func transactionMutants() []mutant {
	accepting := outcomes(func(driver.Outcome) driver.Outcome { return driver.Outcome{} })
	confirming := func(s *driver.ProducerSpec) {
		if inner := s.Commits; inner != nil {
			s.Commits = func(took time.Duration, _ bool) { inner(took, true) }
		}
	}
	return []mutant{
		{name: "transactions ignored", check: "Transactions/Send", says: "in a transaction that was not committed", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.CommitInterval = 0 }}
		}},
		{name: "accepted before the commit", check: "Transactions/Send", says: "in a transaction that was not committed", broken: handing},
		{name: "twice the commit interval", check: "Transactions/Send", says: "commits", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.CommitInterval *= 2 }}
		}},
		{name: "commits not told", check: "Transactions/Send", says: "0 commits were confirmed", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.Commits = nil }}
		}},
		{name: "commits told twice", check: "Transactions/Send", says: "commits that were confirmed, and those that were not", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) {
				if inner := s.Commits; inner != nil {
					s.Commits = func(took time.Duration, ok bool) { inner(took, ok); inner(took, ok) }
				}
			}}
		}},
		{name: "flush does not commit", check: "Transactions/Send", says: "Done was called for 100 of 105 sends", broken: func() broken {
			return broken{flush: func(*producer, context.Context) error { return nil }}
		}},
		{name: "a rollback is accepted", check: "Transactions/Close", says: "5 missing", broken: func() broken {
			return broken{done: accepting, closeP: func(p *producer, ctx context.Context) error {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				return p.Producer.Close(ended)
			}}
		}},
		{name: "uncommitted is accepted after a cut", check: "Transactions/Cut", says: "before and after the connection was cut", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "a refused commit is accepted", check: "Transactions/Refused", says: "receive what was accepted|commits that were confirmed and 20 that were not", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "a refused commit is confirmed", check: "Transactions/Refused", says: "in 20 commits that were confirmed and 0 that were not", broken: func() broken {
			return broken{sends: confirming}
		}},
		{name: "received without transactions", check: "Transactions/Receive", says: "commits of 10 messages", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.TransactionSize = 0 }}
		}},
		{name: "a receiver's commits fail", check: "Transactions/Receive", says: "a commit was not confirmed", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) {
				if inner := s.Commits; inner != nil {
					s.Commits = func(took time.Duration, _ bool) { inner(took, false) }
				}
			}}
		}},
		{name: "commits each message", check: "Transactions/ReceiveCut", says: "commits that were confirmed", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.TransactionSize = min(s.TransactionSize, 1) }}
		}},
		{name: "settles before the commit", check: "Transactions/ReceiveCut", says: "it was settled too early", broken: func() broken {
			var commits driver.Commits
			return broken{
				receives: func(s *driver.ConsumerSpec) {
					if s.TransactionSize > 0 {
						s.TransactionSize, commits = 0, s.Commits
					}
				},
				deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
					v := next(d)
					if c.n++; c.n%10 == 0 && c.spec.TransactionSize > 0 {
						commits(0, true)
					}
					return v
				},
			}
		}},
	}
}

// handing reports a send as accepted when it was handed over: at-most-once delivery.
func handing() broken {
	return broken{
		done: func(driver.Completions) driver.Completions {
			return driver.DoneFunc(func(driver.Slot, driver.Outcome) {})
		},
		send: func(p *producer, ctx context.Context, m *driver.Message) error {
			err := p.Producer.Send(ctx, m)
			if err == nil {
				p.done.Done(m.Slot, driver.Outcome{})
			}
			return err
		},
	}
}
