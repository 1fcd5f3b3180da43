//go:build unix && features

package amqp

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4Classic(t *testing.T) { drivertest.Run(t, rabbitmq4Config(t, "classic")) }

func rabbitmqLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{
		drivertest.Topics:              "the plug-in leaves the queue of each topic consumer behind",
		drivertest.DurableSubscription: "the plug-in has no durable subscriptions",
		drivertest.SharedSubscription:  "the plug-in has no shared subscriptions",
		drivertest.Selector:            "the plug-in has no selectors",
		drivertest.Priority:            "a queue that is declared by its use has no priorities",
		drivertest.Group:               "RabbitMQ has no message groups",
		drivertest.Transactions:        "the plug-in has no transactions",
		drivertest.TransactedReceive:   "the plug-in has no transactions",
		drivertest.Delay:               "RabbitMQ has no delayed deliveries",
		drivertest.RequestReply:        "the plug-in takes no messages over links without an address",
		drivertest.DynamicReply:        "the plug-in takes no messages over links without an address",
	}
}

func rabbitmqConfig(r *brokertest.RabbitMQ) drivertest.Config {
	cfg := librarytest.Real(Factory(), r.Title(), r.AMQPURL())
	cfg.Inspect, cfg.Lacks = inspect(cfg.URL, rabbitmq3), rabbitmqLacks()
	return cfg
}

func TestConformanceRabbitMQ(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQManagement(), brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	cfg := rabbitmqConfig(r)
	cfg.Inspector = librarytest.Managed(t, r.ManagementURL(), false)
	drivertest.Run(t, cfg)
	requireNothingLeft(t, r)
}

// requireNothingLeft asks the broker for connections, and for the queues that the plug-in makes for topic consumers. Its
// lists do not have the connections of this plug-in, its log has.
func requireNothingLeft(t *testing.T, r *brokertest.RabbitMQ) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.EventuallyWithT(t, func(t *assert.CollectT) { // the broker is a moment behind
		log, err := os.ReadFile(r.LogFile())
		assert.NoError(t, err)
		assert.Empty(t, openInLog(string(log)))
	}, patience, 50*time.Millisecond)
	queues, err := r.Ctl(ctx, "list_queues", "name")
	require.NoError(t, err)
	require.NotContains(t, queues, "amq.gen")
}

// openInLog returns the processes of the connections that the broker has not closed. The process of a connection that
// the client closed while the plug-in was writing may crash ({writer,send_failed,{error,closed}}): then the log has its
// crash and no closing.
func openInLog(log string) map[string]bool {
	open := map[string]bool{}
	for _, m := range regexp.MustCompile(`(accepting|closing) AMQP connection (<[0-9.]+>)|\[error\] (<[0-9.]+>) +crasher:`).FindAllStringSubmatch(log, -1) {
		if m[1] == "accepting" {
			open[m[2]] = true
		} else {
			delete(open, m[2]+m[3])
		}
	}
	return open
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
