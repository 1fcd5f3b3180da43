//go:build unix

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
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

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
	}
}

func TestConformanceRabbitMQ(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQManagement(), brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: r.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  brokertest.RabbitMQTitle(),
		Lacks:   rabbitmqLacks(),
		Inspect: inspect(r.AMQPURL(), rabbitmq3), Inspector: managed(t, r.ManagementURL(), false),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartRabbitMQ(t)
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
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
