package amqp

import (
	"errors"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// subscription is a named subscription of a topic that links have, or may come back to.
type subscription struct {
	key     string
	topic   string
	durable bool
	shared  bool
	links   int
}

// subscriptionKey is the name of a subscription in the store. container is empty for subscriptions that any container
// may use.
func subscriptionKey(container, link string, durable bool) string {
	name, _, _ := strings.Cut(link, "|")
	key := "amqp:"
	if !durable {
		key += "volatile:"
	}
	if container == "" {
		return key + name
	}
	return key + container + ":" + name
}

// joinSub adds a consumer to a subscription, which is made if need be. It fails with [store.ErrInUse].
func (s *Server) joinSub(
	topic string, wanted store.Subscription, shared bool, notify func(),
) (*subscription, *store.Consumer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subs[wanted.Name]
	if sub != nil {
		if sub.links > 0 && (!shared || !sub.shared || sub.topic != topic) {
			return nil, nil, store.ErrInUse
		}
		if sub.topic != topic || sub.shared != shared { // it begins anew
			if err := s.store.Unsubscribe(sub.topic, sub.key); err != nil && !errors.Is(err, store.ErrUnknown) {
				return nil, nil, err
			}
			delete(s.subs, wanted.Name)
			sub = nil
		}
	}
	consumer, err := s.store.Subscribe(topic, wanted, notify)
	if err != nil {
		return nil, nil, err
	}
	if sub == nil {
		sub = &subscription{key: wanted.Name, topic: topic, durable: wanted.Durable, shared: shared}
		s.subs[wanted.Name] = sub
	}
	sub.links++
	return sub, consumer, nil
}

// findSub returns the durable subscription that a link's name means; nil if there is none.
func (s *Server) findSub(container, link string) *subscription {
	if _, suffix, _ := strings.Cut(link, "|"); strings.HasPrefix(suffix, capGlobal) {
		container = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs[subscriptionKey(container, link, true)]
}

// leaveSub is called when a link to a subscription has ended. joined tells that it was one of joinSub, not of findSub;
// remove removes the subscription if no other link has it. Of two links that share it, the last one removes it.
func (s *Server) leaveSub(sub *subscription, joined, remove bool) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if joined {
		sub.links--
	}
	if s.subs[sub.key] != sub {
		return nil // it began anew
	}
	if !sub.durable {
		if sub.links == 0 {
			delete(s.subs, sub.key)
		}
		return nil
	}
	if !remove {
		return nil
	}
	err := s.store.Unsubscribe(sub.topic, sub.key)
	if errors.Is(err, store.ErrInUse) {
		if joined {
			return nil
		}
		return fail(wire.CondResourceLocked, "the subscription has consumers")
	}
	delete(s.subs, sub.key)
	return nil
}
