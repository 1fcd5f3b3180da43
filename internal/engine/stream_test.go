package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// The consumer of a stream from its first message should get the messages of earlier steps, one from its end those to
// come; what others should get is not known. The broker here keeps nothing, so that all of the first are missing.
func TestStreamOffsets(t *testing.T) {
	for offset, want := range map[string]struct{ expected, missing int }{
		"first": {20, 20}, "next": {0, 0}, "": {0, 0}, "last": {-1, -1}, "7": {-1, -1}, "1h": {-1, -1},
	} {
		inBubble(t, "from "+offset, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), false)
			readers := s.readers("readers", func(g *plan.Group) {
				g.Destinations, g.StreamOffset = []driver.Destination{{Kind: driver.Topic, Name: "S"}}, offset
			})
			s.step("write", lasting(2*time.Second), s.senders("senders", func(g *plan.Group) { paced("10")(g); g.Destinations = readers.Destinations }))
			s.step("read", lasting(2*time.Second), readers)
			sum, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
			require.NoError(t, err)
			if want.expected < 0 {
				require.Nil(t, sum.Expected)
				return
			}
			require.EqualValues(t, want.expected, *sum.Expected)
			require.EqualValues(t, want.missing, *sum.Missing)
		})
	}
}

// Messages that are missing after consumers gave some back may have met a delivery limit.
func TestDeliveryLimitIsNamed(t *testing.T) {
	for name, verify := range map[string]bool{"verified": true, "counted": false} {
		for fails, want := range map[bool]int{true: 1, false: 0} {
			inBubble(t, name, func(t *testing.T) {
				b := broker(t, func(o *mem.Options) { o.Lose = 100 })
				s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
					p.Count, p.MaxPending, p.Verify = 1000, 100, verify
					if fails {
						p.ConsumerFail, p.Failing = load.Whole/10, driver.Release
					}
				}), nil)
				require.EqualValues(t, 10, *s.Missing)
				var all []string
				for _, f := range s.Findings {
					all = append(all, f.Text)
				}
				require.Equal(t, want, strings.Count(strings.Join(all, "\n"), "a delivery limit of the queue may have dropped some"), all)
			})
		}
	}
}
