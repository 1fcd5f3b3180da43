package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// TestRecovery: a closed loop of 200 messages per second has an outage from 5 s to 6 s, after which the broker is as
// fast as before, or not.
func TestRecovery(t *testing.T) {
	tests := []struct {
		name     string
		after    time.Duration // the broker's latency after the outage; 5 ms before
		edit     func(*flat)
		freeze   time.Duration // for how long before the outage nothing goes through
		watched  time.Duration
		recovers bool
	}{
		{name: "as before", after: 5 * time.Millisecond, recovers: true},
		{name: "faster", after: time.Millisecond, recovers: true},
		{name: "a little slower", after: 5200 * time.Microsecond, recovers: true},
		{name: "half as fast", after: 10 * time.Millisecond, watched: 24 * time.Second},
		{name: "soon over", after: 10 * time.Millisecond, edit: func(p *flat) { p.Duration = 14 * time.Second }, watched: 8 * time.Second},
		{name: "frozen before", after: 5 * time.Millisecond, freeze: 3 * time.Second, recovers: true},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = 5 * time.Millisecond })
			line := b.Line()
			p := newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Reconnect, p.Duration, p.MaxPending = true, 30*time.Second, 1
			}, tt.edit)
			if tt.freeze > 0 {
				time.AfterFunc(5*time.Second-tt.freeze, line.Freeze)
			}
			time.AfterFunc(5*time.Second, func() {
				line.Cut()
				b.Set(mem.Options{Latency: tt.after})
				time.Sleep(time.Second) //nolint:forbidigo // of a fake clock
				line.Restore()
			})
			s, _ := run(t, p, nil)
			require.Len(t, s.Outages, 1)
			o := inTime(s.Outages[0])
			require.InDelta(t, tt.freeze, o.Silent, float64(10*time.Millisecond))
			require.Equal(t, tt.recovers, o.Recovered > 0)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			if tt.recovers {
				require.GreaterOrEqual(t, o.Recovered, time.Second)
				require.Less(t, o.Recovered, o.Reconnected+2*time.Second, "the first full second after it is on")
				require.InDelta(t, (o.Recovered - o.Back).Microseconds(), s.Values["recovery.max"], 1)
				return
			}
			require.InDelta(t, tt.watched, o.Watched, float64(1100*time.Millisecond))
			require.NotContains(t, s.Values, "recovery.max", "it is not known")
		})
	}
}
