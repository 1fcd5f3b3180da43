//go:build unix

package main

import (
	"math"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestRawOnce: a run is measured, and counters that differ from the client's are an error.
func TestRawOnce(t *testing.T) {
	b, err := broker.Start(broker.Config{Listen: map[string]string{"amqp": "127.0.0.1:0"}})
	require.NoError(t, err)
	defer b.Close()
	control := httptest.NewServer(b.Control(nil))
	defer control.Close()
	embedded := target{
		name: "embedded", pid: os.Getpid(), urls: map[string]string{"amqp": "amqp://" + b.Addr("amqp")},
		count: countEmbedded(control.URL + "/stats"),
	}
	for tries := 1; ; tries++ { // on a machine that stalls between the two readings they differ: the next run may show it
		o, err := new(bench).rawOnce(t.Context(), 10, warmup+time.Second, embedded)
		require.NoError(t, err)
		require.Positive(t, o.rate)
		require.Positive(t, o.broker)
		if math.Abs(o.broker-o.client) <= o.broker/10 {
			break
		}
		require.Less(t, tries, 5, "it is one process: %g and %g", o.broker, o.client)
	}

	stored, settled, err := embedded.count(t.Context(), "RAW.1")
	require.NoError(t, err)
	require.Equal(t, stored, settled)
	b.Store().Destination(store.Address{Kind: store.KindQueue, Name: "OTHER"})
	require.ErrorContains(t, embedded.check(t.Context(), "OTHER", 1), "sent and received 1 messages, the broker stored 0")
	_, _, err = embedded.count(t.Context(), "NONE")
	require.ErrorContains(t, err, "knows no queue")
}
