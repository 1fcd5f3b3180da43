//go:build unix && features

package stomp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceRabbitMQ4(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4(), brokertest.WithRabbitMQManagement(),
		brokertest.WithRabbitMQSetting("collect_statistics_interval", "500"))
	lacks := func(more ...drivertest.Feature) map[drivertest.Feature]string {
		lacks := map[drivertest.Feature]string{
			drivertest.Group:    "RabbitMQ has no message groups",
			drivertest.Selector: "RabbitMQ has no selectors",
			drivertest.Delay:    noDelay,
			drivertest.Text:     noText,
		}
		for _, f := range more {
			lacks[f] = "only queues are declared as quorum queues, by their names"
		}
		return lacks
	}
	plain := lacks()
	plain[drivertest.Priority] = "a queue has no priorities unless it is declared with them (-o declare=classic -o max-priority=9)"
	for _, c := range []struct {
		name    string
		options []string
		headers []string // of SUBSCRIBE that go with the options
		lacks   map[drivertest.Feature]string
	}{
		{r.Title(), nil, nil, plain},
		{
			r.Title() + ", quorum queues",
			[]string{"declare=quorum"},
			[]string{"x-queue-type", "quorum"},
			lacks(drivertest.Topics, drivertest.DurableSubscription, drivertest.SharedSubscription),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: r.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Broker: c.name, Options: c.options, Lacks: c.lacks, Inspector: managed(t, r.ManagementURL(), false),
				Inspect: stomptest.Broker{
					URL: r.STOMPURL(), User: brokertest.User, Password: brokertest.Password,
					Destination: func(d driver.Destination) []string { return append(stomptest.Slashed(d), c.headers...) },
				}.Inspect,
				MaxBody: 1 << 20, // it ends connections with frames above 4 MiB, unless stomp.max_frame_size says otherwise
				Victim: func(t testing.TB) (string, func()) {
					t.Helper()
					victim := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4())
					return victim.STOMPURL(), victim.Kill
				},
				IgnoreGoroutines: harnessGoroutines(),
			})
		})
	}
}

func TestConformanceArtemis219(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithArtemis219(), brokertest.WithLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:  a.Title(),
		Inspect: inspectArtemis(a),
		Lacks: map[drivertest.Feature]string{
			drivertest.TransactedReceive: "Artemis does not take acknowledgements in a transaction over STOMP",
			drivertest.Release:           noRelease,
			drivertest.Redelivered:       "Artemis 2.19 marks only the first of the messages that come again after a cut",
		},
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartArtemis(t, brokertest.WithArtemis219(), brokertest.WithLogin())
			return victim.STOMPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

func TestConformanceActiveMQ516(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin(), brokertest.WithActiveMQManagement(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: a.Title(), Inspector: managed(t, a.ManagementURL(), true),
		Inspect: inspectAMQP(a.AMQPURL()),
		Lacks:   classicLacks(),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartActiveMQ(t, brokertest.WithActiveMQ516(), brokertest.WithActiveMQLogin())
			return victim.STOMPURL(), victim.Kill
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
}

// TestConformanceVersions runs the suite with older versions of the protocol on ActiveMQ Classic.
func TestConformanceVersions(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin(), brokertest.WithActiveMQSetting("schedulerSupport", "true"))
	for _, version := range []string{"1.0", "1.1"} {
		t.Run(version, func(t *testing.T) {
			lacks, text := classicLacks(), plainText
			if version == "1.0" {
				text = "a: b, d é" // Classic undoes the escapes of later versions, which 1.0 has not
				lacks[drivertest.Reject] = "STOMP 1.0 has no NACK"
				lacks[drivertest.DurableSubscription] = "those of other names than the client's cannot be removed"
			}
			drivertest.Run(t, drivertest.Config{
				Factory: Factory(), URL: a.STOMPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
				Options: []string{"version=" + version, "dialect=activemq"}, PropertyText: text, Mode: true,
				Inspect:          inspectAMQP(a.AMQPURL()),
				Lacks:            lacks,
				IgnoreGoroutines: harnessGoroutines(),
			})
		})
	}
}
