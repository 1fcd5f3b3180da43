package drivertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// refusal is a feature that is missing, in the protocol or only in this broker.
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
	require.Errorf(e, err, "Capabilities.%s is false, but what needs it was accepted", r.feature)
	require.Equalf(e, driver.ClassUnsupported, driver.ClassOf(err), "class of: %v", err)
}

// producer checks that a producer is refused, or, if it is the broker who lacks the feature, that its sends are not
// accepted.
func (r refusal) producer(e *env, change func(*driver.ProducerSpec)) {
	d, spec := e.open(), producerSpec(e.queue())
	change(&spec)
	l := newLedger(spec.MaxPending)
	p, err := d.Producer(e.soon(), spec, l)
	if err == nil {
		s := &sender{ledger: l, e: e, producer: p, variants: spec.Variants}
		defer s.close()
		if r.byBroker {
			if err = s.trySend(e.soon(), base, payload(10)); err == nil {
				require.NoError(e, l.wait(e.cfg.Timeout))
				_, _, states := l.totals()
				require.Zerof(e, states[driver.Accepted], "this broker lacks %s (%s), but a send was accepted", r.feature, r.reason)
				return
			}
		}
	}
	r.check(e, err)
}

// consumer checks that a consumer is refused.
func (r refusal) consumer(e *env, change func(*driver.ConsumerSpec)) {
	dest := e.queue()
	if works, _ := e.cfg.has(Topics); works && (r.feature == DurableSubscription || r.feature == SharedSubscription) {
		dest = e.topic()
	}
	d, spec := e.open(), consumerSpec(dest)
	change(&spec)
	c, err := d.Consumer(e.soon(), spec)
	if err == nil {
		defer e.closes(e.closing(), "Consumer.Close", c.Close)
	}
	r.check(e, err)
}

// refuseTopics wants both sides refused where the protocol has no topics. A broker that lacks them may have senders to
// topics, whose receivers speak another protocol, but no consumers.
func refuseTopics(e *env, r refusal) {
	if !r.byBroker {
		r.producer(e, func(s *driver.ProducerSpec) { s.Destination = e.topic() })
	}
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Destination = e.topic() })
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
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Selector = e.cfg.Selector })
}

func refuseCredit(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.Credit = 10 })
}

func refuseTransactedReceive(e *env, r refusal) {
	r.consumer(e, func(s *driver.ConsumerSpec) { s.TransactionSize = 1 })
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

func refusePriority(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { each(s.Variants, func(v *driver.Variant) { v.Priority = 7 }) })
}

func refuseGroup(e *env, r refusal) {
	r.producer(e, func(s *driver.ProducerSpec) { each(s.Variants, func(v *driver.Variant) { v.Group = "group-1" }) })
}
