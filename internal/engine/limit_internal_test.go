package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

type nobody struct{ driver.Producer }

// TestMayPend: a client's own bound on the messages in flight holds once for the producers of a connection.
func TestMayPend(t *testing.T) {
	for name, tt := range map[string]struct {
		bound driver.InFlight
		want  []int // of producers 0 and 1 of one connection, and 2 of another
	}{
		"none":           {driver.InFlight{}, []int{100, 100, 100}},
		"per producer":   {driver.InFlight{Messages: 1}, []int{1, 1, 1}},
		"per connection": {driver.InFlight{Messages: 2, PerConnection: true}, []int{2, 0, 2}},
		"beyond":         {driver.InFlight{Messages: 200, PerConnection: true}, []int{100, 100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Endpoint{Broker: &plan.Broker{}, Factory: mem.Factory()}
			e.Factory.InFlight = func(any, *driver.ProducerSpec) driver.InFlight { return tt.bound }
			seen := map[connection]bool{}
			var got []int
			for _, key := range []string{"a", "a", "b"} {
				p := &producer{broker: e, driver: nobody{}}
				p.spec.MaxPending, p.spec.Connection.Key = 100, key
				got = append(got, p.mayPend(seen))
			}
			require.Equal(t, tt.want, got)
		})
	}
}
