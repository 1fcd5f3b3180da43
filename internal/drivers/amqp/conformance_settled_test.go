//go:build unix

package amqp

import (
	"maps"
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// settledLacks is what those lack of a broker's who want messages sent and received settled.
func settledLacks(lacks map[drivertest.Feature]string) map[drivertest.Feature]string {
	all := maps.Clone(lacks)
	if all == nil {
		all = map[drivertest.Feature]string{}
	}
	all[drivertest.Transactions] = "transactions are confirmed by their commit"
	all[drivertest.TransactedReceive] = "a broker forgets what it sends settled"
	return all
}

// TestConformanceSettled runs the suite with messages that are sent and received settled.
func TestConformanceSettled(t *testing.T) {
	for name, broker := range map[string]struct {
		url     func(t *testing.T) string
		dialect dialect
		lacks   map[drivertest.Feature]string
		maxBody int
	}{
		"artemis": {dialect: artemis, lacks: artemisLacks(), url: func(t *testing.T) string {
			t.Helper()
			return brokertest.StartArtemis(t, brokertest.WithLogin(), brokertest.WithoutManagement()).AMQPURL()
		}},
		"activemq": {
			url: func(t *testing.T) string {
				t.Helper()
				return brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin()).AMQPURL()
			},
			dialect: activemq, lacks: activemqLacks(),
		},
		"rabbitmq": {
			url: func(t *testing.T) string {
				t.Helper()
				return brokertest.StartRabbitMQ(t).AMQPURL()
			},
			dialect: rabbitmq3, lacks: rabbitmqLacks(), maxBody: 64 << 10, // with its frames of 66000 bytes
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := broker.url(t)
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: url, User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Options: []string{"settle=" + settleAtMostOnce, "max-frame-size=66000"}, MaxBody: broker.maxBody,
				Mode: true, AtMostOnce: true, SettledReceive: true, Lacks: settledLacks(broker.lacks),
				Inspect:          inspect(url, broker.dialect),
				IgnoreGoroutines: harnessGoroutines(),
			})
		})
	}
}
