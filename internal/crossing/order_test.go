//go:build unix

package crossing

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// orderMessages is how many messages each pair of protocols sends; `make features` sends more.
var orderMessages = flag.Int("order.messages", 5000, "messages of which the tests of order compare the order")

// TestOrder: the messages of one producer with a hundred in flight reach the only consumer of its queue in the order
// of the Send calls, with their IDs unchanged. Verification takes anything else for a fault of the broker.
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
				dest := driver.Destination{Name: "order." + from + "-" + to}
				requireOrder(t, open(t, from, at[from]), open(t, to, at[to]), dest)
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

func requireOrder(t *testing.T, from, to driver.Driver, dest driver.Destination) {
	t.Helper()
	const pending = 100
	n := *orderMessages
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	id := func(number int64) driver.ID {
		return driver.ID{Run: 1<<62 + 1, Producer: number % 3, Number: number, Sum: 1<<63 - 1 - number}
	}
	c, err := to.Consumer(ctx, driver.ConsumerSpec{
		Connection: driver.Connection{Key: "c", Name: "c"}, Destination: dest, Name: "c",
	})
	require.NoError(t, err)
	var ended error
	var got, wrong int64
	var first driver.ID
	finished := make(chan struct{})
	run, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(finished)
		ended = c.Run(run, func(d *driver.Delivery) driver.Verdict {
			if d.ID != id(got) {
				if wrong++; wrong == 1 {
					first = d.ID
				}
			}
			if got++; got == int64(n) {
				stop()
			}
			return driver.Accept
		})
	}()

	free := make(chan driver.Slot, pending)
	for slot := range pending {
		free <- driver.Slot(slot)
	}
	refused := make(chan driver.Outcome, n)
	p, err := from.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "p"}, Destination: dest, Name: "p", MaxPending: pending,
		Variants: []driver.Variant{{Body: make([]byte, 1024), Priority: -1}},
	}, driver.DoneFunc(func(s driver.Slot, o driver.Outcome) {
		if o != (driver.Outcome{}) {
			refused <- o
		}
		free <- s
	}))
	require.NoError(t, err)
	for number := range int64(n) {
		require.NoError(t, p.Send(ctx, &driver.Message{Slot: <-free, Time: stamp, ID: id(number)}))
	}
	require.NoError(t, p.Close(ctx))
	require.Empty(t, refused)
	<-finished
	require.NoError(t, ended)
	require.NoError(t, c.Close(ctx))
	require.EqualValues(t, n, got)
	require.Zerof(t, wrong, "messages came with other IDs than expected, the first with %+v", first)
}
