//go:build unix

package rocketmq_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	ours "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestPairs: whatever is sent over RocketMQ arrives over each other protocol, and the other way round, once.
func TestPairs(t *testing.T) {
	listen := map[string]string{}
	for _, p := range broker.Protocols() {
		listen[p] = "127.0.0.1:0"
	}
	b, err := broker.Start(broker.Config{Listen: listen})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	open := func(t *testing.T, protocol string) driver.Driver {
		f := map[string]func() driver.Factory{broker.AMQP: amqp.Factory, broker.STOMP: stomp.Factory, broker.RocketMQ: ours.Factory}[protocol]()
		d, err := f.Open(t.Context(), driver.OpenOptions{
			URL: f.Schemes[0] + "://" + b.Addr(protocol), ConnectTimeout: patience, Options: f.NewOptions(),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
		return d
	}
	for _, pair := range [][2]string{
		{broker.AMQP, broker.RocketMQ},
		{broker.RocketMQ, broker.AMQP},
		{broker.STOMP, broker.RocketMQ},
		{broker.RocketMQ, broker.STOMP},
	} {
		for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
			t.Run(pair[0]+" to "+pair[1]+" "+kind.String(), func(t *testing.T) {
				t.Parallel()
				dest := driver.Destination{Kind: kind, Name: pair[0] + "-" + pair[1] + "-" + kind.String()}
				in := receive(t, open(t, pair[1]), dest)
				exchange(t, open(t, pair[0]), dest, 500)
				in.wait(t, 500)
			})
		}
	}
}

// exchange sends n messages, a hundred in flight.
func exchange(t *testing.T, d driver.Driver, dest driver.Destination, n int) {
	t.Helper()
	free := make(chan driver.Slot, 100)
	for i := range cap(free) {
		free <- driver.Slot(i)
	}
	var mu sync.Mutex
	bad := 0
	p, err := d.Producer(t.Context(), driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "p"}, Destination: dest, Name: "producer-1", MaxPending: cap(free), Variants: hello(),
	}, driver.DoneFunc(func(s driver.Slot, o driver.Outcome) {
		if o.State != driver.Accepted {
			mu.Lock()
			bad++
			mu.Unlock()
		}
		free <- s
	}))
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: <-free, Time: int64(i + 1)}))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Zero(t, bad)
}
