//go:build unix && features

package amqp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4(), brokertest.WithRabbitMQManagement(),
		brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			cfg := rabbitmqConfig(r)
			cfg.Broker += ", " + kind + " queues"
			cfg.Lacks = map[drivertest.Feature]string{
				drivertest.Topics:              "only queues can be consumed from",
				drivertest.DurableSubscription: "only queues can be consumed from",
				drivertest.SharedSubscription:  "only queues can be consumed from",
				drivertest.Selector:            "RabbitMQ has no selectors (it confirms them and sends all messages)",
				drivertest.Group:               "RabbitMQ has no message groups",
				drivertest.Transactions:        "RabbitMQ has no transactions over AMQP 1.0",
				drivertest.TransactedReceive:   "RabbitMQ has no transactions over AMQP 1.0",
				drivertest.Delay:               "RabbitMQ has no delayed deliveries",
				drivertest.DynamicReply:        "RabbitMQ has dynamic queues from 4.2 on",
			}
			if cfg.Options = []string{"declare=" + kind}; kind == "classic" {
				cfg.Lacks[drivertest.Priority] = "the queue has no priorities"
			}
			cfg.Inspector = librarytest.Managed(t, r.ManagementURL(), false)
			cfg.Inspect = func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
				t.Helper()
				declareQueue(t, cfg.URL, dest, cfg.Options)
				return inspect(cfg.URL, rabbitmq)(t, dest)
			}
			drivertest.Run(t, cfg)
		})
	}
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

// TestConformanceSettledElsewhere: TestConformance has settled messages on Artemis always.
func TestConformanceSettledElsewhere(t *testing.T) {
	t.Run("ActiveMQ Classic", func(t *testing.T) {
		drivertest.Run(t, settled(activemqConfig(brokertest.StartActiveMQ(t, scheduling()...))))
	})
	t.Run("RabbitMQ", func(t *testing.T) {
		r := brokertest.StartRabbitMQ(t)
		cfg := settled(rabbitmqConfig(r))
		cfg.MaxBody = 60_000 // in one frame
		drivertest.Run(t, cfg)
		requireNothingLeft(t, r)
	})
}

func TestConformanceQpid(t *testing.T) {
	q := brokertest.StartQpid(t)
	cfg := librarytest.Real(Factory(), q.Title(), q.AMQPURL())
	cfg.Inspect = inspect(cfg.URL, brokerj)
	cfg.Lacks = map[drivertest.Feature]string{
		drivertest.Reject:                 "Broker-J delivers rejected messages again unless the queue has a limit of attempts",
		drivertest.Group.On(driver.Topic): "subscriptions of Broker-J have no message groups",
		drivertest.Delay:                  "queues of Broker-J hold no messages back unless their holdOnPublishEnabled is set",
	}
	drivertest.Run(t, cfg)
}

func TestConformanceArtemis219(t *testing.T) {
	old := brokertest.WithArtemis219()
	drivertest.Run(t, artemisConfig(brokertest.StartArtemis(t, old, brokertest.WithLogin())))
}

func TestConformanceActiveMQ516(t *testing.T) {
	old := brokertest.WithActiveMQ516()
	a := brokertest.StartActiveMQ(t, scheduling(old)...)
	cfg := activemqConfig(a)
	cfg.Inspector = librarytest.Managed(t, a.ManagementURL(), true)
	drivertest.Run(t, cfg)
}
