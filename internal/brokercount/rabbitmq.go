package brokercount

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// rabbitmq is RabbitMQ's management plugin (its HTTP API, /api/overview and /api/queues/VHOST/NAME).
type rabbitmq struct {
	*HTTP
	mu    sync.Mutex
	asked map[driver.Destination]bool
}

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
	return &rabbitmq{HTTP: h, asked: map[driver.Destination]bool{}}, nil
}

// lag is how old counters are at most: channels tell theirs each 5 s (collect_statistics_interval), and so the plugin
// looks at them.
func (*rabbitmq) lag() time.Duration { return 11 * time.Second }

// inspect asks for queues alone: a topic exchange counts all topics together. A queue whose messages have
// not been counted yet has no statistics, nor has one that gets them over AMQP 1.0 in RabbitMQ 4, which does not count
// those by queue. The first answer is where counting begins: that is 0. Later the counts are not known.
func (r *rabbitmq) inspect(ctx context.Context, destinations []driver.Destination) ([]driver.DestinationCount, error) {
	return each(destinations, func(d driver.Destination) (n driver.DestinationCount, err error) {
		name := strings.TrimPrefix(d.Name, "/amq/queue/")
		name = strings.TrimPrefix(name, "/queues/")
		if d.Kind == driver.Topic || strings.HasPrefix(name, "/") {
			return n, nil
		}
		var q struct {
			Messages  uint64 `json:"messages"`
			Consumers uint64 `json:"consumers"`
			Stats     *struct {
				Publish      uint64 `json:"publish"`
				Ack          uint64 `json:"ack"`
				DeliverNoAck uint64 `json:"deliver_no_ack"`
				GetNoAck     uint64 `json:"get_no_ack"`
			} `json:"message_stats"`
		}
		err = r.get(ctx, r.under("api", "queues", r.vhost, name), nil, &q)
		first := r.first(d)
		if err != nil {
			return n, err
		}
		n.Depth, n.Consumers = driver.Counted(q.Messages), driver.Counted(q.Consumers)
		switch s := q.Stats; {
		case s != nil:
			n.Added, n.Acknowledged = driver.Counted(s.Publish), driver.Counted(s.Ack+s.DeliverNoAck+s.GetNoAck)
		case first:
			n.Added, n.Acknowledged = driver.Counted(0), driver.Counted(0)
		}
		return n, nil
	})
}

// first tells whether a destination has not been asked for before.
func (r *rabbitmq) first(d driver.Destination) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.asked[d]
	r.asked[d] = true
	return first
}
