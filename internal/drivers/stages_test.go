package drivers_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestStagesOfADelayedLine: behind a line that adds a delay to each direction, each stage with an answer of the broker takes
// both, and connecting to the line takes none. A library that opens connections by itself reports nothing.
func TestStagesOfADelayedLine(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	for _, f := range append(drivers.All(), rocketmqgo.Factory()) {
		if f.Name == "mem" || f.Open == nil || f.ByScheme { // the embedded broker is no proxy of RocketMQ
			continue
		}
		t.Run(f.Name+" "+f.Client, func(t *testing.T) {
			t.Parallel()
			listen := map[string]string{}
			for _, p := range broker.Protocols() {
				listen[p] = "127.0.0.1:0"
			}
			b := musttest.Get(broker.Start(broker.Config{Listen: listen}))(t)
			defer b.Close()
			slow := &tcpproxy.Line{Delay: delay}
			slow.Slow(true)
			line := musttest.Get(tcpproxy.New(tcpproxy.Config{Target: b.Addr(f.Name), Line: slow}))(t)
			defer line.Close()
			opts := driver.OpenOptions{URL: f.Name + "://" + line.Addr(), ConnectTimeout: time.Minute, Options: f.NewOptions()}
			if f.Name == "rocketmq" { // the name server is not behind the line
				opts.URL = f.Name + "://" + b.Addr(f.Name)
				if f.Client == driver.Native {
					require.NoError(t, driver.SetOptions(opts.Options, []string{"broker-address=" + line.Addr()}))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d := musttest.Get(f.Open(ctx, opts))(t)
			defer d.Close(ctx)
			for _, produces := range []bool{true, false} {
				var mu sync.Mutex
				took := map[driver.Stage]time.Duration{}
				own := driver.Connection{Key: "p", Name: "p", Stages: func(s driver.Stage, d time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					took[s] += d
				}}
				var worker interface{ Close(context.Context) error }
				var err error
				if dest := (driver.Destination{Name: "T"}); produces {
					variants := []driver.Variant{{Body: []byte("x"), Priority: -1}}
					worker, err = d.Producer(ctx, driver.ProducerSpec{
						Connection: own, Destination: dest, Name: "p", MaxPending: 1, Variants: variants,
					}, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
				} else {
					own.Key, own.Name = "c", "c"
					worker, err = d.Consumer(ctx, driver.ConsumerSpec{Connection: own, Destination: dest, Name: "c"})
				}
				require.NoError(t, err)
				require.NoError(t, worker.Close(ctx))
				mu.Lock()
				if f.Capabilities.HidesConnections {
					require.Empty(t, took)
				} else {
					require.Positive(t, took[driver.StageConnect])
					answered := []driver.Stage{driver.StageLogin, driver.StageAttach}
					if f.Client == driver.Native {
						answered = append(answered, driver.StageClose)
					}
					if produces && f.Capabilities.Unattached {
						answered = slices.Delete(answered, 1, 2)
					}
					for _, s := range answered {
						if f.Name != "rocketmq" || s != driver.StageAttach { // of a producer it is the route, from the name server
							require.GreaterOrEqual(t, took[s], 2*delay, s)
						}
					}
				}
				mu.Unlock()
			}
		})
	}
}
