package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// windowed is a run of 30 s at 100 messages a second, each lost if it has not come within 5 s.
func windowed(p *flat) {
	p.Rate, p.Duration, p.MaxPending, p.Verify, p.VerifyWindow = rate("100"), 30*time.Second, 100, true, 5*time.Second
}

// losses returns when messages were found lost, in whole seconds, and the texts.
func losses(rep *recorder) (at []int, texts []string) {
	for _, s := range rep.snapshots {
		if s.Lost != "" {
			at = append(at, int(time.Duration(s.Elapsed)*time.Microsecond/time.Second))
			texts = append(texts, s.Lost)
		}
	}
	return at, texts
}

// A message is lost as soon as its window has passed, and no longer when it comes later.
func TestWindowFindsLossesDuringTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := map[int64]driver.Delivery{}
		f := delivering(mem.New().Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			switch n := d.ID.Number; n {
			case 350, 1050, 1051: // of the seconds 3 and 10
				return
			case 1550: // comes 8 s too late
				held[n+800] = *d
				return
			case 1560: // comes in time
				held[n+400] = *d
				return
			case 600: // comes once more after its window
				held[n+1000] = *d
			}
			deliver(d)
			if other, ok := held[d.ID.Number]; ok {
				deliver(&other)
			}
		})
		s, rep := run(t, newPlan(f, windowed, func(p *flat) { p.Allow.Disorder = true }), nil)
		at, texts := losses(rep)
		require.Equal(t, []int{9, 16, 21}, at)
		require.Equal(t, "1 not received for 5s: producer-0 350 on queue://TEST", texts[0])
		require.Equal(t, "2 not received for 5s: producer-0 1050, 1051 on queue://TEST", texts[1])
		require.Equal(t, result.Verified{
			Expected: 3000, Received: 2997, Once: 2996, Lost: 3, ArrivedLate: 1, Duplicates: 1, Disordered: 2,
		}, s.Verification.Total)
		require.EqualValues(t, 5_000_000, s.Verification.Window)
		var now []uint64
		for _, snap := range rep.snapshots[:30] {
			now = append(now, snap.Verified.Lost)
		}
		require.Equal(t, []uint64{0, 1, 3, 4, 3}, []uint64{now[7], now[8], now[15], now[21], now[23]})
		require.EqualValues(t, 1, s.Values["arrived_late"])
		require.Contains(t, s.Problems()[0], "messages lost, accepted but never received: 3 of 3000; first: producer-0 350, 1050, 1051")
		require.Contains(t, strings.Join(s.Warnings(), "\n"), "messages received after the verification window, and counted as lost until then: 1")
	})
}

// A loss ends the run at that second if a threshold wants it.
func TestWindowAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := delivering(mem.New().Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			if d.ID.Number != 350 {
				deliver(d)
			}
		})
		s, _ := run(t, newPlan(f, windowed, func(p *flat) { p.Plan.Thresholds = aborting(t, "lost == 0") }), nil)
		require.True(t, s.Outcome.Aborted)
		require.Less(t, lasted(s), 12*time.Second)
		require.EqualValues(t, 1, s.Verification.Total.Lost)
		require.False(t, outcomes(s)["lost"].Kept)
	})
}

// An outage longer than the window loses nothing by itself: the window stands still until the consumer is back.
func TestWindowStandsStillInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 200 * time.Millisecond })
		line := b.Line()
		time.AfterFunc(10*time.Second+500*time.Microsecond, func() {
			line.Cut()
			pass(9 * time.Second)
			line.Restore()
		})
		s, rep := run(t, newPlan(b.Factory(), windowed, func(p *flat) {
			through(p, line)
			p.Reconnect, p.Resend, p.Allow.Disorder, p.MaxPending = true, true, true, 1000
		}), nil)
		at, _ := losses(rep)
		require.Empty(t, at)
		require.Len(t, s.Outages, 1)
		require.Greater(t, s.Outages[0].Length, int64(8_000_000))
		require.Zero(t, s.Verification.Total.Lost+s.Verification.Total.ArrivedLate+s.Verification.Total.Left)
		require.EqualValues(t, 3000, s.Verification.Total.Received)
	})
}

// A topic's subscription that ends after a step, and one that begins with a later step, are judged on their own messages.
func TestWindowOverSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := delivering(mem.New().Factory(), func(spec driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			if d.ID.Number%500 != 250 {
				deliver(d)
			}
		})
		p := newPlan(f, windowed, func(p *flat) {
			p.Destinations, p.Duration = destinations(driver.Topic, 1), 10*time.Second
			p.Group.Name, p.Role, p.Consumers, p.Step.Name = "send", plan.Producer, 0, "first"
		})
		reader := *p.Group
		reader.Name, reader.Role, reader.Producers, reader.Consumers, reader.Rate = "read", plan.Consumer, 0, 2, plan.Rate{}
		first := p.Steps[0]
		first.Groups = []*plan.Group{p.Group, &reader}
		second, third := first, first
		second.Name, second.Groups = "second", []*plan.Group{p.Group}
		third.Name = "third"
		p.Steps = []plan.Step{first, second, third}
		rep := new(recorder)
		s, err := carryOut(t.Context(), nil, p, rep)
		require.NoError(t, err)
		require.Len(t, s.Verified.Scopes, 4)
		for i, scope := range s.Verified.Scopes {
			want := result.Verified{Expected: 1000, Received: 998, Once: 998, Lost: 2}
			if i < 2 { // the consumers left before its window had passed
				want.Lost, want.Left = 1, 1
			}
			require.Equal(t, want, scope.Verified)
		}
		at, _ := losses(rep)
		require.Equal(t, []int{8, 28}, at[:2], "the last one may be found in the drain, or at its end")
	})
}
