//go:build unix

package stomp

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// shared are the brokers of all tests that do not need one of their own.
var shared = brokertest.Shared{
	ArtemisOptions:  []brokertest.ArtemisOption{brokertest.WithLogin(), brokertest.WithTLS()},
	ActiveMQOptions: []brokertest.ActiveMQOption{brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true")},
	RabbitMQOptions: []brokertest.RabbitMQOption{
		brokertest.WithRabbitMQManagement(), brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"),
	},
}

func TestMain(m *testing.M) { brokertest.Main(m, &shared) }

// harnessGoroutines are those of the brokers' harness, which outlive a sub-test.
func harnessGoroutines() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
	}
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

func TestConformanceArtemis(t *testing.T) {
	a := shared.Artemis(t)
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: brokertest.ArtemisTitle(), Inspector: managed(t, a.ManagementURL(), true),
		Refusing: a.Refusing,
		Inspect:  inspectArtemis(a),
		Lacks: map[drivertest.Feature]string{
			drivertest.TransactedReceive: "Artemis does not take acknowledgements in a transaction over STOMP",
			drivertest.Release:           noRelease,
		},
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartArtemis(t, brokertest.WithLogin(), brokertest.WithoutManagement())
			return victim.STOMPURL(), victim.Kill
		},
		QueueCounters: func(t testing.TB, queue driver.Destination) (added, acknowledged int64) {
			t.Helper()
			stats, err := a.Queue(t.Context(), queue.Name) // the suite asks until the counters are right
			if !errors.Is(err, brokertest.ErrNoQueue) {
				require.NoError(t, err)
			}
			return stats.MessagesAdded, stats.MessagesAcked
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

// inspectArtemis is a [drivertest.Config.Inspect] by way of AMQP: over STOMP Artemis does not tell text from bytes.
func inspectArtemis(a *brokertest.Artemis) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		return brokertest.InspectAMQP(t, a.AMQPURL(), true, dest.Kind, dest.Name, false)
	}
}

// noRelease is why some brokers lack that.
const noRelease = "a NACK is the end of a message"

const (
	noDelay = "RabbitMQ has no delayed deliveries"
	noText  = "RabbitMQ does not tell text from bytes"
)

// classicLacks are the features that ActiveMQ Classic lacks.
func classicLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{
		drivertest.SharedSubscription:           "ActiveMQ Classic has no shared subscriptions",
		drivertest.Release:                      noRelease,
		drivertest.Redelivered.On(driver.Topic): "ActiveMQ Classic does not say so of the messages of a durable subscription",
	}
}

// inspectAMQP is a [drivertest.Config.Inspect] by way of AMQP: over STOMP ActiveMQ Classic does not say of which group
// a message is.
func inspectAMQP(url string) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		return brokertest.InspectAMQP(t, url, true, dest.Kind, dest.String(), false)
	}
}

func TestConformanceActiveMQ(t *testing.T) {
	a := shared.ActiveMQ(t)
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: brokertest.ActiveMQTitle(), Inspector: managed(t, a.ManagementURL(), true),
		Inspect: inspectAMQP(a.AMQPURL()),
		Lacks:   classicLacks(),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
			return victim.STOMPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

func TestConformanceRabbitMQ(t *testing.T) {
	r := shared.RabbitMQ(t)
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: r.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: brokertest.RabbitMQTitle(), Inspector: managed(t, r.ManagementURL(), false),
		Inspect: stomptest.Broker{URL: r.STOMPURL(), User: brokertest.User, Password: brokertest.Password, Destination: stomptest.Slashed}.Inspect,
		Lacks: map[drivertest.Feature]string{
			drivertest.Priority: "a queue that is declared by its use has no priorities",
			drivertest.Group:    "RabbitMQ has no message groups",
			drivertest.Selector: "RabbitMQ has no selectors",
			drivertest.Delay:    noDelay,
			drivertest.Text:     noText,
		},
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartRabbitMQ(t)
			return victim.STOMPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
	t.Run("queue names", func(t *testing.T) { testQueueNamesOnRabbitMQ(t, r) })
}

// testQueueNamesOnRabbitMQ: queues have the name that was given, which other protocols know them by.
func testQueueNamesOnRabbitMQ(t *testing.T, r *brokertest.RabbitMQ) {
	ctx, d := deadline(t), openDriver(t, r.STOMPURL())
	const name = "a b/c%d%25.*"
	o := newOutcomes()
	p, err := d.Producer(ctx, driver.ProducerSpec{Destination: driver.Destination{Name: name}, MaxPending: 1, Variants: bodies()}, o)
	require.NoError(t, err)
	send(t, p, 1)
	o.wait(t, 1)
	require.NoError(t, p.Close(ctx))
	queues, err := r.Ctl(ctx, "list_queues", "name")
	require.NoError(t, err)
	require.Contains(t, strings.Split(queues, "\n"), name)
}

// plainText has only text that STOMP 1.0 can carry, which has no escapes.
const plainText = "a: b\\c d é"

// TestConformanceOptions runs the suite with settings other than the defaults.
func TestConformanceOptions(t *testing.T) {
	a := shared.Artemis(t)
	noTx := map[drivertest.Feature]string{
		drivertest.TransactedReceive: "Artemis does not take acknowledgements in a transaction", drivertest.Release: noRelease,
	}
	old := maps.Clone(noTx)
	old[drivertest.Reject] = "STOMP 1.0 has no NACK"
	for name, cfg := range map[string]drivertest.Config{
		"version=1.0": {Options: []string{"version=1.0", "dialect=artemis"}, Lacks: old, PropertyText: plainText, Unnamed: "STOMP 1.0 has no header server"},
		"receipt=false": {
			Options: []string{"receipt=false"}, AtMostOnce: true,
			Lacks: map[drivertest.Feature]string{
				drivertest.TransactedReceive: noTx[drivertest.TransactedReceive],
				drivertest.Transactions:      "transactions are confirmed by receipts",
				drivertest.Release:           noRelease,
			},
		},
		// Over TLS a burst is written by a goroutine that is made for it.
		"tls": {URL: a.STOMPSURL(), TLS: driver.TLS{CAFile: a.Certs().CAFile}, Lacks: noTx, Allocations: 4},
	} {
		t.Run(name, func(t *testing.T) {
			if cfg.URL == "" {
				cfg.URL = a.STOMPURL()
			}
			cfg.Inspect = inspectArtemis(a)
			cfg.Factory, cfg.User, cfg.Password, cfg.WrongPassword = Factory(), brokertest.User, brokertest.Password, "wrong"
			cfg.IgnoreGoroutines, cfg.Mode = harnessGoroutines(), true
			drivertest.Run(t, cfg)
		})
	}
}
