package rocketmq

import (
	"context"
	"encoding/json"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// beat tells a broker which groups this client belongs to.
func (c *client) beat(ctx context.Context, conn *conn) error {
	data := wire.Heartbeat{ClientID: c.id, Producers: []wire.ProducerData{}, Consumers: []wire.ConsumerData{}}
	c.mu.Lock()
	for group := range c.producers {
		data.Producers = append(data.Producers, wire.ProducerData{Group: group})
	}
	for _, member := range c.consumers {
		if member != nil {
			data.Consumers = append(data.Consumers, member.data())
		}
	}
	c.mu.Unlock()
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = c.must(ctx, conn, "send a heartbeat to "+conn.addr, wire.ReqHeartBeat, nil, body)
	return err
}

// data describes the consumer. It has been set before the consumer is registered and does not change.
func (c *consumer) data() wire.ConsumerData {
	d := wire.ConsumerData{
		Group: c.group, Type: "CONSUME_PASSIVELY", Model: strings.ToUpper(c.opts.Model), From: "CONSUME_FROM_FIRST_OFFSET",
		Subscriptions: []wire.Subscription{c.subscriptionData()},
	}
	if c.opts.Consume == consumePull {
		d.Type = "CONSUME_ACTIVELY"
	}
	if c.opts.Model == clustering {
		d.Subscriptions = append(d.Subscriptions, wire.Subscription{
			Topic: wire.RetryPrefix + c.group, Expression: "*", Kind: wire.KindTag, Version: c.version, Tags: []string{},
			Codes: []int32{},
		})
	}
	return d
}

func (c *consumer) subscriptionData() wire.Subscription {
	s := wire.Subscription{
		Topic: c.topic, Expression: c.filter.expression, Kind: c.filter.kind, Version: c.version, Tags: []string{},
		Codes: []int32{},
	}
	for _, tag := range c.filter.tags {
		s.Tags = append(s.Tags, tag)
		s.Codes = append(s.Codes, wire.HashCode([]byte(tag)))
	}
	return s
}

// unregister tells a broker that this client leaves a group.
func (c *client) unregister(ctx context.Context, conn *conn, key, group string) error {
	_, err := c.must(ctx, conn, "leave group "+group, wire.ReqUnregisterClient, []field{{"clientID", c.id}, {key, group}},
		nil)
	return err
}

// join makes the client a member of the producer's group.
func (c *client) join(p *producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.producers[p.group] = append(c.producers[p.group], p)
}

// part takes the producer out of its group; it returns whether it was the client's last in it.
func (c *client) part(p *producer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.producers[p.group]
	for i, other := range list {
		if other == p {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(c.producers, p.group)
		return true
	}
	c.producers[p.group] = list
	return false
}
