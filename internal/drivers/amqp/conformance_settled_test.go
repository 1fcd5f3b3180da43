//go:build unix

package amqp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformanceSettled runs the suite with messages that are sent and received settled.
func TestConformanceSettled(t *testing.T) {
	for name, broker := range map[string]struct {
		url     func(t *testing.T) string
		lacks   map[drivertest.Feature]string
		maxBody int
	}{
		"artemis": {url: func(t *testing.T) string {
			t.Helper()
			return brokertest.StartArtemis(t, brokertest.WithLogin(), brokertest.WithoutManagement()).AMQPURL()
		}},
		"activemq": {
			url: func(t *testing.T) string {
				t.Helper()
				return brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin()).AMQPURL()
			},
			lacks: activemqLacks(),
		},
		"rabbitmq": {
			url: func(t *testing.T) string {
				t.Helper()
				return brokertest.StartRabbitMQ(t).AMQPURL()
			},
			lacks: rabbitmqLacks(), maxBody: 64 << 10, // with its frames of 66000 bytes
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: broker.url(t), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Options: []string{"settle=" + settleAtMostOnce, "max-frame-size=66000"}, MaxBody: broker.maxBody,
				AtMostOnce: true, SettledReceive: true, Lacks: broker.lacks,
				IgnoreGoroutines: harnessGoroutines(),
			})
		})
	}
}
