package rocketmqgo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	liberrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	libproducer "github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// all brokers that create topics have it (TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC)
	systemTopic = "TBW102"
	askTimeout  = 3 * time.Second // for the answer of a broker
)

// admins asks a name server. It is safe for concurrent use. All clients of a driver share one, because each leaves a
// connection behind.
type admins struct {
	NewQueues int // of a created topic

	mu     sync.Mutex
	server string // of client
	client admin.Admin
}

// Close closes the client.
func (a *admins) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		_ = a.client.Close()
	}
	a.client, a.server = nil, ""
	return nil
}

func (a *admins) of(server string) (admin.Admin, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == server {
		return a.client, nil
	}
	client, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{server})))
	if err != nil {
		return nil, err
	}
	if a.client != nil {
		_ = a.client.Close()
	}
	a.client, a.server = client, server
	return client, nil
}

func lookUp(ctx context.Context, client admin.Admin, topic string) ([]*primitive.MessageQueue, error) {
	return library.Bounded(ctx,
		func() ([]*primitive.MessageQueue, error) { return client.FetchPublishMessageQueues(ctx, topic) })
}

// Queues returns the queues of a topic, which it creates if need be. op names the operation in errors.
func (a *admins) Queues(ctx context.Context, op, server, topic string) ([]*primitive.MessageQueue, error) {
	client, err := a.of(server)
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, op, "use --client native", "%w", err)
	}
	queues, err := lookUp(ctx, client, topic)
	if errors.Is(err, liberrors.ErrTopicNotExist) {
		if err = a.create(ctx, server, client, topic); err == nil {
			queues, err = await(ctx, client, topic)
		}
	}
	switch {
	case err == nil && len(queues) > 0:
		return queues, nil
	case err == nil:
		return nil, driver.Errorf(driver.ClassNotFound, op, "look at the topic's perm",
			"the topic %s has no queue that can be written to", topic)
	case errors.Is(err, liberrors.ErrTopicNotExist):
		return nil, driver.Errorf(driver.ClassNotFound, op,
			"create the topic, or set autoCreateTopicEnable=true in the broker's configuration", "%w", err)
	case errors.As(err, new(*primitive.MQClientErr)): // answered, but not with a route
		return nil, driver.Errorf(driver.ClassConnect, op,
			protocol.HintNameServer, "%s: %w", server, err)
	case driver.ClassOf(err) == driver.ClassTimeout:
		return nil, driver.Errorf(driver.ClassTimeout, op, "is this a name server? See --connect-timeout",
			"%s did not answer in time: %w", server, err)
	}
	return nil, driver.Errorf(driver.ClassConnect, op, "is this a running name server?", "%w", err)
}

// await waits for a created topic. Only the name server shows whether it was created: the library ignores the broker's
// answer.
func await(ctx context.Context, client admin.Admin, topic string) ([]*primitive.MessageQueue, error) {
	for {
		queues, err := lookUp(ctx, client, topic)
		if !errors.Is(err, liberrors.ErrTopicNotExist) {
			return queues, err
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// create creates a topic on all brokers.
func (a *admins) create(ctx context.Context, server string, client admin.Admin, topic string) error {
	queues, err := lookUp(ctx, client, systemTopic)
	if err != nil {
		return err
	}
	addresses, _, err := addressesOf(server, queues)
	for _, address := range addresses {
		err = errors.Join(err, client.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(address),
			admin.WithReadQueueNums(a.NewQueues), admin.WithWriteQueueNums(a.NewQueues)))
	}
	return err
}

// brokersOf returns the addresses of the brokers that have the queues.
func brokersOf(ctx context.Context, server string, queues []*primitive.MessageQueue) ([]string, error) {
	return library.Bounded(ctx, func() ([]string, error) {
		list, brokers, err := addressesOf(server, queues)
		if err == nil && len(list) < brokers {
			err = fmt.Errorf("%s knows the addresses of %d of %d brokers", server, len(list), brokers)
		}
		return list, err
	})
}

// Ask asks brokers for an answer without an effect.
func (a *admins) Ask(ctx context.Context, server string, brokers []string) error {
	client, err := a.of(server)
	for _, address := range brokers {
		if err == nil {
			_, err = library.Bounded(ctx, func() (*admin.SubscriptionGroupWrapper, error) {
				return client.GetAllSubscriptionGroup(ctx, address, askTimeout)
			})
		}
	}
	return err
}

// addressesOf returns the addresses, and the number, of the brokers that have the queues. The library reveals them only
// to the interceptor of a send. This send has an ended context, so that it sends nothing, and a topic to which brokers
// let no client send.
func addressesOf(server string, queues []*primitive.MessageQueue) (addresses []string, brokers int, err error) {
	note := func(ctx context.Context, req, reply any, next primitive.Invoker) error {
		err := next(ctx, req, reply)
		if c, ok := primitive.GetProducerCtx(ctx); ok && c.BrokerAddr != "" && !slices.Contains(addresses, c.BrokerAddr) {
			addresses = append(addresses, c.BrokerAddr)
		}
		return err
	}
	p, err := rocketmq.NewProducer(libproducer.WithNameServer(primitive.NamesrvAddr{server}),
		libproducer.WithGroupName("perfmq-lookup"),
		libproducer.WithInstanceName("perfmq-lookup-"+rand.Text()[:8]), libproducer.WithRetry(0),
		libproducer.WithInterceptor(note), libproducer.WithQueueSelector(libproducer.NewManualQueueSelector()))
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = p.Shutdown() }()
	ended, end := context.WithCancel(context.Background())
	end()
	asked := map[string]bool{}
	for _, queue := range queues {
		if !asked[queue.BrokerName] {
			m := primitive.NewMessage(systemTopic, []byte{0})
			m.Queue = queue
			_, _ = p.SendSync(ended, m) // it always fails
		}
		asked[queue.BrokerName] = true
	}
	return addresses, len(asked), nil
}
