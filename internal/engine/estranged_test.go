package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
)

// A broker that drops all properties between two protocols makes strangers of our own messages: the summary must not
// just call them missing.
func TestPropertiesLostBetweenProtocols(t *testing.T) {
	const text = "none of the 100 messages received from "
	for _, tt := range []struct {
		name           string
		protocols      []string
		strips, verify bool
		says           bool
	}{
		{"dropped", []string{"one", "two"}, true, false, true},
		{"dropped, verified", []string{"one", "two"}, true, true, true},
		{"kept", []string{"one", "two"}, false, false, false},
		{"one protocol", []string{"one", "one"}, true, false, false},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			f := delivering(mem.New().Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
				if tt.strips {
					d.HasTime, d.Time, d.ID = false, 0, driver.ID{}
				}
				deliver(d)
			})
			s, _ := run(t, newPlan(f, func(p *flat) {
				p.Count, p.Verify = 100, tt.verify
				p.Producer.Factory.Name, p.Consumer.Factory.Name = tt.protocols[0], tt.protocols[1]
			}), nil)
			require.Equal(t, !tt.strips, s.Success)
			require.Equal(t, tt.says, strings.Contains(strings.Join(s.Problems(), "\n"), text), s.Problems())
		})
	}
}
