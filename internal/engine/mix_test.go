package engine_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	embedded "github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// threeKinds is a mix of 80, 15 and 5% that differ in all that kinds can differ in.
func threeKinds(g *plan.Group) {
	kind := func(name string) []driver.Property { return []driver.Property{{Key: "kind", Value: name}} }
	kinds := []driver.Variant{
		{Body: bytes.Repeat([]byte("s"), 100), Priority: -1, Properties: kind("small")},
		{Body: bytes.Repeat([]byte("l"), 9000), Priority: 7, Properties: kind("large")},
		{Body: []byte("<order/>"), Priority: 2, Group: "orders", Properties: kind("order")},
	}
	g.Mix = []plan.Variant{
		{Weight: 80, Variant: kinds[0], File: "small"},
		{Weight: 15, Variant: kinds[1], File: "large"},
		{Weight: 5, Variant: kinds[2], File: "order"},
	}
}

// The broker gets each kind as often as its weight says, over any number of producers, with all that belongs to the
// kind.
func TestMixAsStored(t *testing.T) {
	for _, producers := range []int{1, 3, 5, 7} {
		synctest.Test(t, func(t *testing.T) {
			b := mem.New()
			tap := b.Tap(driver.Destination{Name: "TEST"})
			p := newPlan(b.Factory(), func(p *flat) {
				verified(p)
				threeKinds(p.Group)
				p.Producers, p.MaxPending, p.Count = producers, 10, 2100
			})
			s, _ := run(t, p, nil)
			require.True(t, s.Success, "%q", s.Problems)
			require.EqualValues(t, 2100, s.Verification.Total.Once)
			require.EqualValues(t, 1680*100+315*9000+105*8, s.Total.CompletedBytes)
			require.EqualValues(t, 1680*100+315*9000+105*8, s.Total.ReceivedBytes)
			counts := map[string]int{}
			streams := map[int64]map[string]bool{}
			for _, m := range tap.Messages() {
				require.Len(t, m.Properties, 1)
				kind := m.Properties[0].Value
				counts[kind]++
				if streams[m.ID.Producer] == nil {
					streams[m.ID.Producer] = map[string]bool{}
				}
				streams[m.ID.Producer][kind] = true
				got := driver.Variant{Body: m.Body, Priority: m.Priority, Group: m.Group}
				want := map[string]driver.Variant{
					"small": {Body: p.Mix[0].Body, Priority: 4}, "large": {Body: p.Mix[1].Body, Priority: 7},
					"order": {Body: p.Mix[2].Body, Priority: 2, Group: "orders"},
				}
				require.Equal(t, want[kind], got)
			}
			require.Equal(t, map[string]int{"small": 1680, "large": 315, "order": 105}, counts)
			for _, kinds := range streams {
				require.Len(t, kinds, 3, "each producer sends all kinds")
			}
		})
	}
}

// Damaged and lost messages are found with several kinds as with one.
func TestMixIsVerified(t *testing.T) {
	for name, edit := range map[string]func(*mem.Options){
		"damage": func(o *mem.Options) { o.Damage = 7 }, "lose": func(o *mem.Options) { o.Lose = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker(t, edit)
				s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
					verified(p)
					threeKinds(p.Group)
					p.Producers, p.Count = 3, 2100
				}), nil)
				total, truth := s.Verification.Total, b.Stats()
				require.False(t, s.Success)
				require.EqualValues(t, 300, truth.Damaged+truth.Lost)
				require.Equal(t, truth.Damaged, total.Damaged)
				require.Equal(t, truth.Lost, total.Lost)
			})
		})
	}
}

// A group that has other messages in a later step sends these, and they count as whole.
func TestStepsWithOtherMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		tap := b.Tap(driver.Destination{Name: "TEST"})
		s := newScenario(b.Factory(), true)
		s.plan.Allow.Disorder = true // priorities are to do that
		s.step("one", nil, s.senders("senders", sending(100)), s.readers("readers", nil))
		s.step("several", nil, s.senders("senders", func(g *plan.Group) { threeKinds(g); g.Count = 100 }), s.readers("readers", nil))
		s.step("again", nil, s.senders("senders", func(g *plan.Group) { threeKinds(g); g.Count = 100 }), s.readers("readers", nil))
		s.step("another", drainedStep, s.senders("senders", func(g *plan.Group) { g.Mix, g.Count = bodies(500), 100 }), s.readers("readers", nil))
		sum := s.run(t, nil)
		require.True(t, sum.Success, "%q", sum.Problems)
		require.EqualValues(t, 400, sum.Verification.Total.Once)
		require.Zero(t, sum.Verification.Total.Damaged)
		sizes := map[int]int{}
		for _, m := range tap.Messages() {
			sizes[len(m.Body)]++
		}
		require.Equal(t, map[int]int{64: 100, 100: 160, 9000: 30, 8: 10, 500: 100}, sizes)
	})
}

// Consumers of each protocol receive as many of each kind as the weights say.
func TestMixAsReceived(t *testing.T) {
	const messages = 1000
	for _, f := range []driver.Factory{amqp.Factory(), stomp.Factory(), rocketmq.Factory()} {
		protocol := f.Name
		t.Run(protocol, func(t *testing.T) {
			b, err := embedded.Start(embedded.Config{Listen: map[string]string{protocol: "127.0.0.1:0"}})
			require.NoError(t, err)
			t.Cleanup(b.Close)
			e := endpoint(f, "")
			e.URL, e.ConnectTimeout, e.Options = f.Schemes[0]+"://"+b.Addr(protocol), 20*time.Second, f.NewOptions()
			d, err := f.Open(t.Context(), e.OpenOptions)
			require.NoError(t, err)
			dest := driver.Destination{Name: "MIX"}
			if !f.Capabilities.Queue.Exists {
				dest.Kind = driver.Topic
			}
			c, err := d.Consumer(t.Context(), driver.ConsumerSpec{
				Connection: driver.Connection{Key: "c", Name: "c"}, Destination: dest, Name: "c",
			})
			require.NoError(t, err)
			p := newPlan(f, func(p *flat) {
				threeKinds(p.Group)
				if protocol == embedded.RocketMQ {
					for i := range p.Mix {
						p.Mix[i].Priority = -1
					}
				}
				p.Role, p.Producer, p.ProducerBroker, p.Destinations = plan.Producer, e, e.Broker, []driver.Destination{dest}
				p.Producers, p.MaxPending, p.Count = 3, 20, messages
				p.DrainTimeout = time.Minute
			})
			s, err := carryOut(t.Context(), nil, p, new(recorder))
			require.NoError(t, err)
			require.EqualValues(t, messages, s.Total.Completed, "%q", s.Problems)

			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			sizes := map[int]int{}
			n := 0
			require.NoError(t, c.Run(ctx, func(m *driver.Delivery) driver.Verdict {
				sizes[len(m.Body)]++
				if n++; n == messages {
					cancel()
				}
				return driver.Accept
			}))
			require.Equal(t, map[int]int{100: 800, 9000: 150, 8: 50}, sizes)
			require.NoError(t, c.Close(context.Background()))
			require.NoError(t, d.Close(context.Background()))
		})
	}
}
