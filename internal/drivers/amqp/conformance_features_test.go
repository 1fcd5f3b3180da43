//go:build unix && features

package amqp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4())
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
			}
			options := []string{"declare=" + kind}
			if kind == kindClassic {
				options = append(options, "max-priority=9")
			}
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: r.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Broker: r.Title() + ", " + kind + " queues", Options: options, Lacks: lacks,
				Inspect: inspect(r.AMQPURL(), rabbitmq),
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

func TestConformanceQpid(t *testing.T) {
	q := brokertest.StartQpid(t)
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: q.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  q.Title(),
		Inspect: inspect(q.AMQPURL(), brokerj),
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
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: a.Title(), Lacks: activemqLacks(),
		Inspect: inspect(a.AMQPURL(), activemq),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}
