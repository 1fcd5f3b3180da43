//go:build unix

package amqp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func activemqLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{drivertest.SharedSubscription: "ActiveMQ Classic has no shared subscriptions"}
}

func TestConformanceActiveMQ(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  brokertest.ActiveMQTitle(),
		Lacks:   activemqLacks(),
		Inspect: inspect(a.AMQPURL(), activemq), Inspector: managed(t, a.ManagementURL(), true),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

// managed asks a broker for its own counters over HTTP; of topics, if the broker tells those.
func managed(t *testing.T, url string, topics bool) func(driver.Kind) driver.Inspector {
	t.Helper()
	h, err := (&brokerside.Management{URL: url, User: brokertest.User, Password: brokertest.Password}).Open()
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return func(kind driver.Kind) driver.Inspector {
		if kind == driver.Topic && !topics {
			return nil
		}
		return h
	}
}
