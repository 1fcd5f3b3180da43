package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
)

// Messages that were due and never left have no latency: the summary must say that there were some.
func TestRateThatWasNotReached(t *testing.T) {
	tests := []struct {
		name    string
		options func(*mem.Options)
		edit    func(*flat)
		warning string // "" for none
	}{
		{name: "reached"},
		{name: "a message every two seconds", edit: func(p *flat) { p.Rate = rate("0.5") }},
		{name: "the count is the limit", edit: func(p *flat) { p.Count = 20 }},
		{
			name: "a slow broker", options: func(o *mem.Options) { o.Latency = 60 * time.Millisecond },
			edit:    func(p *flat) { p.MaxPending = 1 },
			warning: "833 of the 1000 messages that were due were not sent",
		},
		{
			name: "a slow broker and a count", options: func(o *mem.Options) { o.Latency = 60 * time.Millisecond },
			edit:    func(p *flat) { p.MaxPending, p.Count = 1, 600 },
			warning: "433 of the 600 messages that were due were not sent",
		},
		{
			name: "late, but sent in the end", options: func(o *mem.Options) { o.StallAfter, o.StallFor = time.Second, 5*time.Second },
		},
		{
			name: "no rate", options: func(o *mem.Options) { o.Latency = 60 * time.Millisecond },
			edit: func(p *flat) { p.Rate, p.MaxPending = plan.Rate{}, 1 },
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, tt.options)
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				steady(p)
				if tt.edit != nil {
					tt.edit(p)
				}
			}), nil)
			warnings := strings.Join(s.Warnings(), "\n")
			if tt.warning == "" {
				require.NotContains(t, warnings, "rate was missed")
				return
			}
			require.Contains(t, warnings, tt.warning)
		})
	}
}
