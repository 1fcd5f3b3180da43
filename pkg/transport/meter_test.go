package transport_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/transport"
)

// pair returns both ends of a TCP connection, the first with meters.
func pair(t *testing.T) (*transport.Metered, *net.TCPConn) {
	t.Helper()
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	near := musttest.Get(net.Dial("tcp", l.Addr().String()))(t)
	far := musttest.Get(l.Accept())(t)
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return transport.Meter(near), far.(*net.TCPConn)
}

// whenWaited calls f once a reader has waited for longer than that since the call, or after a minute.
func whenWaited(m *transport.Metered, longer time.Duration, f func()) {
	before := m.Reading().Time
	for deadline := time.Now().Add(time.Minute); m.Reading().Time-before <= longer && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	f()
}

// Time in which bytes are there is no wait, however long the reader takes; time in which there are none is.
func TestMeterOfReader(t *testing.T) {
	m, far := pair(t)
	_, err := far.Write(make([]byte, 1000))
	require.NoError(t, err)
	b := make([]byte, 100)
	_, err = io.ReadFull(m, b) // may have to wait for the first
	require.NoError(t, err)
	before := m.Reading()
	require.True(t, before.Known)
	for range 9 {
		<-time.After(5 * time.Millisecond)
		_, err := io.ReadFull(m, b)
		require.NoError(t, err)
	}
	require.Equal(t, before.Time, m.Reading().Time, "all of it was there")

	go whenWaited(m, 40*time.Millisecond, func() { _, _ = far.Write([]byte("late")) })
	n := musttest.Get(m.Read(b))(t)
	require.Equal(t, "late", string(b[:n]))
	require.Greater(t, m.Reading().Time-before.Time, 40*time.Millisecond)

	require.NoError(t, far.CloseWrite())
	_, err = m.Read(b)
	require.ErrorIs(t, err, io.EOF)
}

// A wait in progress counts.
func TestMeterDuringRead(t *testing.T) {
	m, far := pair(t)
	go func() { _, _ = m.Read(make([]byte, 1)) }()
	require.Eventually(t, func() bool { return m.Reading().Time > 30*time.Millisecond }, time.Minute, time.Millisecond)
	_, err := far.Write([]byte("x"))
	require.NoError(t, err)
}

// Errors have the form of the net package.
func TestMeterErrors(t *testing.T) {
	m, far := pair(t)
	require.NoError(t, m.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err := m.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var op *net.OpError
	require.True(t, errors.As(err, &op) && op.Timeout(), err)
	require.NoError(t, m.SetReadDeadline(time.Time{}))

	require.NoError(t, far.SetLinger(0))
	require.NoError(t, far.Close())
	_, err = m.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Regexp(t, `^read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: read: connection reset by peer$`, err.Error())
	_, err = m.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)

	require.NoError(t, m.Close())
	_, err = m.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = m.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestMeterAllocatesNothing(t *testing.T) {
	m, far := pair(t)
	b := make([]byte, 64)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, err := m.Write(b)
		require.NoError(t, err)
		_, err = io.ReadFull(far, b)
		require.NoError(t, err)
	}))
}

// The meter of a connection other than TCP counts all the time in Read.
func TestMeterOfPipe(t *testing.T) {
	near, far := net.Pipe()
	m := transport.Meter(near)
	go whenWaited(m, 10*time.Millisecond, func() {
		_, _ = far.Write([]byte("x"))
		_, _ = io.Copy(io.Discard, far)
	})
	_, err := m.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Greater(t, m.Reading().Time, 10*time.Millisecond)
	_, err = m.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, m.Close())
}
