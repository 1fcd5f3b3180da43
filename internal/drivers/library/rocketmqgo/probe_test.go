//go:build unix && !race

package rocketmqgo_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	librarytest.Probe(t, rocketmqgo.Factory())
}

// TestProbeOfALostConnection: after a cut, the broker answers long before the library receives again. A probe is not
// answered before that, so that nobody takes for lost what the broker holds, and is answered within the time that the
// driver promises.
func TestProbeOfALostConnection(t *testing.T) {
	t.Parallel()
	// The library gives up the pull in flight after 30 s, and pulls again 3 s later; if the broker has lost messages so
	// that it does not know the offset, 30 s later.
	const receivesAgain = 65 * time.Second
	const n = 32 // some for each of the eight queues
	cfg := embedded(t)
	path := cfg.Path(t)
	f := rocketmqgo.Factory()
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: path.URL(), ConnectTimeout: time.Minute, Options: f.NewOptions()})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(t.Context())) }()
	dest := driver.Destination{Name: "probed"}
	consumer, err := d.Consumer(t.Context(), driver.ConsumerSpec{
		Destination: dest, Connection: driver.Connection{Key: "c", Name: "c"}, Name: "c",
	})
	require.NoError(t, err)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	var received sync.Map // by time, which all messages have of their own: some may come again after the cut
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(running, func(m *driver.Delivery) driver.Verdict {
			received.Store(m.Time, true)
			return driver.Accept
		})
	}()
	receives := func(accepted int, when string) {
		t.Helper()
		require.Eventually(t, func() bool {
			count := 0
			received.Range(func(any, any) bool { count++; return true })
			return count >= accepted
		}, 20*time.Second, 10*time.Millisecond, when)
	}
	before := librarytest.Send(t, d, dest, n) // or fewer, if the machine is busy: the library gives up after three seconds
	receives(before, "messages before the cut")

	path.Cut()
	path.Restore()
	after := librarytest.Send(t, d, dest, n)
	probe := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return consumer.(driver.Prober).Probe(ctx)
	}
	require.Error(t, probe(3*time.Second), "a probe while the library waits for the answer to a pull that is lost")
	require.NoError(t, probe(receivesAgain), "a probe within the time that the library needs")
	receives(before+after, "messages once the probe was answered")
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, consumer.Close(t.Context()))
}
