package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// A broker that swallows confirmations has the messages, and gets each of them again until one is confirmed: both
// arrive, which the resend explains.
func TestResendOfUnconfirmedMessages(t *testing.T) {
	for name, edit := range map[string]func(*flat){
		"closed loop": func(p *flat) { p.MaxPending = 4 },
		"open loop":   func(p *flat) { p.Rate, p.MaxPending = rate("100"), 4 },
		"reconnect":   func(p *flat) { p.Reconnect, p.MaxPending = true, 1 },
		"window":      func(p *flat) { p.Rate, p.MaxPending, p.VerifyWindow = rate("100"), 4, time.Second },
		"duration":    func(p *flat) { p.Rate, p.MaxPending, p.Count, p.Duration = rate("100"), 4, 0, 13*time.Second },
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Withhold = 10 })
			stored := storedAt(b)
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Mix, p.Seed = templated(t), 1
				p.Count, p.Verify, p.SendTimeout, p.Resend = 1000, true, 500*time.Millisecond, true
				p.Producer.Factory.Capabilities.TimesOut = false
				edit(p)
			}), nil)
			truth, v := b.Stats(), s.Verification.Total
			require.NotZero(t, truth.Withheld)
			bodies := map[driver.ID]string{}
			for _, m := range *stored { // a copy has the same body
				require.Contains(t, []string{"", string(m.Body)}, bodies[m.ID])
				bodies[m.ID] = string(m.Body)
				require.Contains(t, string(m.Body), fmt.Sprintf(`"number": %20d,`, m.ID.Number))
			}
			require.Equal(t, truth.Arrived, s.Total.Get(result.Sent)+s.Total.Get(result.Resent))
			require.Equal(t, s.Total.Get(result.Sent), s.Total.Get(result.Completed)+s.Total.Get(result.Unconfirmed))
			require.Equal(t, truth.Ended[driver.Accepted], s.Total.Get(result.Completed))
			require.Equal(t, truth.Stored, s.Total.Get(result.Received))
			require.Equal(t, s.Total.Get(result.Resent), v.Resent)
			require.Equal(t, v.Resent, v.Duplicates)
			require.Zero(t, v.Lost+v.Left+v.AfterOutage)
			if name != "duration" { // the last ones may be in doubt at its end
				require.EqualValues(t, 1000, s.Total.Get(result.Sent))
				require.EqualValues(t, 111, s.Total.Get(result.Resent), "each tenth of 1111 was withheld")
				require.Zero(t, s.Total.Get(result.Unconfirmed))
				require.True(t, s.Outcome.Success, s.Problems())
			}
			require.EqualValues(t, s.Total.Get(result.Resent), s.Values["resent"])
			if l := s.Latencies[result.Response]; l != nil {
				require.GreaterOrEqual(t, l.Max, int64(500_000), "it counts from the first sending")
			}
			require.GreaterOrEqual(t, s.Latencies[result.Transfer].Max, int64(500_000), "so does it")
			require.Less(t, s.Latencies[result.Ack].Max, int64(500_000), "it is that of the attempt that was confirmed")
		})
	}
}

// Messages in doubt are sent again after the outage, and all arrive.
func TestResendAfterAnOutage(t *testing.T) {
	for _, count := range []uint64{0, 3000} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = 20 * time.Millisecond })
			line := b.Line()
			for _, at := range []time.Duration{1, 2} {
				time.AfterFunc(at*time.Second+500*time.Microsecond, func() {
					line.Cut()
					time.Sleep(400 * time.Millisecond) //nolint:forbidigo // of a fake clock
					line.Restore()
				})
			}
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Count, p.Verify, p.Reconnect, p.Resend, p.MaxPending = count, true, true, true, 50
				p.Rate = rate("1000")
				if count == 0 {
					p.Duration = 5 * time.Second
				}
			}), nil)
			truth, v := b.Stats(), s.Verification.Total
			require.NotEmpty(t, s.Outages)
			var inDoubt uint64
			for i := range s.Outages {
				inDoubt += s.Outages[i].InDoubt
				require.Equal(t, s.Outages[i].InDoubt, s.Outages[i].Resent)
			}
			require.NotZero(t, inDoubt)
			require.Equal(t, inDoubt, s.Total.Get(result.Resent))
			require.Equal(t, truth.Ended[driver.Unknown], inDoubt)
			require.Equal(t, truth.Arrived, s.Total.Get(result.Sent)+s.Total.Get(result.Resent))
			require.Equal(t, s.Total.Get(result.Sent), s.Total.Get(result.Completed))
			require.Equal(t, truth.Ended[driver.Accepted], s.Total.Get(result.Completed))
			require.EqualValues(t, s.Total.Get(result.Sent), v.Received)
			require.LessOrEqual(t, v.Resent, s.Total.Get(result.Resent))
			require.Equal(t, v.Duplicates, v.Resent+v.AfterOutage)
			require.Zero(t, v.Lost+v.Left)
			require.True(t, s.Outcome.Success, s.Problems())
		})
	}
}

// Messages that timed out and are sent again belong to no outage, also if there is one later.
func TestResentOfTimeoutsIsOfNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Withhold = 10 })
		line := b.Line()
		time.AfterFunc(2500*time.Microsecond+3*time.Second, func() { line.Cut(); line.Restore() })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			through(p, line)
			p.Count, p.Rate, p.MaxPending, p.Verify = 1000, rate("100"), 50, true
			p.SendTimeout, p.Reconnect, p.Resend = 500*time.Millisecond, true, true
			p.Producer.Factory.Capabilities.TimesOut = false
		}), nil)
		require.Len(t, s.Outages, 1)
		o := &s.Outages[0]
		// The broker answers at once, unless it withholds: about each tenth message of the last 0.5 s was in flight.
		require.NotZero(t, o.InDoubt)
		require.LessOrEqual(t, o.InDoubt, uint64(7))
		require.Equal(t, o.InDoubt, o.Resent)
		truth := b.Stats()
		require.Equal(t, truth.Withheld, s.Total.Get(result.Resent))
		require.Greater(t, s.Total.Get(result.Resent), o.Resent)
	})
}

// A copy of a message that was never sent again is not explained by others that were.
func TestResendDoesNotExplainOtherCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Withhold, o.Duplicate = 10, 7 })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.Verify, p.SendTimeout, p.Resend, p.MaxPending = 1000, true, 500*time.Millisecond, true, 4
		}), nil)
		truth, v := b.Stats(), s.Verification.Total
		require.NotZero(t, truth.Duplicated)
		require.Equal(t, truth.Duplicated+s.Total.Get(result.Resent), v.Duplicates)
		require.Equal(t, s.Total.Get(result.Resent), v.Resent)
		require.False(t, s.Outcome.Success)
		require.Contains(t, s.Problems()[0], "messages received more than once")
	})
}
