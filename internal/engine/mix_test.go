package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
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
			stored := storedAt(b)
			p := newPlan(b.Factory(), verified, func(p *flat) {
				threeKinds(p.Group)
				p.Producers, p.MaxPending, p.Count = producers, 10, 2100
			})
			s, _ := run(t, p, nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			require.EqualValues(t, 2100, s.Verification.Total.Once)
			require.EqualValues(t, 1680*100+315*9000+105*8, s.Total.Get(result.CompletedBytes))
			require.EqualValues(t, 1680*100+315*9000+105*8, s.Total.Get(result.ReceivedBytes))
			counts := map[string]int{}
			streams := map[int64]map[string]bool{}
			for _, m := range *stored {
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

// With a distribution, each producer sends each size equally often, in an order of the seed.
func TestSizesOfADistribution(t *testing.T) {
	orders := map[string][]int{}
	for _, seed := range []uint64{1, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := mem.New()
			stored := storedAt(b)
			p := newPlan(b.Factory(), verified, func(p *flat) {
				p.Seed, p.Producers, p.Count, p.Mix = seed, 2, 2*64*64, nil
				for _, s := range musttest.Get(plan.LognormalSizes("lognormal:200:1"))(t) {
					p.Mix = append(p.Mix, plan.Variant{Weight: 1, BodySize: s.Bytes, Law: s.Law, Variant: driver.Variant{Priority: -1}})
				}
				p.MakeBodies()
			})
			s, _ := run(t, p, nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			counts, order := map[int64]map[int]int{0: {}, 1: {}}, []int{}
			for _, m := range *stored {
				counts[m.ID.Producer][len(m.Body)]++
				if m.ID.Producer == 0 {
					order = append(order, len(m.Body))
				}
			}
			want := map[int]int{}
			for i := range p.Mix {
				want[len(p.Mix[i].Body)] += 64
			}
			require.Equal(t, map[int64]map[int]int{0: want, 1: want}, counts)
			key := fmt.Sprint(seed)
			if orders[key] != nil {
				require.Equal(t, orders[key], order)
			}
			orders[key] = order
		})
	}
	require.NotEqual(t, orders["1"], orders["2"])
}

// storedAt returns the list of all messages that b gets from now on.
func storedAt(b *mem.Broker) *[]mem.Message {
	var list []mem.Message
	b.OnStore = func(_ driver.Destination, m mem.Message) { list = append(list, m) }
	return &list
}
