//go:build unix

package amqp

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// inspect looks at messages with go-amqp.
func inspect(url string, d dialect) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		return brokertest.InspectAMQP(t, url, true, dest.Kind, d.address(dest), d.durability() != wire.DurableNone)
	}
}

// settled returns the configuration for messages that are sent and received settled, on a broker that passes the suite
// otherwise: on Artemis always, on others in make features.
func settled(cfg drivertest.Config) drivertest.Config {
	cfg.Options, cfg.Broker = []string{"settle=" + settleAtMostOnce}, ""
	cfg.Mode, cfg.AtMostOnce, cfg.SettledReceive = true, true, true
	cfg.Inspector, cfg.Refusing, cfg.Rejected = nil, nil, nil
	cfg.Lacks = maps.Clone(cfg.Lacks)
	cfg.Lacks[drivertest.Transactions] = "transactions are confirmed by their commit"
	cfg.Lacks[drivertest.TransactedReceive] = "a broker forgets what it sends settled"
	return cfg
}

func artemisConfig(a *brokertest.Artemis) drivertest.Config {
	cfg := librarytest.Real(Factory(), a.Title(), a.AMQPURL())
	cfg.Inspect = inspect(cfg.URL, artemis)
	cfg.Lacks = map[drivertest.Feature]string{drivertest.Redelivered: "Artemis does not count deliveries that end with their connection"}
	return cfg
}

func TestConformance(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithLogin())
	cfg := artemisConfig(a)
	cfg.Refusing, cfg.Rejected = a.Refusing, a.Rejected
	drivertest.Run(t, cfg)
	t.Run("settled", func(t *testing.T) { drivertest.Run(t, settled(cfg)) })
}

func activemqConfig(a *brokertest.ActiveMQ) drivertest.Config {
	cfg := librarytest.Real(Factory(), a.Title(), a.AMQPURL())
	cfg.Inspect = inspect(cfg.URL, activemq)
	cfg.Lacks = map[drivertest.Feature]string{drivertest.SharedSubscription: "ActiveMQ Classic has no shared subscriptions"}
	return cfg
}

// scheduling are options of ActiveMQ Classic with its management and delayed messages.
func scheduling(more ...brokertest.ActiveMQOption) []brokertest.ActiveMQOption {
	return append(more, brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
}

func TestConformanceActiveMQ(t *testing.T) {
	a := brokertest.StartActiveMQ(t, scheduling()...)
	cfg := activemqConfig(a)
	cfg.Inspector = librarytest.Managed(t, a.ManagementURL(), true)
	drivertest.Run(t, cfg)
}

// shared is the broker of all tests that do not need one of their own.
var shared = brokertest.Shared{RabbitMQOptions: []brokertest.RabbitMQOption{
	brokertest.WithRabbitMQ4(), brokertest.WithRabbitMQManagement(), brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"),
}}

func TestMain(m *testing.M) { brokertest.Main(m, &shared) }

// rabbitmq4Config is for queues of a type, or for streams, which are topics.
func rabbitmq4Config(t *testing.T, kind string) drivertest.Config {
	t.Helper()
	r := shared.RabbitMQ(t)
	cfg := librarytest.Real(Factory(), r.Title()+", "+kind+" queues", r.AMQPURL())
	cfg.Options = []string{"declare=" + kind}
	cfg.Lacks = map[drivertest.Feature]string{
		drivertest.Topics:              "only queues and streams can be consumed from",
		drivertest.DurableSubscription: "only queues and streams can be consumed from",
		drivertest.SharedSubscription:  "only queues and streams can be consumed from",
		drivertest.Selector:            "RabbitMQ has no selectors (it confirms them and sends all messages)",
		drivertest.Group:               "RabbitMQ has no message groups",
		drivertest.Transactions:        "RabbitMQ has no transactions over AMQP 1.0",
		drivertest.TransactedReceive:   "RabbitMQ has no transactions over AMQP 1.0",
		drivertest.Delay:               "RabbitMQ has no delayed deliveries",
		drivertest.DynamicReply:        "RabbitMQ has dynamic queues from 4.2 on",
	}
	switch kind {
	case "classic":
		cfg.Lacks[drivertest.Priority] = "the queue has no priorities"
	case declareStream:
		cfg.Broker = r.Title() + ", streams"
		delete(cfg.Lacks, drivertest.Topics)
		for f, why := range map[drivertest.Feature]string{
			drivertest.Queues:      "each consumer of a stream gets all messages: it is a topic to perfmq",
			drivertest.Priority:    "a stream has no priorities",
			drivertest.TTL:         "messages of a stream do not expire one by one",
			drivertest.Reject:      "a stream keeps a message whatever its consumer says",
			drivertest.Release:     "a stream keeps a message whatever its consumer says",
			drivertest.Redelivered: "a consumer that comes again is another one to a stream",
		} {
			cfg.Lacks[f] = why
		}
	}
	cfg.Inspector = librarytest.Managed(t, r.ManagementURL(), false)
	cfg.Inspect = func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		declareQueue(t, cfg.URL, dest, cfg.Options)
		queue := dest
		queue.Kind = driver.Queue
		return brokertest.InspectAMQP(t, cfg.URL, true, dest.Kind, rabbitmq.address(queue), false)
	}
	return cfg
}

// declareQueue has the driver declare a queue.
func declareQueue(t testing.TB, url string, dest driver.Destination, options []string) {
	t.Helper()
	opts := driver.OpenOptions{URL: url, User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience, Options: Factory().NewOptions()}
	require.NoError(t, driver.SetOptions(opts.Options, options))
	d, err := Factory().Open(t.Context(), opts)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	k, err := d.Consumer(ctx, driver.ConsumerSpec{Connection: conn("declare"), Destination: dest, Name: "declare"})
	require.NoError(t, err)
	require.NoError(t, k.Close(ctx))
	require.NoError(t, d.Close(ctx))
}

// TestConformanceRabbitMQ4: classic queues are in make features.
func TestConformanceRabbitMQ4(t *testing.T) {
	for _, kind := range []string{"quorum", declareStream} {
		t.Run(kind, func(t *testing.T) { drivertest.Run(t, rabbitmq4Config(t, kind)) })
	}
}

func TestStreams(t *testing.T) { librarytest.Streams(t, Factory(), shared.RabbitMQ(t).AMQPURL(), true) }

// TestDeliveryLimit: a quorum queue drops a message that consumers have given back more often than its limit.
func TestDeliveryLimit(t *testing.T) {
	const limit, sent = 2, 10
	opts := driver.OpenOptions{URL: shared.RabbitMQ(t).AMQPURL(), User: brokertest.User, Password: brokertest.Password}
	r := newRig(t, opts, "declare=quorum", "delivery-limit=2")
	dest := driver.Destination{Name: "limited"}
	ends := newEnds()
	p := musttest.Get(r.d.Producer(soon(t), driver.ProducerSpec{
		Connection: conn("p"), Destination: dest, Name: "p", MaxPending: sent, Variants: body("limited"),
	}, ends))(t)
	for i := range sent {
		require.NoError(t, p.Send(soon(t), &driver.Message{Slot: driver.NewSlot(uint32(i), 0), Body: []byte("limited")}))
	}
	require.NoError(t, p.Close(soon(t)))
	k := musttest.Get(r.d.Consumer(soon(t), driver.ConsumerSpec{
		Connection: conn("c"), Destination: dest, Name: "c", Failing: driver.Release,
	}))(t)
	deliveries := 0
	ctx, stop := context.WithCancel(soon(t))
	require.NoError(t, k.Run(ctx, func(*driver.Delivery) driver.Verdict {
		if deliveries++; deliveries == sent*(limit+1) {
			time.AfterFunc(300*time.Millisecond, stop)
		}
		return driver.Release
	}))
	require.NoError(t, k.Close(soon(t)))
	require.Equal(t, sent*(limit+1), deliveries, "each message comes once, and again after each of %d returns", limit)
	left := musttest.Get(shared.RabbitMQ(t).Ctl(soon(t), "list_queues", "name", "messages"))(t)
	require.Contains(t, left, "limited\t0")
}
