//go:build unix

package amqp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func activemqLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{drivertest.SharedSubscription: "ActiveMQ Classic has no shared subscriptions"}
}

func TestConformanceActiveMQ(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  brokertest.ActiveMQTitle(),
		Lacks:   activemqLacks(),
		Inspect: inspect(a.AMQPURL(), activemq),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
	conformanceSettled(t, a.AMQPURL(), activemq, activemqLacks(), 0)
}
