package stomp

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// piped returns a connection with heart-beats both ways, and its other end.
func piped(every time.Duration) (c *connection, far net.Conn) {
	near, far := net.Pipe()
	raw := transport.Meter(near)
	c = newConnection(newDriver(transport.Settings[Options]{MaxBody: driver.DefaultMaxBody}), transport.Endpoint{}, raw, raw, "test")
	c.sendEvery, c.hearEvery = every, every
	c.start()
	return c, far
}

// TestBeats: as long as we hear from the broker, it hears from us in time, whatever the moment of its own beats.
func TestBeats(t *testing.T) {
	const every = 400 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c, far := piped(every)
		var beats atomic.Int64
		go func() {
			buf, last := make([]byte, 10), time.Now()
			for {
				n, err := far.Read(buf)
				if err != nil {
					return
				}
				if gap := time.Since(last); gap > every {
					t.Errorf("nothing was heard from us for %v", gap)
				}
				last = time.Now()
				beats.Add(int64(n))
			}
		}()
		for i := range 100 { // up to the very end of the time that a broker may take
			<-time.After(every + time.Duration(i)*(every/100))
			_, err := far.Write([]byte("\n"))
			require.NoError(t, err)
		}
		require.Greater(t, beats.Load(), int64(100))
		require.NoError(t, c.Why())

		silent := time.Now()
		<-c.Over()
		took := time.Since(silent)
		require.GreaterOrEqual(t, took, 2*every)
		require.LessOrEqual(t, took, 3*every)
		require.ErrorContains(t, c.Why(), "nothing was heard from the broker for 800ms")
		c.End(t.Context())
	})
}
