package openings_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/openings"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// listen returns a listener for which the kernel keeps one connection that was not accepted, or two.
func listen(t *testing.T) net.Listener {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "listener")
	defer func() { require.NoError(t, file.Close()) }()
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 1))
	l, err := net.FileListener(file)
	require.NoError(t, err)
	return l
}

// TestFullBacklog: a broker that accepts some connections and no more leaves the others in its backlog, or outside of
// it. All of these time out, and the others are held.
func TestFullBacklog(t *testing.T) {
	const accepted, count = 5, 12
	l := listen(t)
	var serving sync.WaitGroup
	var conns []net.Conn
	serving.Go(func() {
		for range accepted {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			if _, err := bufio.NewReader(c).ReadString(0); err == nil {
				_, _ = fmt.Fprint(c, "CONNECTED\nversion:1.2\n\n\x00")
			}
		}
	})
	f := stomp.Factory()
	d, err := f.Open(t.Context(), driver.OpenOptions{
		URL: "stomp://" + l.Addr().String(), ConnectTimeout: 500 * time.Millisecond, Options: f.NewOptions(),
	})
	require.NoError(t, err)
	rec := stats.NewConnectionRecorder("")
	o := openings.New(&openings.Config{
		Driver: d, Clock: load.NewClock(), Phases: new(load.Phases), Rec: rec, Count: count, Step: 1, AtOnce: 1,
		Patience: 50 * time.Millisecond, // the broker does not answer DISCONNECT
		Spec: func(n uint64) (driver.Connection, *driver.ProducerSpec, *driver.ConsumerSpec) {
			return driver.Connection{Key: fmt.Sprint(n)}, nil, nil
		},
		Within: func(ctx context.Context, open func(context.Context) error) error { return open(ctx) },
	})
	o.Run(t.Context())
	require.EqualValues(t, accepted, rec.Count(result.Opened))
	require.EqualValues(t, count-accepted, rec.Count(result.OpenTimedOut))
	require.Zero(t, rec.Count(result.OpenRefused, result.OpenUnmade, result.OpenAbandoned, result.ConnectionsLost))
	require.Equal(t, driver.ClassTimeout, driver.ClassOf(rec.FirstError(driver.ClassTimeout)))

	require.Equal(t, accepted, o.Close(t.Context()), "no closing was confirmed")
	require.EqualValues(t, accepted, rec.Count(result.ConnectionsClosed))
	require.NoError(t, d.Close(t.Context()))
	require.NoError(t, l.Close())
	serving.Wait()
	for _, c := range conns {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			require.NoError(t, err)
		}
	}
}
