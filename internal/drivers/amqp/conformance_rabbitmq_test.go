//go:build unix

package amqp

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
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
	conformanceSettled(t, r.AMQPURL(), rabbitmq3, rabbitmqLacks(), 64<<10) // with its frames of 66000 bytes
	requireNothingLeft(t, r)
	t.Run("topic", func(t *testing.T) { testTopicOnRabbitMQ(t, r) })
}

// requireNothingLeft asks the broker for connections, and for the queues that the plug-in makes for topic consumers.
func requireNothingLeft(t *testing.T, r *brokertest.RabbitMQ) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for left := -1; left != 0; { // the broker is a moment behind
		if ctx.Err() != nil {
			text, _ := os.ReadFile(r.LogFile())
			for line := range strings.SplitSeq(string(text), "\n") {
				for id := range openConnections(t, r) {
					if strings.Contains(line, id) {
						t.Log(line)
					}
				}
			}
			t.Fatalf("%d connections are left at the broker", left)
		}
		if left = connectionsOf(t, r); left != 0 {
			<-time.After(50 * time.Millisecond)
		}
	}
	queues, err := r.Ctl(ctx, "list_queues", "name")
	require.NoError(t, err)
	require.NotContains(t, queues, "amq.gen")
}

// connectionsOf counts connections by the broker's log: its lists do not have those of this plug-in.
func connectionsOf(t *testing.T, r *brokertest.RabbitMQ) int {
	t.Helper()
	return len(openConnections(t, r))
}

func openConnections(t *testing.T, r *brokertest.RabbitMQ) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(r.LogFile())
	require.NoError(t, err)
	open := map[string]bool{}
	for _, m := range regexp.MustCompile(`(accepting|closing) AMQP connection (<[0-9.]+>)`).FindAllStringSubmatch(string(text), -1) {
		open[m[2]] = m[1] == "accepting"
		if !open[m[2]] {
			delete(open, m[2])
		}
	}
	return open
}

// testTopicOnRabbitMQ: topics work for those who take it that each consumer leaves a queue behind, which is the truth.
func testTopicOnRabbitMQ(t *testing.T, broker *brokertest.RabbitMQ) {
	opts := driver.OpenOptions{URL: broker.AMQPURL(), User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience}
	opts.Options = Factory().NewOptions()
	require.NoError(t, driver.SetOptions(opts.Options, []string{"leave-queues=true", "settle=at-most-once"}))
	d, err := Factory().Open(t.Context(), opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(context.Background())) }()
	dest := driver.Destination{Kind: driver.Topic, Name: "stocks.nyse"}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var consumers []driver.Consumer
	for _, name := range []string{"a", "b"} {
		c, err := d.Consumer(ctx, driver.ConsumerSpec{Connection: driver.Connection{Key: name, Name: name}, Destination: dest, Name: name})
		require.NoError(t, err)
		consumers = append(consumers, c)
	}
	for n := 0; n != 2; n = connectionsOf(t, broker) { // the log is a moment behind
		require.NoError(t, ctx.Err(), "%d connections instead of 2: what requireNothingLeft trusts", n)
		<-time.After(10 * time.Millisecond)
	}
	sent := make(chan driver.Outcome, 1)
	p, err := d.Producer(ctx, driver.ProducerSpec{
		Destination: dest, Name: "p", MaxPending: 1, Variants: []driver.Variant{{Body: []byte("x"), Priority: -1}},
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { sent <- o }))
	require.NoError(t, err)
	require.NoError(t, p.Send(ctx, &driver.Message{Time: 5}))
	require.Equal(t, driver.Outcome{}, <-sent)
	for _, c := range consumers {
		run, stop := context.WithCancel(ctx)
		got := 0
		require.NoError(t, c.Run(run, func(d *driver.Delivery) driver.Verdict {
			got++
			require.EqualValues(t, 5, d.Time)
			stop()
			return driver.Accept
		}))
		stop()
		require.Equal(t, 1, got)
		require.NoError(t, c.Close(ctx))
	}
	require.NoError(t, p.Close(ctx))
	queues, err := broker.Ctl(ctx, "list_queues", "name")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(queues, "amq.gen-"), "if these are removed now, -o leave-queues is not needed any more: %s", queues)
}
