package amqp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	driveramqp "github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestRefusedCommit: for the driver, a full queue is the reason of a refused commit as it is of a refused message.
func TestRefusedCommit(t *testing.T) {
	for _, interval := range []int{0, 1} {
		r := start(t, store.Config{Limit: 1, Full: store.Reject}, amqp.Options{})
		f := driveramqp.Factory()
		d, err := f.Open(t.Context(), driver.OpenOptions{
			URL: "amqp://" + r.addr, ConnectTimeout: timeout, Options: f.NewOptions(),
		})
		require.NoError(t, err)
		ended := make(chan driver.Outcome, 1)
		p, err := d.Producer(soon(t), driver.ProducerSpec{
			Destination: driver.Destination{Name: "q"}, MaxPending: 10, CommitInterval: interval,
			Variants: []driver.Variant{{Body: []byte("x"), Priority: -1}},
		}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { ended <- o }))
		require.NoError(t, err)
		send := func(n uint32) driver.Outcome {
			require.NoError(t, p.Send(soon(t), &driver.Message{Slot: driver.NewSlot(n, 1)}))
			select {
			case o := <-ended:
				return o
			case <-soon(t).Done():
				panic("no end came")
			}
		}
		require.Equal(t, driver.Outcome{}, send(0))
		o := send(1)
		require.Equal(t, driver.Rejected, o.State, "commit interval %d: %v", interval, o.Err)
		require.Equal(t, driver.ClassFull, o.Class, "commit interval %d: %v", interval, o.Err)
		require.ErrorContains(t, o.Err, "queue://q is full")
		require.NoError(t, p.Close(soon(t)))
		require.NoError(t, d.Close(soon(t)))
	}
}
