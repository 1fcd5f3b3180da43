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
	return openInLog(string(text))
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

func TestOpenInLog(t *testing.T) {
	log := `2026-11-22 20:16:17.1+00:00 [info] <0.1.0> accepting AMQP connection <0.1.0> (127.0.0.1:1 -> 127.0.0.1:9)
2026-11-22 20:16:17.2+00:00 [info] <0.2.0> accepting AMQP connection <0.2.0> (127.0.0.1:2 -> 127.0.0.1:9)
2026-11-22 20:16:17.3+00:00 [info] <0.3.0> accepting AMQP connection <0.3.0> (127.0.0.1:3 -> 127.0.0.1:9)
2026-11-22 20:16:17.4+00:00 [info] <0.1.0> closing AMQP connection <0.1.0> (127.0.0.1:1 -> 127.0.0.1:9)
` + "\x1b[38;5;160m2026-11-22 20:16:17.5+00:00 [error] <0.2.0>   crasher:\x1b[0m\n" + `
2026-11-22 20:16:17.6+00:00 [error] <0.5.0>     offender: [{pid,<0.3.0>},
`
	require.Equal(t, map[string]bool{"<0.3.0>": true}, openInLog(log))
}

// testTopicOnRabbitMQ: topics work for users that accept that each consumer leaves a queue behind, which is the truth.
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
