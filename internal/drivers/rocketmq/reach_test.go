package rocketmq

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestReach: a message that comes again is told from one that follows, and from one that has the offset of a message
// that the broker has lost.
func TestReach(t *testing.T) {
	r := &reach{}
	for _, c := range []struct {
		offset, stored int64
		again          bool
	}{
		{5, 100, false}, {6, 100, false}, {6, 100, true}, {5, 100, true}, {7, 90, false}, // the broker's clock was set back
		{8, 200, false}, {9, 200, false}, {8, 300, false}, {9, 300, false}, {9, 300, true},
	} {
		require.Equal(t, c.again, r.again(&wire.Message{MessageHead: wire.MessageHead{QueueOffset: c.offset, Stored: c.stored}}), c)
	}
}

// TestCutOffConsumer: what a consumer had when its connections were cut off, and had not told the broker, comes again to
// the next one, and is marked as redelivered. Nothing else is.
func TestCutOffConsumer(t *testing.T) {
	broker := shared.get(t)
	dest := queueNamed(unique("cut"))
	d := openDriver(t, broker.URL())
	o := &outcomes{}
	const n = 40
	p, err := d.Producer(t.Context(), producerSpec(dest, n), o)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: int64(i + 1)}))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, n, o.count(driver.Accepted, driver.ClassNone))

	seen := map[int64]bool{}
	again := 0
	note := func(d *driver.Delivery) {
		require.Equal(t, seen[d.Time], d.Redelivered, "message %d", d.Time)
		if seen[d.Time] {
			again++
		}
		seen[d.Time] = true
	}
	k, err := d.Consumer(t.Context(), consumerSpec(dest))
	require.NoError(t, err)
	err = k.Run(t.Context(), func(d *driver.Delivery) driver.Verdict {
		note(d)
		if len(seen) == 7 {
			for _, conn := range k.(*consumer).client.all() {
				conn.fail(errNoAnswer)
			}
		}
		return driver.Accept
	})
	require.Error(t, err)
	_ = k.Close(t.Context()) // its connections are gone
	k, err = d.Consumer(t.Context(), consumerSpec(dest))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, k.Run(ctx, func(d *driver.Delivery) driver.Verdict {
		note(d)
		if len(seen) == n {
			cancel()
		}
		return driver.Accept
	}))
	require.Len(t, seen, n)
	require.Positive(t, again)
	require.NoError(t, k.Close(t.Context()))
}
