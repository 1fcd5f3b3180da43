package drivertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// refusal is a missing feature, of the protocol or only of this broker.
type refusal struct {
	feature  Feature
	byBroker bool
	reason   string
}

func (r refusal) check(e *env, err error) {
	e.Helper()
	if r.byBroker {
		require.Errorf(e, err, "this broker lacks %s (%s), but nothing was said about that", r.feature, r.reason)
		return
	}
	require.Errorf(e, err, "Capabilities say that %ss have no %s, but what needs it was accepted", e.kind, r.feature)
	require.Equalf(e, driver.ClassUnsupported, driver.ClassOf(err), "class of: %v", err)
}

// producer checks that a producer is refused, or, if only the broker lacks the feature, that its sends are not
// accepted.
func (r refusal) producer(e *env, change func(*driver.ProducerSpec)) {
	e.Helper()
	d, spec := e.open(), producerSpec(e.dest())
	change(&spec)
	s := e.sender(&spec)
	p, err := d.Producer(e.soon(), spec, s.ledger)
	if err == nil {
		s.opened(p)
		if r.byBroker {
			if err = s.trySend(e.soon(), base); err == nil {
				if flusher, ok := p.(driver.Flusher); ok {
					_ = flusher.Flush(e.soon())
				}
				require.NoError(e, s.wait(e.cfg.Timeout))
				_, _, states := s.totals()
				require.Zerof(e, states[driver.Accepted], "this broker lacks %s (%s), but a send was accepted", r.feature, r.reason)
				return
			}
		}
	}
	r.check(e, err)
}

// consumer checks that a consumer is refused.
func (r refusal) consumer(e *env, change func(*driver.ConsumerSpec)) {
	e.Helper()
	d, spec := e.open(), consumerSpec(e.dest())
	change(&spec)
	c, err := d.Consumer(e.soon(), spec)
	if err == nil {
		e.inbox(c, spec)
	}
	r.check(e, err)
}

// refuseKind checks that both sides are refused where the protocol has no such destinations. A broker that lacks them
// may have senders to topics, with receivers of another protocol, but no consumers.
func refuseKind(e *env, r refusal) {
	if !r.byBroker {
		r.producer(e, func(*driver.ProducerSpec) {})
	}
	r.consumer(e, func(*driver.ConsumerSpec) {})
}

func refuseDurable(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) {
		s.Connection.ClientID, s.Subscription, s.Durable = unique(e.cfg.ClientID), "subscription-1", true
	})
}

func refuseShared(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Subscription, s.Shared = "shared-1", true })
}

func refuseSelector(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Selector = e.cfg.Selector("color", "red") })
}

func refuseCredit(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Credit = 10 })
}

func refuseTransactedReceive(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.TransactionSize = 1 })
}

func refuseConcurrency(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Concurrency = 4 })
}

func refuseReject(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Failing = driver.Reject })
}

func refuseRelease(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Failing = driver.Release })
}

func refuseTransactions(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { s.CommitInterval = 10 })
}

func refusePersistent(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { s.Persistent = true })
}

func refuseTTL(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { s.TTL = time.Minute })
}

func refuseDelay(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { s.Delay = time.Minute })
}

// second changes the last of two variants: a driver has to check all variants.
func second(edit func(*driver.Variant)) func(*driver.ProducerSpec) {
	return func(s *driver.ProducerSpec) {
		s.Variants = variants(10, 20)
		edit(&s.Variants[1])
	}
}

func refusePriority(e *env, r refusal) {
	r.producer(e, second(func(v *driver.Variant) { v.Priority = 7 }))
}

func refuseGroup(e *env, r refusal) {
	r.producer(e, second(func(v *driver.Variant) { v.Group = "group-1" }))
}

func refuseProperties(e *env, r refusal) {
	r.producer(e, second(func(v *driver.Variant) { v.Properties = []driver.Property{{Key: "color", Value: "red"}} }))
}

func refuseText(e *env, r refusal) {
	r.producer(e, second(func(v *driver.Variant) { v.Text = true }))
}
