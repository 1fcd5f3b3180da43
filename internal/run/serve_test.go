package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
)

func TestBrokerSaysOnlyCountsThatItHas(t *testing.T) {
	t.Parallel()
	require.Equal(t, "queue://Q: sent 9, stored 9, settled 7, left 2, refused 4\n"+
		"topic://R: sent 100\n"+
		"rocketmq: delivered 99\n", counts(broker.Stats{
		Destinations: []store.DestinationStats{
			{Address: "queue://Q", Sent: 9, Refused: 4, Queues: []store.QueueStats{{Stored: 9, Settled: 7, Depth: 2}}},
			{Address: "topic://R", Sent: 100},
		},
		RocketMQ: &rocketmq.Stats{Delivered: 99},
	}))
}

func TestDescribeFaults(t *testing.T) {
	for _, c := range []struct {
		told store.Faults
		did  store.FaultCounts
		want string
	}{
		{store.Faults{LoseEvery: 5}, store.FaultCounts{Lost: 3, Stalls: 1}, "faults of the broker: lost 3, stalls 1"},
		{store.Faults{LoseEvery: 5}, store.FaultCounts{}, "faults of the broker: lose=5; no message met them"},
		{
			store.Faults{LoseEvery: 5, Delay: time.Second},
			store.FaultCounts{Lost: 3, Delayed: 12},
			"faults of the broker: lost 3, delayed 12",
		},
	} {
		require.Equal(t, c.want, describeFaults(c.told, c.did))
	}
}
