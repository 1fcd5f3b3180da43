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

// asks are the requests that a driver without the feature must refuse. Nobody can ask for [Redelivered].
func asks() map[Feature]func(*env, refusal) {
	consumer := func(change func(*driver.ConsumerSpec)) func(*env, refusal) {
		return func(e *env, r refusal) { r.consumer(e, change) }
	}
	producer := func(change func(*driver.ProducerSpec)) func(*env, refusal) {
		return func(e *env, r refusal) { r.producer(e, change) }
	}
	// A driver has to check all variants: the feature is in the last of two.
	variant := func(change func(*driver.Variant)) func(*env, refusal) {
		return producer(func(s *driver.ProducerSpec) {
			s.Variants = variants(10, 20)
			change(&s.Variants[1])
		})
	}
	property := []driver.Property{{Key: "color", Value: "red"}}
	return map[Feature]func(*env, refusal){
		DurableSubscription: consumer(func(s *driver.ConsumerSpec) {
			s.Connection.ClientID, s.Subscription, s.Durable = unique("perfmq-test"), "subscription-1", true
		}),
		SharedSubscription: consumer(func(s *driver.ConsumerSpec) { s.Subscription, s.Shared = "shared-1", true }),
		Selector: func(e *env, r refusal) {
			r.consumer(e, func(s *driver.ConsumerSpec) { s.Selector = e.cfg.Selector("color", "red") })
		},
		Credit:            consumer(func(s *driver.ConsumerSpec) { s.Credit = 10 }),
		TransactedReceive: consumer(func(s *driver.ConsumerSpec) { s.TransactionSize = 1 }),
		Reject:            consumer(func(s *driver.ConsumerSpec) { s.Failing = driver.Reject }),
		Release:           consumer(func(s *driver.ConsumerSpec) { s.Failing = driver.Release }),
		Transactions:      producer(func(s *driver.ProducerSpec) { s.CommitInterval = 10 }),
		Persistent:        producer(func(s *driver.ProducerSpec) { s.Persistent = true }),
		TTL:               producer(func(s *driver.ProducerSpec) { s.TTL = time.Minute }),
		Delay:             producer(func(s *driver.ProducerSpec) { s.Delay = time.Minute }),
		Priority:          variant(func(v *driver.Variant) { v.Priority = 7 }),
		Group:             variant(func(v *driver.Variant) { v.Group = "group-1" }),
		Properties:        variant(func(v *driver.Variant) { v.Properties = property }),
		RequestReply:      producer(func(s *driver.ProducerSpec) { s.Anonymous = true }),
		DynamicReply:      consumer(func(s *driver.ConsumerSpec) { s.Dynamic, s.Correlated = true, true }),
		Text:              variant(func(v *driver.Variant) { v.Text = true }),
	}
}
