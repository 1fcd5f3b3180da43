package run

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// queues is a plan of a producer that sends so many messages, 10 a second, to each of two queues, and to a topic.
func queues(f driver.Factory, count uint64) (*plan.Plan, plan.Drivers) {
	b := &plan.Broker{Protocol: f.Name, OpenOptions: driver.OpenOptions{URL: "mem://local", ConnectTimeout: time.Second}}
	rate, _ := load.ParseSchedule("10")
	return &plan.Plan{DrainTimeout: time.Second, FakeClock: true, Steps: []plan.Step{{Name: plan.OnlyStep, Groups: []*plan.Group{{
		Role: plan.Producer, ProducerBroker: b, Producers: 1, Count: count, Rate: plan.Rate{Schedule: rate},
		ProducerSpec: driver.ProducerSpec{MaxPending: 1}, Mix: []plan.Variant{{Weight: 1, Variant: driver.Variant{Priority: -1, Body: make([]byte, 64)}}},
		Destinations: []driver.Destination{{Name: "A"}, {Name: "B"}, {Kind: driver.Topic, Name: "T"}},
	}}}}}, func(*plan.Broker) *driver.Factory { return &f }
}

// withoutAdmin is a driver that cannot be asked to purge.
func withoutAdmin(f driver.Factory) driver.Factory {
	f.Capabilities.Administers = false
	return f
}

// TestEmpty: of 30 messages to two queues and a topic 20 are removed, by the broker or by a consumer, and none again.
func TestEmpty(t *testing.T) {
	for name, edit := range map[string]func(driver.Factory) driver.Factory{
		"purged": func(f driver.Factory) driver.Factory { return f }, "consumed": withoutAdmin,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, drivers := queues(edit(mem.New().Factory()), 30)
				s, err := engine.Run(t.Context(), make(chan struct{}), &engine.Config{Plan: p, Endpoints: engine.Reach(p, drivers)}, report.NewFan())
				require.NoError(t, err)
				require.EqualValues(t, 30, s.Total[result.Completed])
				for _, want := range []uint64{20, 0} {
					removed, err := Empty(nil, p, drivers)
					require.NoError(t, err)
					require.Equal(t, want, removed)
				}
			})
		})
	}
}

// TestEmptyEnds: emptying ends by a signal, and by its limit: of queues that something still sends to, and at a broker
// that does not answer, even by a driver that does not heed its context.
func TestEmptyEnds(t *testing.T) {
	opening := func(wait func(ctx context.Context)) driver.Factory {
		f := mem.New().Factory()
		f.Open = func(ctx context.Context, _ driver.OpenOptions) (driver.Driver, error) {
			wait(ctx)
			return nil, errors.New("ended")
		}
		return f
	}
	for name, c := range map[string]struct {
		factory func() driver.Factory
		more    time.Duration // until it is given up
	}{
		"sent to": {func() driver.Factory { return withoutAdmin(mem.New().Factory()) }, 0},
		"silent":  {func() driver.Factory { return opening(func(ctx context.Context) { <-ctx.Done() }) }, 0},
		"deaf":    {func() driver.Factory { return opening(func(context.Context) { <-time.After(time.Hour) }) }, lastGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, drivers := queues(c.factory(), 0)
				ctx, cancel := context.WithCancel(t.Context())
				if name == "sent to" {
					go func() {
						_, _ = engine.Run(ctx, make(chan struct{}), &engine.Config{Plan: p, Endpoints: engine.Reach(p, drivers)}, report.NewFan())
					}()
				}
				begun := time.Now()
				_, err := Empty(nil, p, drivers)
				require.EqualError(t, err, "empty the queues: they are not empty after 10m0s")
				require.Contains(t, driver.HintOf(err), "between-runs: fresh")
				require.InDelta(t, emptyLimit+c.more, time.Since(begun), float64(time.Second))

				signals := make(chan os.Signal)
				time.AfterFunc(time.Minute, func() { signals <- syscall.SIGINT })
				begun = time.Now()
				_, err = Empty(signals, p, drivers)
				require.Equal(t, ErrStopped, err)
				require.InDelta(t, time.Minute+c.more, time.Since(begun), float64(time.Second))
				cancel()
				<-time.After(2 * time.Hour) // what was left behind ends
			})
		})
	}
}
