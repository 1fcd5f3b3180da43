package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// attempt is a message as a driver gets it.
type attempt struct {
	id   driver.ID
	time int64
	at   time.Duration
}

// A message without an answer is sent again, before new ones and as it was, until it is confirmed.
func TestResend(t *testing.T) {
	unknown := driver.Outcome{State: driver.Unknown, Class: driver.ClassConnectionLost}
	for name, s := range map[string]setup{
		"closed loop": {MaxPending: 3, Count: 10},
		"open loop":   {MaxPending: 3, Count: 10, Schedule: constant(t, "1")},
	} {
		inBubble(t, name, func(t *testing.T) {
			s.Ledger = verify.NewLedger(1, 0, driver.Destination{Name: "A"}, verify.BodySum(nil))
			r := newRig(s)
			r.load.Resend = true
			sent := map[int64][]attempt{}
			r.Attach(sender(func(_ context.Context, m *driver.Message) error {
				n := m.ID.Number
				sent[n] = append(sent[n], attempt{m.ID, m.Time, r.clock.Now()})
				o := driver.Outcome{}
				switch {
				case n == 3 && len(sent[n]) < 4, n == 9 && len(sent[n]) < 2, n == 5:
					o = unknown
				}
				if n == 5 && len(sent[n]) == 3 { // the broker may have it nevertheless
					o = driver.Outcome{State: driver.Rejected, Class: driver.ClassFull}
				}
				slot := m.Slot
				time.AfterFunc(10*time.Millisecond, func() { r.DoneAll([]driver.Slot{slot}, o) })
				return nil
			}))
			require.NoError(t, r.Run(t.Context()))
			pass(time.Second)
			n := r.snapshot()
			require.EqualValues(t, 10, n.Total.Get(result.Sent))
			require.EqualValues(t, 9, n.Total.Get(result.Completed))
			require.EqualValues(t, 1, n.Total.Get(result.Unconfirmed))
			require.EqualValues(t, 1, n.Total.OfClass(driver.ClassFull.String()))
			require.Zero(t, n.Total.Get(result.Rejected)+n.Total.Get(result.Strays))
			require.EqualValues(t, 3+1+2, n.Total.Get(result.Resent))
			for number, times := range map[int64]int{0: 1, 3: 4, 5: 3, 9: 2} {
				list := sent[number]
				require.Len(t, list, times)
				for _, a := range list[1:] {
					require.Equal(t, list[0].id, a.id)
					require.Equal(t, list[0].time, a.time)
					require.GreaterOrEqual(t, a.at, list[0].at+10*time.Millisecond)
					require.LessOrEqual(t, a.at, list[0].at+40*time.Millisecond, "it does not wait for the next one that is due")
				}
			}
			if !s.Schedule.IsZero() {
				require.GreaterOrEqual(t, n.Latencies[result.Response].Max, int64(40_000), "four times 10 ms")
			}
		})
	}
}

// Messages that are in doubt when the load is over end so, wherever they are.
func TestResendToTheEnd(t *testing.T) {
	for _, answer := range []time.Duration{time.Millisecond, 30 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ledger := verify.NewLedger(1, 0, driver.Destination{Name: "A"}, verify.BodySum(nil))
			r := newRig(setup{MaxPending: 4, Schedule: constant(t, "100"), Ledger: ledger})
			r.load.Resend = true
			r.Attach(sender(func(ctx context.Context, m *driver.Message) error {
				if r.clock.Now() > time.Second { // there is no connection any more
					<-ctx.Done()
					return ctx.Err()
				}
				slot, o := m.Slot, driver.Outcome{}
				if r.clock.Now() > 500*time.Millisecond {
					o = driver.Outcome{State: driver.Unknown, Class: driver.ClassConnectionLost}
				}
				time.AfterFunc(answer, func() { r.Done(slot, o) })
				return nil
			}))
			runFor(t, r, 2*time.Second)
			pass(time.Second)
			n := r.snapshot().Total.Values()
			require.NotZero(t, n[result.Unconfirmed])
			require.NotZero(t, n[result.Resent])
			require.Equal(t, n[result.Sent], n[result.Completed]+n[result.Unconfirmed])
			require.Zero(t, r.snapshot().Total.InFlight()+n[result.Strays])
			require.Equal(t, n[result.Sent], ledger.Count())
			require.Equal(t, n[result.Sent], r.Seal().Count)
		})
	}
}
