package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// Messages without a confirmation end after the send time-out, and the load continues. They are unconfirmed and
// arrived, neither lost nor duplicated.
func TestSendTimeout(t *testing.T) {
	for name, edit := range map[string]func(*flat){
		"closed loop": func(p *flat) { p.MaxPending = 4 },
		"open loop":   func(p *flat) { p.Rate, p.MaxPending = rate("100"), 4 },
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Withhold = 10 })
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				p.Count, p.Verify, p.SendTimeout = 1000, true, 500*time.Millisecond
				edit(p)
			}), nil)
			require.EqualValues(t, 1000, s.Total.Get(result.Sent))
			require.EqualValues(t, 900, s.Total.Get(result.Completed))
			require.EqualValues(t, 100, s.Total.Get(result.Unconfirmed))
			require.EqualValues(t, 100, s.Total.OfClass(driver.ClassTimeout.String()))
			require.EqualValues(t, 900, s.Latencies[result.Ack].Count)
			require.EqualValues(t, 1000, s.Total.Get(result.Received))
			v := s.Verification.Total
			require.EqualValues(t, 100, v.UnconfirmedArrived)
			require.Zero(t, v.Lost+v.Left+v.Duplicates+v.UnconfirmedMissing)
			require.Zero(t, s.Total.Get(result.Strays))
			require.False(t, s.Outcome.Success, "as any run with unconfirmed messages")
			require.Equal(t, []string{
				"messages without an answer, which the broker may have or not: 100",
				"first failure of class timeout: send: no answer within 500ms",
			}, s.Problems())
		})
	}
}

// With --reconnect, messages that had no answer in time are in doubt, which is a count: the broker answers again.
func TestSendTimeoutsOvercome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Withhold = 10 })
		time.AfterFunc(5*time.Second, func() { b.Set(mem.Options{}) })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Rate, p.MaxPending, p.Count, p.Verify, p.SendTimeout = rate("100"), 100, 1000, true, 500*time.Millisecond
			p.Reconnect = true
		}), nil)
		require.EqualValues(t, 50, s.Total.Get(result.Unconfirmed))
		require.EqualValues(t, 50, s.Total.OfClass(driver.ClassTimeout.String()))
		require.EqualValues(t, 950, s.Total.Get(result.Completed))
		require.EqualValues(t, 50, s.Verification.Total.UnconfirmedArrived)
		require.True(t, s.Outcome.Success, s.Problems())
		require.Contains(t, s.Warnings(), "messages in doubt: 50; sent again 0, unconfirmed 50")
	})
}

// With --reconnect, messages that had no answer in time fail a run all the same if none was confirmed after them: a broker
// that does not answer any more has not recovered. That holds for each producer by itself.
func TestSendTimeoutsWithoutRecovery(t *testing.T) {
	timeout := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	silent := func() driver.Factory {
		f := losing(broker(t, func(*mem.Options) {}), 50, 100*time.Millisecond, timeout)
		f.Capabilities.Reconnects = false
		return f
	}
	for name, edit := range map[string]func(*flat){
		"one load":    func(p *flat) { p.Duration, p.Rate, p.MaxPending = 10*time.Second, rate("10"), 1 },
		"all at once": func(p *flat) { p.Count, p.MaxPending = 100, 100 }, // nothing is sent after the last confirmation
	} {
		inBubble(t, name, func(t *testing.T) {
			s, _ := run(t, newPlan(silent(), func(p *flat) {
				p.Reconnect = true
				edit(p)
			}), nil)
			require.EqualValues(t, 50, s.Total.Get(result.Completed))
			require.NotZero(t, s.Total.Get(result.Unconfirmed))
			require.Contains(t, s.Problems(), fmt.Sprintf("messages without an answer, which the broker may have or not: %d",
				s.Total.Get(result.Unconfirmed)))
		})
	}
	inBubble(t, "a group beside another", func(t *testing.T) {
		s := newScenario(silent(), false)
		lost := s.senders("lost", func(g *plan.Group) { g.Rate, g.Reconnect = rate("10"), true })
		fine := s.senders("fine", func(g *plan.Group) {
			s.others = append(s.others, endpoint(mem.New().Factory(), "fine"))
			g.Rate, g.Reconnect, g.ProducerBroker = rate("10"), true, s.others[0].Broker
		})
		s.step("one", func(p *plan.Step) { p.Duration = 10 * time.Second }, lost, fine)
		sum, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
		require.NoError(t, err)
		require.EqualValues(t, 150, sum.Total.Get(result.Completed))
		require.Contains(t, sum.Problems(), "messages without an answer, which the broker may have or not: 50")
	})
}

// A producer that closes waits for the answers to all its messages. Answers that did not come in time, and never will,
// do not hold the end of a run up for the connect time-out.
func TestClosingAfterSendTimeouts(t *testing.T) {
	silent := &hooks{closeSend: func(ctx context.Context, c func() error) error { <-ctx.Done(); return c() }}
	for name, tt := range map[string]struct {
		late    bool
		closing time.Duration
	}{
		"no answer":               {false, 2 * time.Second},
		"answers after the limit": {true, 2 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				if o.Withhold = 10; tt.late {
					o.Withhold, o.Latency = 0, 600*time.Millisecond
				}
			})
			s, _ := run(t, newPlan(silent.factory(b.Factory()), func(p *flat) {
				p.Duration, p.Verify, p.SendTimeout = 10*time.Second, true, 500*time.Millisecond
				p.MaxPending, p.Rate, p.Count, p.DrainTimeout = 100, rate("10"), 91, 5*time.Second
				p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = time.Minute, time.Minute
				p.Producer.Factory.Capabilities.TimesOut = false
			}), nil)
			require.NotZero(t, s.Total.Get(result.Resent)+s.Total.Get(result.Unconfirmed))
			require.InDelta(t, 10*time.Second+tt.closing, lasted(s), float64(2*time.Second))
		})
	}
}

// Confirmations that come after the time end nothing, and are counted.
func TestLateConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 300 * time.Millisecond })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.SendTimeout, p.MaxPending = 100, 100*time.Millisecond, 10
			p.Producer.Factory.Capabilities.TimesOut = false
		}), nil)
		require.EqualValues(t, 100, s.Total.OfClass(driver.ClassTimeout.String()))
		require.Zero(t, s.Total.Get(result.Completed))
		require.EqualValues(t, 100, s.Total.Get(result.Received))
		require.NotZero(t, s.Total.Get(result.Strays))
		require.LessOrEqual(t, s.Total.Get(result.Strays), uint64(100), "those that came before the producer closed")
	})
}

// A driver with its own time-out gets the send time-out; the engine ends no messages then.
func TestSendTimeoutOfADriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Latency = 300 * time.Millisecond })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.SendTimeout, p.MaxPending = 100, 100*time.Millisecond, 10
			p.Producer.Factory.Capabilities.TimesOut = true
			require.Equal(t, p.SendTimeout, p.Group.ProducerSpecs("test")[0].SendTimeout)
		}), nil)
		require.EqualValues(t, 100, s.Total.Get(result.Completed))
		require.True(t, s.Outcome.Success, s.Problems())
	})
}

// A run that cannot begin its second step keeps the counts of the first.
func TestSendTimeoutBeforeAStepThatFails(t *testing.T) {
	for name, change := range map[string]func(one, two *plan.Step){
		"before": func(_, two *plan.Step) { two.Before = []string{"exit 1"} },
		"after":  func(one, _ *plan.Step) { one.After = []string{"exit 1"} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(mem.New().Factory(), false)
			senders := s.senders("senders", func(g *plan.Group) { g.Count, g.SendTimeout = 10, time.Minute })
			s.step("one", nil, senders)
			s.step("two", nil, senders)
			change(&s.plan.Steps[0], &s.plan.Steps[1])
			sum, err := engine.Run(t.Context(), nil, s.config(), new(recorder))
			require.NoError(t, err)
			require.Error(t, sum.Err)
			require.EqualValues(t, 10, sum.Total.Get(result.Completed))
		})
	}
}
