package library

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReceiverIsNotHeldUp: a call of the library that hangs when its connection has ended does not keep Run.
func TestReceiverIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, hang, lost := make(chan struct{}), make(chan struct{}), errors.New("lost")
		r := Receiver{Over: over, Why: func() error { return lost }}
		result := make(chan error, 1)
		go func() {
			result <- r.Run(t.Context(), func(context.Context) error {
				r.Settle(func() { <-hang })
				return nil
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, lost)
		close(hang)
	})
}

// TestReceiverAwaitsADelivery: Run does not end while a message is being delivered, but when the call after it hangs.
func TestReceiverAwaitsADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = time.Minute
		over, hang, lost := make(chan struct{}), make(chan struct{}), errors.New("lost")
		r := Receiver{Over: over, Why: func() error { return lost }}
		result, began := make(chan error, 1), time.Now()
		go func() {
			result <- r.Run(t.Context(), func(context.Context) error {
				<-time.After(work) // delivers
				r.Settle(func() { <-hang })
				return nil
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, lost)
		require.InDelta(t, work+settleGrace, time.Since(began), float64(2*settleGrace))
		require.GreaterOrEqual(t, time.Since(began), work)
		close(hang)
	})
}

// TestReceiverTellsItsOwn: an end of the connection that next reports ends Run with that error.
func TestReceiverTellsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, own := make(chan struct{}), errors.New("own")
		r := Receiver{Over: over, Why: func() error { return errors.New("lost") }}
		result := make(chan error, 1)
		go func() {
			result <- r.Run(t.Context(), func(ctx context.Context) error {
				r.Settle(func() {})
				select {
				case <-over:
					return own
				case <-ctx.Done():
					return ctx.Err()
				}
			}, func() {})
		}()
		synctest.Wait()
		close(over)
		require.ErrorIs(t, <-result, own)
	})
}

// TestConnEnds: a connection has ended when it cannot be read, or cannot be written, whichever a library notices.
func TestConnEnds(t *testing.T) {
	for name, use := range map[string]func(*Conn) (int, error){
		"read":  func(c *Conn) (int, error) { return c.Read(make([]byte, 1)) },
		"write": func(c *Conn) (int, error) { return c.Write(make([]byte, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			c := NewConn(here)
			require.False(t, c.HasEnded())
			require.NoError(t, there.Close())
			_, err := use(c)
			require.Error(t, err)
			require.True(t, c.HasEnded())
		})
	}
}
