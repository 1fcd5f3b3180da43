package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The embedded broker has room for messages by their average size.
func TestMemoryOfMixes(t *testing.T) {
	g := &plan.Group{Role: plan.Producer, Count: 1000, Mix: []plan.Variant{{Weight: 9, BodySize: 1 << 10}, {Weight: 1, BodySize: 1 << 20}}}
	p := &plan.Plan{Steps: []plan.Step{{Groups: []*plan.Group{g}}}}
	messages, bytes := stored(p)
	require.EqualValues(t, 1000, messages)
	require.EqualValues(t, 900<<10+100<<20+1000*512, bytes)
	g.Mix[1].BodySize = 16 << 20
	require.EqualValues(t, 4*(16<<20+1<<10), backlog(p), "room for four of the largest")
}

// A delivery delay needs room for the delayed messages, without blocking producers.
func TestMemoryOfDelays(t *testing.T) {
	g := &plan.Group{
		Role: plan.Client, ProducerBroker: &plan.Broker{}, ConsumerBroker: &plan.Broker{},
		Destinations: []driver.Destination{{Name: "A"}}, Mix: []plan.Variant{{Weight: 1, BodySize: 1 << 10}},
	}
	p := &plan.Plan{Steps: []plan.Step{{Groups: []*plan.Group{g}}}}
	require.True(t, drains(p))
	held := func(f store.Faults) int64 {
		b := musttest.Get(startSite(p, "", f))(t)
		defer b.Close()
		d := b.Store().Destination(driver.Destination{Name: "A"})
		large := storetest.Content{Data: strings.Repeat("x", 1<<20)}
		var n int64
		for ; n < 64 && d.Room(); n++ {
			require.Equal(t, store.Stored, d.Send(&store.Message{Content: large}))
		}
		return n
	}
	require.EqualValues(t, 16, held(store.Faults{}), "MiB")
	require.EqualValues(t, 64, held(store.Faults{Delay: time.Hour}), "MiB, delayed by a fault")
	g.Delay = time.Hour
	require.EqualValues(t, 64, held(store.Faults{}), "MiB, delayed as asked for")
}

func TestCounts(t *testing.T) {
	t.Parallel()
	require.Equal(t, "sent 9, stored 8, settled 7, left 2, refused 4\nfaults of the broker: lost 1\n", counts(broker.Stats{
		Total: store.Totals{Sent: 9, Refused: 4, QueueStats: store.QueueStats{Stored: 8, Settled: 7, Depth: 2}}, Done: store.FaultCounts{Lost: 1},
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
