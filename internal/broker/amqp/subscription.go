package amqp

import (
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// subscriptionKey is the name of a subscription in the store. container is empty for global subscriptions.
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

// subscribe makes the link a consumer of a subscription.
func (l *outLink) subscribe(a *wire.Attach, topic string, filter store.Filter, notify func()) *wire.Error {
	t := &a.Source
	s := l.s.c.srv.Store
	shared := hasCapability(t, capShared)
	wanted := store.Subscription{
		Durable: t.ExpiryPolicy == wire.ExpireNever, Exclusive: !shared, Selector: t.Selector.V, Filter: filter,
	}
	if wanted.Durable || shared {
		container := l.s.c.container
		if hasCapability(t, capGlobal) {
			container = ""
		}
		wanted.Name = subscriptionKey(container, a.Name, wanted.Durable)
	}
	var err error
	if old := s.FindSubscription(wanted.Name); wanted.Name != "" && old != nil && old.Topic() != topic {
		err = old.Remove() // or it would fill, and hold up the senders of its topic
	}
	if err == nil {
		l.consumer, err = s.Subscribe(topic, wanted, notify)
	}
	if err != nil {
		return cannotOpen(driver.Destination{Kind: driver.Topic, Name: topic}, err)
	}
	if wanted.Durable {
		l.sub = l.consumer.Queue()
	}
	return nil
}
