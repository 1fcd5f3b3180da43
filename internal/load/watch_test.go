package load_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// watchedSender is a sender that reports the end of its connection.
type watchedSender struct {
	sender
	ended func(error)
}

func (s *watchedSender) OnEnd(f func(error)) { s.ended = f }

// TestEndOfAnIdleConnection: a producer that waits for the time of its next message learns at once that its connection
// has ended, and ends with the reason; after its last message the connection does not matter.
func TestEndOfAnIdleConnection(t *testing.T) {
	lost := errors.New("the connection was lost")
	for name, c := range map[string]struct {
		schedule string
		edit     func(*setup, *load.Load)
		at       time.Duration // when the connection ends
		ends     time.Duration // when Run ends; -1 if it goes on
	}{
		"between messages": {"0.05", nil, 4 * time.Second, 4 * time.Second},
		"before the first": {"pause 30s, 1", nil, 4 * time.Second, 4 * time.Second},
		"to be sent again": {"0.05", func(_ *setup, l *load.Load) { l.Resend = true }, 4 * time.Second, 4 * time.Second},
		"at the end of a schedule": {
			"1 for 2s, pause 30s", func(_ *setup, l *load.Load) { l.Until = time.Hour }, 4 * time.Second, 4 * time.Second,
		},
		"nothing more is due":   {"0.05", func(_ *setup, l *load.Load) { l.Until = 10 * time.Second }, 4 * time.Second, -1},
		"all messages are sent": {"1", func(s *setup, l *load.Load) { s.Count, l.Count = 3, 3 }, 4 * time.Second, 2 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := setup{Schedule: schedule(t, c.schedule), MaxPending: 1}
			l := s.load()
			if c.edit != nil {
				c.edit(&s, &l)
			}
			r := newRig(s)
			out := &watchedSender{}
			out.sender = func(_ context.Context, m *driver.Message) error {
				r.Done(m.Slot, driver.Outcome{})
				return nil
			}
			r.Attach(out)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(c.at, func() { out.ended(lost) })
			err := r.Producer.Run(ctx, l)
			switch {
			case c.ends < 0:
				require.NoError(t, err)
				require.Equal(t, time.Minute, r.clock.Now())
			case c.ends < c.at:
				require.NoError(t, err)
				require.Equal(t, c.ends, r.clock.Now())
			default:
				require.ErrorIs(t, err, lost)
				require.Equal(t, c.ends, r.clock.Now())
			}
		})
	}
}

// mender is a sender that replaces its connection.
type mender struct {
	sender
	news func()
	mend func(context.Context) error
}

func (m *mender) OnNews(f func())                { m.news = f }
func (m *mender) Mend(ctx context.Context) error { return m.mend(ctx) }

// TestMend: a producer replaces its connection while no message is due, as often as there is news, and the messages
// keep their times; it ends if that fails.
func TestMend(t *testing.T) {
	hopeless := errors.New("not connected again")
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, "0.1"), MaxPending: 1})
			var sent, mended []time.Duration
			out := &mender{}
			out.sender = func(_ context.Context, m *driver.Message) error {
				sent = append(sent, r.clock.Now())
				r.Done(m.Slot, driver.Outcome{})
				return nil
			}
			out.mend = func(context.Context) error {
				if mended = append(mended, r.clock.Now()); fails && len(mended) == 2 {
					return hopeless
				}
				return nil
			}
			r.Attach(out)
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			for _, at := range []time.Duration{4 * time.Second, 6 * time.Second, 17 * time.Second} {
				time.AfterFunc(at, out.news)
			}
			err := r.Run(ctx)
			if fails {
				require.ErrorIs(t, err, hopeless)
				require.Equal(t, []time.Duration{4 * time.Second, 6 * time.Second}, mended)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []time.Duration{4 * time.Second, 6 * time.Second, 17 * time.Second}, mended)
			require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, sent)
			s := r.snapshot()
			require.Zero(t, s.Total.Get(result.LateSends))
		})
	}
}
