//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
)

// ErrNoQueue means that the broker has no queue of the name asked for.
var ErrNoQueue = errors.New("no such queue")

// QueueStats are the broker's own counters of one queue. Counters are messages
// since the queue was created or the broker started.
type QueueStats struct {
	Name                string `json:"Name"`
	Address             string `json:"Address"`
	RoutingType         string `json:"RoutingType"` // ANYCAST or MULTICAST
	Durable             bool   `json:"Durable"`
	Temporary           bool   `json:"Temporary"`
	ConsumerCount       int64  `json:"ConsumerCount"`
	MessageCount        int64  `json:"MessageCount"`    // there now, with those being delivered
	DeliveringCount     int64  `json:"DeliveringCount"` // with a consumer, not yet acknowledged
	DurableMessageCount int64  `json:"DurableMessageCount"`
	MessagesAdded       int64  `json:"MessagesAdded"`
	MessagesAcked       int64  `json:"MessagesAcknowledged"`
	MessagesExpired     int64  `json:"MessagesExpired"`
}

func queueAttributes() []string {
	return []string{
		"Name", "Address", "RoutingType", "Durable", "Temporary", "ConsumerCount", "MessageCount", "DeliveringCount",
		"DurableMessageCount", "MessagesAdded", "MessagesAcknowledged", "MessagesExpired",
	}
}

const brokerBean = `org.apache.activemq.artemis:broker="perfmq-test"`

// Queue returns the counters of the queue, whatever its address. The error is ErrNoQueue if the queue does not exist.
func (a *Artemis) Queue(ctx context.Context, name string) (QueueStats, error) {
	list, err := a.queues(ctx, "*", brokerside.QuoteBean(name))
	if err != nil {
		return QueueStats{}, fmt.Errorf("read the counters of queue %s: %w", name, err)
	}
	if len(list) == 0 {
		return QueueStats{}, fmt.Errorf("read the counters of queue %s: %w", name, ErrNoQueue)
	}
	return list[0], nil
}

// Queues returns the queues of an address, by name. An empty address stands for all addresses, with DLQ and
// ExpiryQueue. A topic's queues are its subscriptions. An unknown address has no queues.
func (a *Artemis) Queues(ctx context.Context, address string) ([]QueueStats, error) {
	pattern := "*"
	if address != "" {
		pattern = brokerside.QuoteBean(address)
	}
	list, err := a.queues(ctx, pattern, "*")
	if err != nil {
		return nil, fmt.Errorf("list the queues of address %q: %w", address, err)
	}
	return list, nil
}

// Subscriptions returns the multicast queues of an address: a topic's
// subscriptions, durable or not. Artemis names a durable one of AMQP
// CONTAINER.LINK, a shared one CONTAINER.LINK:shared-volatile when it is not
// durable, and a global one LINK:global.
func (a *Artemis) Subscriptions(ctx context.Context, topic string) ([]QueueStats, error) {
	list, err := a.Queues(ctx, topic)
	return slices.DeleteFunc(list, func(q QueueStats) bool { return q.RoutingType != "MULTICAST" }), err
}

func (a *Artemis) queues(ctx context.Context, address, queue string) ([]QueueStats, error) {
	byName := map[string]QueueStats{}
	err := a.ask(ctx, jolokiaRequest{
		Type: "read",
		Bean: brokerBean + ",component=addresses,address=" + address + ",subcomponent=queues,routing-type=*,queue=" +
			queue,
		Attribute: queueAttributes(),
	}, &byName)
	if noBean(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byQueueName := func(a, b QueueStats) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(byName), byQueueName), nil
}

// WaitQueue reads the counters of a queue until the condition holds, and returns
// them; a queue that is not there yet reads as all zero. The context is the
// deadline; the error of its end tells the counters last seen.
func (a *Artemis) WaitQueue(ctx context.Context, name string, cond func(QueueStats) bool) (QueueStats, error) {
	var last QueueStats
	err := poll(ctx, 50*time.Millisecond, func() (bool, error) {
		q, err := a.Queue(ctx, name)
		if err != nil && !errors.Is(err, ErrNoQueue) {
			return false, err
		}
		last = q
		return cond(q), nil
	})
	if err != nil {
		return last, fmt.Errorf("wait for the counters of queue %s, last seen %+v: %w", name, last, err)
	}
	return last, nil
}

// CreateQueue creates a durable queue and its address. routing is "ANYCAST" (a
// queue) or "MULTICAST" (a subscription of the topic).
func (a *Artemis) CreateQueue(ctx context.Context, address, name, routing string) error {
	config, err := json.Marshal(map[string]any{"address": address, "name": name, "routing-type": routing, "durable": true})
	if err != nil {
		return fmt.Errorf("create queue %s: %w", name, err)
	}
	if err := a.exec(ctx, nil, "createQueue(java.lang.String,boolean)", string(config), true); err != nil {
		return fmt.Errorf("create queue %s: %w", name, err)
	}
	return nil
}

// DeleteQueue removes a queue with its messages and its consumers. Its address
// goes too unless something else uses it, such as a sender.
func (a *Artemis) DeleteQueue(ctx context.Context, name string) error {
	err := a.exec(ctx, nil, "destroyQueue(java.lang.String,boolean,boolean)", name, true, true)
	if err != nil {
		return fmt.Errorf("delete queue %s: %w", name, err)
	}
	return nil
}

// SetAddressLimit bounds addresses, for tests of full queues. It replaces other settings for the same match.
func (a *Artemis) SetAddressLimit(ctx context.Context, limit AddressLimit) error {
	settings, err := json.Marshal(map[string]any{
		"addressFullMessagePolicy": limit.Policy,
		"pageSizeBytes":            limit.pageBytes(),
		"maxSizeBytes":             noLimit(limit.MaxBytes),
		"maxSizeMessages":          noLimit(limit.MaxMessages),
	})
	if err != nil {
		return fmt.Errorf("limit address %s: %w", limit.Match, err)
	}
	err = a.exec(ctx, nil, "addAddressSettings(java.lang.String,java.lang.String)", limit.Match, string(settings))
	if err != nil {
		return fmt.Errorf("limit address %s: %w", limit.Match, err)
	}
	return nil
}

// CloseAllConnections closes all connections of clients, as an operator would on the console.
func (a *Artemis) CloseAllConnections(ctx context.Context) error {
	if err := a.exec(ctx, nil, "closeConnectionsForAddress(java.lang.String)", loopback); err != nil {
		return fmt.Errorf("close all connections: %w", err)
	}
	return nil
}

// ask sends a request to the management.
func (a *Artemis) ask(ctx context.Context, r jolokiaRequest, out any) error {
	return askJolokia(ctx, a.ManagementURL(), r, out)
}

// exec calls an operation of the broker itself.
func (a *Artemis) exec(ctx context.Context, out any, operation string, args ...any) error {
	return a.ask(ctx, jolokiaRequest{Type: "exec", Bean: brokerBean, Operation: operation, Arguments: args}, out)
}
