//go:build unix

package crossing

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// orderMessages is the number of messages of each pair of protocols; `make features` sends more.
var orderMessages = flag.Int("order.messages", 5000, "messages of which the tests of order compare the order")

// TestOrder: the messages of one producer with a hundred in flight reach the only consumer of its queue in the order
// of the Send calls, with their IDs unchanged: by our own verification, which takes anything else for a broker's fault.
func TestOrder(t *testing.T) {
	all := bothBrokers(t)
	all["rabbitmq"] = urls{"amqp": shared.RabbitMQ(t).AMQPURL(), "stomp": shared.RabbitMQ(t).STOMPURL()}
	for broker, at := range all {
		for _, pair := range pairs() {
			from, to := pair[0], pair[1]
			t.Run(broker+"/"+from+"-"+to, func(t *testing.T) {
				if broker == "rabbitmq" && from != to {
					requireNoProperties(t, open(t, from, at[from]), open(t, to, at[to]))
					return
				}
				s := perfmq(t, from, "client", "--url", at[from], "--consumer-url", at[to], "--user", brokertest.User, "--password", brokertest.Password,
					"--verify", "--message-count", strconv.Itoa(*orderMessages), "--max-pending", "100", "--threshold", "out_of_order == 0",
					"queue://order."+from+"-"+to)
				require.EqualValues(t, *orderMessages, s.TotalReceived)
			})
		}
	}
}

// requireNoProperties holds RabbitMQ to the package comment: the body crosses, the time and the ID do not.
func requireNoProperties(t *testing.T, from, to driver.Driver) {
	t.Helper()
	dest := driver.Destination{Name: "crossing"}
	sendVariant(t, from, dest, driver.Variant{Body: []byte("body"), Priority: -1})
	got := receive(t, to, dest)
	require.Equal(t, "body", string(got.Body))
	require.False(t, got.HasTime, "if the time comes along now, let TestOrder check the IDs")
	require.Zero(t, got.ID)
}
