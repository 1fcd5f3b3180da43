package brokercount

import (
	"context"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// rabbitmq is RabbitMQ's management plugin (its HTTP API, /api/overview and /api/queues/VHOST/NAME).
type rabbitmq struct{ *HTTP }

func (h *HTTP) findRabbitMQ(ctx context.Context) (console, error) {
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := h.get(ctx, h.under("api", "overview"), nil, &overview); err != nil {
		return nil, err
	}
	if overview.Version == "" {
		return nil, driver.Errorf(driver.ClassNotFound, "", "", "this is not RabbitMQ's management")
	}
	return rabbitmq{h}, nil
}

// lag is how old counters are at most: channels tell theirs each 5 s (collect_statistics_interval), and so the plugin looks at them.
func (rabbitmq) lag() time.Duration { return 11 * time.Second }

// inspect asks for queues alone: what a topic exchange counts is of all topics together.
func (r rabbitmq) inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	return each(destinations, func(d driver.Destination) (n driver.DestinationCount, err error) {
		name := strings.TrimPrefix(d.Name, "/amq/queue/")
		name = strings.TrimPrefix(name, "/queues/")
		if d.Kind == driver.Topic || strings.HasPrefix(name, "/") {
			return n, nil
		}
		var q struct {
			Messages  uint64 `json:"messages"`
			Consumers uint64 `json:"consumers"`
			Stats     struct {
				Publish      uint64 `json:"publish"`
				Ack          uint64 `json:"ack"`
				DeliverNoAck uint64 `json:"deliver_no_ack"`
				GetNoAck     uint64 `json:"get_no_ack"`
			} `json:"message_stats"`
		}
		if err := r.get(ctx, r.under("api", "queues", r.vhost, name), nil, &q); err != nil {
			return n, err
		}
		return driver.DestinationCount{
			Depth: driver.Counted(q.Messages), Added: driver.Counted(q.Stats.Publish),
			Acknowledged: driver.Counted(q.Stats.Ack + q.Stats.DeliverNoAck + q.Stats.GetNoAck), Consumers: driver.Counted(q.Consumers),
		}, nil
	})
}
