//go:build unix

package stomp

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	gostomp "github.com/go-stomp/stomp/v3"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestCumulativeAckOnRabbitMQ: one consumer per connection can acknowledge together; a second one is refused, for the
// reason that the last part shows.
func TestCumulativeAckOnRabbitMQ(t *testing.T) {
	r := shared.RabbitMQ(t)
	ctx, o := deadline(t), newOutcomes()
	d := openDriver(t, r.STOMPURL(), "ack=client")
	dest := driver.Destination{Name: "cumulative"}
	k, err := d.Consumer(ctx, driver.ConsumerSpec{Connection: driver.Connection{Key: "c"}, Destination: dest})
	require.NoError(t, err)
	_, err = d.Consumer(ctx, driver.ConsumerSpec{Connection: driver.Connection{Key: "c"}, Destination: dest})
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
	require.Contains(t, driver.HintOf(err), "client-individual")

	const n = 1000
	p, err := d.Producer(ctx, driver.ProducerSpec{Connection: driver.Connection{Key: "p"}, Destination: dest, MaxPending: n, Variants: bodies()}, o)
	require.NoError(t, err)
	send(t, p, n)
	o.wait(t, n)
	run, stop := context.WithCancel(ctx)
	got := 0
	require.NoError(t, k.Run(run, func(*driver.Delivery) driver.Verdict {
		if got++; got == n {
			stop()
		}
		return driver.Accept
	}))
	require.Equal(t, n, got)
	require.NoError(t, k.Close(ctx))
	require.NoError(t, p.Close(ctx))
	require.Eventually(t, func() bool {
		left, err := r.Ctl(ctx, "list_queues", "name", "messages")
		require.NoError(t, err)
		return strings.Contains(left, "cumulative\t0")
	}, patience, 100*time.Millisecond, "all was acknowledged")

	requireTakesAll(t, r.STOMPURL())
}

// requireTakesAll shows with the library's client that an ACK takes the messages of other subscriptions.
func requireTakesAll(t *testing.T, url string) {
	t.Helper()
	conn, err := gostomp.Dial("tcp", strings.TrimPrefix(url, "stomp://"),
		gostomp.ConnOpt.Login(brokertest.User, brokertest.Password), gostomp.ConnOpt.Host("/"))
	require.NoError(t, err)
	var subs [2]*gostomp.Subscription
	var messages [2]*gostomp.Message
	for i := range subs {
		queue := "/queue/both-" + strconv.Itoa(i)
		subs[i], err = conn.Subscribe(queue, gostomp.AckClient)
		require.NoError(t, err)
		require.NoError(t, conn.Send(queue, "text/plain", []byte("x")))
		select {
		case messages[i] = <-subs[i].C:
			require.NoError(t, messages[i].Err)
		case <-time.After(patience):
			t.Fatal("no message came")
		}
	}
	require.NoError(t, conn.Ack(messages[1]))
	require.NoError(t, conn.Ack(messages[0]))
	select {
	case m := <-subs[0].C:
		require.Error(t, m.Err, "if this ACK is right now, let several consumers use ack=client")
	case <-time.After(patience):
		t.Fatal("the broker did not end the connection: let several consumers use ack=client")
	}
	_ = conn.MustDisconnect()
}
