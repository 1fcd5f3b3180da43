//go:build unix

package amqp

import (
	"context"
	"maps"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
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
