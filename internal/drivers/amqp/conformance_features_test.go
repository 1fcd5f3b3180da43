//go:build unix && features

package amqp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4(), brokertest.WithRabbitMQManagement(),
		brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	for _, kind := range []string{kindClassic, kindQuorum} {
		t.Run(kind, func(t *testing.T) {
			lacks := map[drivertest.Feature]string{
				drivertest.Topics:              "only queues can be consumed from",
				drivertest.DurableSubscription: "only queues can be consumed from",
				drivertest.SharedSubscription:  "only queues can be consumed from",
				drivertest.Selector:            "RabbitMQ has no selectors (it confirms them and sends all messages)",
				drivertest.Group:               "RabbitMQ has no message groups",
				drivertest.Transactions:        "RabbitMQ has no transactions over AMQP 1.0",
				drivertest.TransactedReceive:   "RabbitMQ has no transactions over AMQP 1.0",
				drivertest.Delay:               "RabbitMQ has no delayed deliveries",
			}
			options := []string{"declare=" + kind}
			if kind == kindClassic {
				options = append(options, "max-priority=9")
			}
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: r.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Broker: r.Title() + ", " + kind + " queues", Options: options, Lacks: lacks,
				Inspector: managed(t, r.ManagementURL(), false),
				Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
					t.Helper()
					declareQueue(t, r.AMQPURL(), dest, options)
					return inspect(r.AMQPURL(), rabbitmq)(t, dest)
				},
				Victim: func(t testing.TB) (string, func()) {
					t.Helper()
					victim := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4())
					return victim.AMQPURL(), victim.Kill
				},
				IgnoreGoroutines: harnessGoroutines(),
			})
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
		a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
		conformanceSettled(t, a.AMQPURL(), activemq, activemqLacks(), 0)
	})
	t.Run("RabbitMQ", func(t *testing.T) {
		r := brokertest.StartRabbitMQ(t)
		conformanceSettled(t, r.AMQPURL(), rabbitmq3, rabbitmqLacks(), 64<<10) // with its frames of 66000 bytes
		requireNothingLeft(t, r)
	})
}

func TestConformanceQpid(t *testing.T) {
	q := brokertest.StartQpid(t)
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: q.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  q.Title(),
		Inspect: inspect(q.AMQPURL(), brokerj),
		Lacks: map[drivertest.Feature]string{
			drivertest.Reject:                 "Broker-J delivers rejected messages again unless the queue has a limit of attempts",
			drivertest.Group.On(driver.Topic): "subscriptions of Broker-J have no message groups",
		},
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartQpid(t)
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

func TestConformanceArtemis219(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithArtemis219(), brokertest.WithLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  a.Title(),
		Lacks:   artemisLacks(),
		Inspect: inspect(a.AMQPURL(), artemis),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartArtemis(t, brokertest.WithArtemis219(), brokertest.WithLogin())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

func TestConformanceActiveMQ516(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: a.Title(), Lacks: activemqLacks(), Inspector: managed(t, a.ManagementURL(), true),
		Inspect: inspect(a.AMQPURL(), activemq),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}
