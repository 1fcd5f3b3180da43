package engine_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
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

// storedAt returns the list of all messages that b gets from now on.
func storedAt(b *mem.Broker) *[]mem.Message {
	var list []mem.Message
	b.OnStore = func(_ driver.Destination, m mem.Message) { list = append(list, m) }
	return &list
}
