//go:build unix

package amqp

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// harnessGoroutines are those of the brokers' harness, which outlive a sub-test.
func harnessGoroutines() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
	}
}

// artemisLacks: its delivery-count does not count deliveries that end with their connection.
func artemisLacks() map[drivertest.Feature]string {
	return map[drivertest.Feature]string{drivertest.Redelivered: "Artemis does not count deliveries that end with their connection"}
}

// inspect looks at messages with go-amqp.
func inspect(url string, d dialect) func(testing.TB, driver.Destination) func(int) []drivertest.Header {
	return func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		return brokertest.InspectAMQP(t, url, true, dest.Kind, d.address(dest), d.durability() != wire.DurableNone)
	}
}

func TestConformance(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker:   brokertest.ArtemisTitle(),
		Lacks:    artemisLacks(),
		Refusing: a.Refusing, Rejected: a.Rejected,
		Inspect: inspect(a.AMQPURL(), artemis),
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartArtemis(t, brokertest.WithLogin(), brokertest.WithoutManagement())
			return victim.AMQPURL(), victim.Kill
		},
		QueueCounters: func(t testing.TB, queue driver.Destination) (added, acknowledged int64) {
			t.Helper()
			// The last acknowledgements may still be under way to the broker: wait until its counters stand still.
			last := brokertest.QueueStats{MessagesAdded: -1}
			_, err := a.WaitQueue(t.Context(), queue.Name, func(s brokertest.QueueStats) bool {
				<-time.After(100 * time.Millisecond)
				still := s.MessagesAdded == last.MessagesAdded && s.MessagesAcked == last.MessagesAcked
				last = s
				return still
			})
			if errors.Is(err, brokertest.ErrNoQueue) {
				return 0, 0
			}
			require.NoError(t, err)
			return last.MessagesAdded, last.MessagesAcked
		},
		IgnoreGoroutines: harnessGoroutines(),
	})
	conformanceSettled(t, a.AMQPURL(), artemis, artemisLacks(), 0)
}
