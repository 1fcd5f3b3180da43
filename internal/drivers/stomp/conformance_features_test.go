//go:build unix && features

package stomp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4(), brokertest.WithRabbitMQManagement(),
		brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	t.Run("streams", func(t *testing.T) { librarytest.Streams(t, Factory(), r.STOMPURL(), true) })
	for _, quorum := range []bool{false, true} {
		cfg := rabbitmqConfig(r)
		cfg.Inspector = librarytest.Managed(t, r.ManagementURL(), false)
		cfg.MaxBody = 1 << 20 // it ends connections with frames above 4 MiB, unless stomp.max_frame_size says otherwise
		if quorum {
			cfg.Broker += ", quorum queues"
			cfg.Options = []string{"declare=quorum"}
			cfg.Inspect = stomptest.Broker{
				URL: cfg.URL, User: cfg.User, Password: cfg.Password,
				Destination: func(d driver.Destination) []string { return append(stomptest.Slashed(d), "x-queue-type", "quorum") },
			}.Inspect
			for _, f := range []drivertest.Feature{drivertest.Topics, drivertest.DurableSubscription, drivertest.SharedSubscription} {
				cfg.Lacks[f] = "only queues are declared as quorum queues, by their names"
			}
		} else {
			cfg.Lacks[drivertest.Priority] = "a queue has no priorities unless it is declared with them"
		}
		t.Run(cfg.Broker, func(t *testing.T) { drivertest.Run(t, cfg) })
	}
}

func TestConformanceArtemis219(t *testing.T) {
	old := brokertest.WithArtemis219()
	cfg := artemisConfig(brokertest.StartArtemis(t, old, brokertest.WithLogin()))
	cfg.Unshared = "before Artemis 2.33 a consumer of a topic has a connection of its own"
	cfg.Lacks[drivertest.Redelivered] = "Artemis 2.19 marks only the first of the messages that come again after a cut"
	drivertest.Run(t, cfg)
}

func TestConformanceActiveMQ516(t *testing.T) {
	old := brokertest.WithActiveMQ516()
	a := brokertest.StartActiveMQ(t, old, brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
	cfg := activemqConfig(a)
	cfg.Inspector = librarytest.Managed(t, a.ManagementURL(), true)
	drivertest.Run(t, cfg)
}
