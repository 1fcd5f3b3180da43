package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// looking calls Expire as the engine does, until the function that it returns is called.
func (r *rig) looking(limit time.Duration) (end func()) {
	r.load.Timed = true
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(load.ExpireEvery(limit))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.Expire(limit)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// A message without an answer ends in time, its slot is free again, and a late answer ends nothing.
func TestExpire(t *testing.T) {
	const limit = time.Second
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{MaxPending: 2, Count: 6})
		end := r.looking(limit)
		var sent []time.Duration
		var slots []driver.Slot
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			slots, sent = append(slots, m.Slot), append(sent, r.clock.Now())
			if len(sent) == 6 { // the last is answered in time
				slot := m.Slot
				time.AfterFunc(limit*9/10, func() { r.Done(slot, driver.Outcome{}) })
			}
			return nil
		}))
		require.NoError(t, r.Run(t.Context()))
		pass(2 * limit)
		n := r.snapshot().Total.Values()
		require.EqualValues(t, 6, n[result.Sent])
		require.EqualValues(t, 5, n[result.Unconfirmed])
		require.EqualValues(t, 5, r.snapshot().Total.OfClass(driver.ClassTimeout.String()))
		require.EqualValues(t, 1, n[result.Completed])
		require.Zero(t, n[result.Strays])
		for i, at := range sent[2:] { // two at a time
			took := at - sent[i]
			require.GreaterOrEqual(t, took, limit)
			require.LessOrEqual(t, took, limit+limit/10)
		}
		for _, slot := range slots {
			r.Done(slot, driver.Outcome{})
		}
		r.Done(slots[0], driver.Outcome{State: driver.Unknown}) // no answer
		n = r.snapshot().Total.Values()
		require.EqualValues(t, 6, n[result.Strays])
		require.EqualValues(t, 1, n[result.Completed])
		require.ErrorContains(t, r.rec.FirstError(driver.ClassTimeout), "no answer within 1s")
		end()
	})
}

// A message that waits for the broker's leave has not left: its time begins when it has.
func TestExpireBeginsWhenAMessageHasLeft(t *testing.T) {
	const limit = time.Second
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{MaxPending: 1, Count: 2})
		end := r.looking(limit)
		var second time.Duration
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			if second = r.clock.Now(); second == 0 {
				pass(5 * limit)
			}
			return nil
		}))
		require.NoError(t, r.Run(t.Context()))
		pass(2 * limit)
		require.EqualValues(t, 2, r.snapshot().Total.OfClass(driver.ClassTimeout.String()))
		require.GreaterOrEqual(t, second, 6*limit)
		require.LessOrEqual(t, second, 6*limit+limit/10)
		end()
	})
}

// While perfmq was paused, answers arrived and wait to be read.
func TestExpireAfterAPauseOfTheTester(t *testing.T) {
	const limit = time.Second
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{MaxPending: 1, Count: 1})
		r.load.Timed = true
		r.Attach(sender(func(context.Context, *driver.Message) error { return nil }))
		require.NoError(t, r.Run(t.Context()))
		r.Expire(limit)
		pass(limit / 2)
		r.Expire(limit)
		pass(10 * limit)
		r.Expire(limit)
		require.Zero(t, r.snapshot().Total.Get(result.Unconfirmed))
		for range 40 {
			pass(load.ExpireEvery(limit))
			r.Expire(limit)
		}
		require.EqualValues(t, 1, r.snapshot().Total.Get(result.Unconfirmed))
	})
}
