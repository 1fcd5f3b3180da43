package transport_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// still is a connection without life.
type still struct{}

func (still) Dead() bool          { return false }
func (still) End(context.Context) {}

// TestPoolWaitsForAnother: a user that waits while another user opens the connection gives up when its own context ends.
// The error says why.
func TestPoolWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := 0
		pool := transport.Pool[still]{Open: func(context.Context, driver.Connection) (still, error) {
			opens++
			<-time.After(time.Minute)
			return still{}, nil
		}}
		spec := driver.Connection{Key: "k"}
		opened := make(chan *transport.Lease[still], 1)
		go func() {
			lease := musttest.Get(pool.Acquire(t.Context(), spec))(t)
			opened <- lease
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := pool.Acquire(short, spec)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
		require.NotEmpty(t, driver.HintOf(err))
		lease := musttest.Get(pool.Acquire(t.Context(), spec))(t)
		require.Equal(t, 1, opens)
		lease.Release(t.Context())
		(<-opened).Release(t.Context())
	})
}
