//go:build unix

package stomp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
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

// artemisLacks are the features that Artemis lacks over STOMP.
func artemisLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{
		drivertest.TransactedReceive: "Artemis does not take acknowledgements in a transaction over STOMP",
		drivertest.Release:           noRelease,
	}
}

func artemisConfig(a *brokertest.Artemis) drivertest.Config {
	cfg := librarytest.Real(Factory(), a.Title(), a.STOMPURL())
	cfg.Inspect, cfg.Lacks = inspectAMQP(a.AMQPURL(), false), artemisLacks()
	return cfg
}

func TestConformanceArtemis(t *testing.T) {
	a := shared.Artemis(t)
	cfg := artemisConfig(a)
	cfg.Inspector, cfg.Refusing = librarytest.Managed(t, a.ManagementURL(), true), a.Refusing
	drivertest.Run(t, cfg)
}

// noRelease is why some brokers lack that.
const noRelease = "a NACK is the end of a message"

// classicLacks are the features that ActiveMQ Classic lacks.
func classicLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{
		drivertest.SharedSubscription:           "ActiveMQ Classic has no shared subscriptions",
		drivertest.Release:                      noRelease,
		drivertest.Redelivered.On(driver.Topic): "ActiveMQ Classic does not say so of the messages of a durable subscription",
	}
}

// inspectAMQP is a [drivertest.Config.Inspect] over AMQP: over STOMP Artemis does not distinguish text from bytes, and
// ActiveMQ Classic omits the group. whole: addresses have the kind of the destination.
func inspectAMQP(url string, whole bool) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		address := dest.Name
		if whole {
			address = dest.String()
		}
		return brokertest.InspectAMQP(t, url, true, dest.Kind, address, false)
	}
}

func activemqConfig(a *brokertest.ActiveMQ) drivertest.Config {
	cfg := librarytest.Real(Factory(), a.Title(), a.STOMPURL())
	cfg.Inspect, cfg.Lacks = inspectAMQP(a.AMQPURL(), true), classicLacks()
	return cfg
}

func TestConformanceActiveMQ(t *testing.T) {
	a := shared.ActiveMQ(t)
	cfg := activemqConfig(a)
	cfg.Inspector = librarytest.Managed(t, a.ManagementURL(), true)
	drivertest.Run(t, cfg)
}

func rabbitmqConfig(r *brokertest.RabbitMQ) drivertest.Config {
	cfg := librarytest.Real(Factory(), r.Title(), r.STOMPURL())
	cfg.Inspect = stomptest.Broker{URL: cfg.URL, User: cfg.User, Password: cfg.Password, Destination: stomptest.Slashed}.Inspect
	cfg.Lacks = map[drivertest.Feature]string{
		drivertest.Group:    "RabbitMQ has no message groups",
		drivertest.Selector: "RabbitMQ has no selectors",
		drivertest.Delay:    "RabbitMQ has no delayed deliveries",
		drivertest.Text:     "RabbitMQ does not tell text from bytes",
	}
	return cfg
}

func TestConformanceRabbitMQ(t *testing.T) {
	r := shared.RabbitMQ(t)
	cfg := rabbitmqConfig(r)
	cfg.Inspector = librarytest.Managed(t, r.ManagementURL(), false)
	cfg.Lacks[drivertest.Priority] = "a queue that is declared by its use has no priorities"
	drivertest.Run(t, cfg)
	t.Run("queue names", func(t *testing.T) { testQueueNamesOnRabbitMQ(t, r) })
}

func TestStreams(t *testing.T) {
	librarytest.Streams(t, Factory(), shared.RabbitMQ(t).STOMPURL(), false)
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

// TestConformanceOptions runs the suite with settings other than the defaults.
func TestConformanceOptions(t *testing.T) {
	a := shared.Artemis(t)
	for name, change := range map[string]func(*drivertest.Config){
		"receipt=false": func(cfg *drivertest.Config) {
			cfg.Options, cfg.AtMostOnce = []string{"receipt=false"}, true
			cfg.Lacks[drivertest.Transactions] = "transactions are confirmed by receipts"
		},
		"tls": func(cfg *drivertest.Config) {
			cfg.URL, cfg.TLS = a.STOMPSURL(), driver.TLS{CAFile: a.Certs().CAFile}
			cfg.Allocations = 4 // a burst is written by a goroutine that is made for it
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := artemisConfig(a)
			cfg.Mode, cfg.Broker = true, ""
			change(&cfg)
			drivertest.Run(t, cfg)
		})
	}
}
