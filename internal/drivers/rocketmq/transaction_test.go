//go:build unix

package rocketmq

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestTransactions(t *testing.T) {
	d := openDriver(t, mortal.get(t).URL(), "transactional=true", "rollback-percent=20", "unknown-percent=30")
	dest := queueNamed(unique("tx"))
	in := receive(t, d, consumerSpec(dest))
	o, p := send(t, d, producerSpec(dest, 0), 100)
	require.Equal(t, 100, o.count(driver.Accepted, driver.ClassNone))
	require.Equal(t, 50, counter(t, p, "tx-committed"))
	require.Equal(t, 20, counter(t, p, "tx-rolled-back"))
	require.Equal(t, 30, counter(t, p, "tx-left-open"))
	require.Equal(t, 30, counter(t, p, "tx-committed-late"))
	require.Zero(t, counter(t, p, "tx-open"))
	require.Equal(t, 20, o.withheld(), "known when the half message was answered")
	require.Zero(t, counter(t, p, "tx-unexpected-checks"))
	require.GreaterOrEqual(t, counter(t, p, "tx-checks"), 30)
	in.wait(t, 80)
	require.False(t, in.last.Redelivered)
}

// TestTransactionsLeftOpen: messages not checked back when a run ends are neither delivered nor withheld, and reported.
func TestTransactionsLeftOpen(t *testing.T) {
	d := openDriver(t, peculiar.get(t).URL(), "transactional=true", "rollback-percent=10", "unknown-percent=30")
	o := &outcomes{}
	p, err := d.Producer(t.Context(), producerSpec(queueNamed(unique("open")), 10), o)
	require.NoError(t, err)
	for i := range 10 {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: time.Now().UnixMicro()}))
	}
	require.Eventually(t, func() bool { return o.total() == 10 }, patience, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = p.Close(ctx)
	require.Equal(t, 10, o.count(driver.Accepted, driver.ClassNone))
	open := counter(t, p, "tx-left-open")
	require.Positive(t, open)
	require.Equal(t, open, counter(t, p, "tx-open"))
	require.ErrorContains(t, err, fmt.Sprintf("%d transactions are still open", open))
	require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
	require.NotEmpty(t, driver.HintOf(err))
	require.Equal(t, 1, o.withheld(), "as planned: share tells of ten which")
}
