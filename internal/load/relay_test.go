package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// trier is a driver.TrySender made of two functions.
type trier struct {
	sender
	try func(m *driver.Message) bool
}

func (s trier) TrySend(m *driver.Message) bool { return s.try(m) }

// relayRig is a closed loop with one message in flight, on a driver that answers from a goroutine of its own, when all
// others wait.
type relayRig struct {
	*rig
	ledger   *verify.Ledger
	messages []driver.Message // as they were sent
	sends    int              // of them by Send
	tries    int              // calls of TrySend
}

// answerTime passes, in a bubble, when all goroutines wait.
const answerTime = time.Microsecond

// newRelayRig returns a rig in which the calls of TrySend fail that refuse selects, by their numbers.
func newRelayRig(t *testing.T, cfg setup, refuse func(try int) bool) *relayRig {
	t.Helper()
	body := verify.BodySum(nil)
	r := &relayRig{ledger: verify.NewLedger(1, 0, driver.Destination{Name: "TEST"}, body, body, body)}
	cfg.MaxPending, cfg.Ledger = 1, r.ledger
	r.rig = newRig(cfg)
	sent := make(chan driver.Slot, 1)
	go func() {
		for slot := range sent {
			<-time.After(answerTime)
			r.Done(slot, driver.Outcome{})
		}
	}()
	t.Cleanup(func() { close(sent) })
	took := func(m *driver.Message) {
		r.messages = append(r.messages, *m)
		sent <- m.Slot
	}
	r.Attach(trier{
		sender: func(_ context.Context, m *driver.Message) error { r.sends++; took(m); return nil },
		try: func(m *driver.Message) bool {
			if r.tries++; refuse(r.tries) {
				return false
			}
			took(m)
			return true
		},
	})
	return r
}

// The goroutine that reports the end of a message sends the next one. Messages that TrySend refuses are sent by Send,
// with the same number and variant.
func TestRelay(t *testing.T) {
	const n = 1000
	for _, tt := range []struct {
		name   string
		refuse func(try int) bool
		sends  int
	}{
		{"always", func(int) bool { return false }, 2}, // the first, and the last, for whose end Run does not wait
		{"never", func(int) bool { return true }, n},
		{"two of three", func(try int) bool { return try%3 == 0 }, -1},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			weights := []int{3, 2, 1}
			r := newRelayRig(t, setup{Index: 0, Total: 1, Count: n, Mix: load.NewMix(weights)}, tt.refuse)
			require.NoError(t, r.Run(t.Context()))
			<-time.After(2 * answerTime) // the last answer
			require.Len(t, r.messages, n)
			if tt.sends >= 0 {
				require.Equal(t, tt.sends, r.sends)
			} else {
				require.Greater(t, r.sends, n/4)
				require.Less(t, r.sends, n/2)
			}
			var variants []int
			for i, m := range r.messages {
				require.EqualValues(t, i, m.ID.Number)
				require.False(t, m.More)
				variants = append(variants, m.Variant)
			}
			require.Equal(t, sequence(t, weights, setup{Total: 1, Count: n}), variants)
			require.EqualValues(t, n, r.ledger.Count())
			s := r.snapshot()
			require.EqualValues(t, n, s.Total.Get(result.Sent))
			require.EqualValues(t, n, s.Total.Get(result.Completed))
			require.Zero(t, r.rec.InFlight())
		})
	}
}

// No message is sent once the context of Run has ended.
func TestRelayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := setup{Total: 1, MaxPending: 1}
		r := newRig(cfg)
		var last driver.Slot
		tries := 0
		r.Attach(trier{
			sender: func(_ context.Context, m *driver.Message) error { last = m.Slot; return nil },
			try:    func(m *driver.Message) bool { tries++; last = m.Slot; return true },
		})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for i := range 10 {
			synctest.Wait()
			require.Equal(t, i, tries)
			r.Done(last, driver.Outcome{})
		}
		cancel()
		require.NoError(t, <-ended)
		require.EqualValues(t, 1, r.rec.InFlight())
		r.Done(last, driver.Outcome{})
		require.Equal(t, 10, tries)
		require.Zero(t, r.rec.InFlight())
		require.EqualValues(t, 11, r.rec.Sends(stats.Measure))

		again, cancel := context.WithCancel(t.Context())
		go func() { ended <- r.Run(again) }()
		synctest.Wait()
		r.Done(last, driver.Outcome{})
		require.Equal(t, 11, tries, "the next step")
		cancel()
		require.NoError(t, <-ended)
	})
}

// A driver may report the end of a message before its TrySend returns, and another goroutine may do so at the same time.
func TestRelayedEndComesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		r := newRig(setup{Total: 1, MaxPending: 1, Count: n})
		sent := 0
		r.Attach(trier{
			sender: func(_ context.Context, m *driver.Message) error {
				sent++
				slot := m.Slot
				go r.Done(slot, driver.Outcome{})
				return nil
			},
			try: func(m *driver.Message) bool {
				if sent++; sent%2 == 0 {
					r.Done(m.Slot, driver.Outcome{})
					return true
				}
				slot, ended := m.Slot, make(chan struct{})
				go func() { r.Done(slot, driver.Outcome{}); close(ended) }()
				<-ended
				return true
			},
		})
		require.NoError(t, r.Run(t.Context()))
		synctest.Wait()
		require.Equal(t, n, sent)
		require.EqualValues(t, n, r.snapshot().Total.Get(result.Completed))
	})
}

func TestRelayAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRig(setup{Total: 1, MaxPending: 1})
		var last driver.Slot
		r.Attach(trier{
			sender: func(_ context.Context, m *driver.Message) error { last = m.Slot; return nil },
			try:    func(m *driver.Message) bool { last = m.Slot; return true },
		})
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		require.Zero(t, testing.AllocsPerRun(1000, func() { r.Done(last, driver.Outcome{}) }))
		cancel()
		require.NoError(t, <-ended)
	})
}
