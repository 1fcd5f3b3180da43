package goamqp

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/stretchr/testify/require"
)

func TestGatherKeepsOrderAndGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		var want bytes.Buffer
		for i := range 1000 {
			n, err := g.Write(bytes.Repeat([]byte{byte(i)}, i%7))
			require.NoError(t, err)
			require.Equal(t, i%7, n)
			want.Write(bytes.Repeat([]byte{byte(i)}, i%7))
		}
		synctest.Wait() // the first write is under way, the others have gathered behind it
		var got bytes.Buffer
		buf := make([]byte, 1<<20)
		reads := 0
		for got.Len() < want.Len() {
			n, err := far.Read(buf)
			require.NoError(t, err)
			got.Write(buf[:n])
			reads++
		}
		require.Equal(t, want.Bytes(), got.Bytes())
		require.LessOrEqual(t, reads, 3, "one write per system call would be 857")
		require.NoError(t, g.barrier())
		require.NoError(t, g.Close())
		_, err := g.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestGatherDoesNotHoldBackALoneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		start := time.Now()
		_, err := g.Write([]byte("lone"))
		require.NoError(t, err)
		buf := make([]byte, 10)
		n, err := far.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "lone", string(buf[:n]))
		require.Zero(t, time.Since(start))
		require.NoError(t, g.Close())
	})
}

func TestGatherBoundsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		chunk := make([]byte, 64<<10)
		require.NoError(t, g.SetWriteDeadline(time.Now().Add(time.Second)))
		written, start := 0, time.Now()
		var err error
		for ; err == nil; written++ {
			_, err = g.Write(chunk)
			synctest.Wait()
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, 1+gatherLimit/len(chunk), written-1, "one being written and the limit behind it")

		// Room is made by reading; the writer that waits for it goes on.
		require.NoError(t, g.SetWriteDeadline(time.Time{}))
		done := make(chan error)
		go func() {
			_, err := g.Write(chunk)
			done <- err
		}()
		synctest.Wait()
		_, err = io.ReadFull(far, make([]byte, len(chunk)))
		require.NoError(t, err)
		require.NoError(t, <-done)

		// What cannot be flushed is given up after the linger.
		start = time.Now()
		require.NoError(t, g.Close())
		require.Equal(t, gatherLinger, time.Since(start))
		require.ErrorIs(t, g.barrier(), os.ErrDeadlineExceeded)
	})
}

func TestGatherCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		got := make(chan []byte)
		go func() {
			<-time.After(gatherLinger / 2) // a slow reader
			all, _ := io.ReadAll(far)
			got <- all
		}()
		_, err := g.Write([]byte("first "))
		require.NoError(t, err)
		synctest.Wait()
		_, err = g.Write([]byte("second"))
		require.NoError(t, err)
		require.NoError(t, g.Close())
		require.NoError(t, g.Close())
		require.Equal(t, "first second", string(<-got))
	})
}

func TestGatherReportsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		require.NoError(t, far.Close())
		_, err := g.Write([]byte("x"))
		require.NoError(t, err, "nobody knows yet")
		require.ErrorIs(t, g.barrier(), io.ErrClosedPipe, "a barrier does")
		_, err = g.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.ErrorIs(t, g.cause(), io.ErrClosedPipe)
		require.NoError(t, g.Close())
	})
}

func TestGatherAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := net.Pipe()
		g := newGatherConn(near, transport.Meter(near))
		_, err := g.Write([]byte("stuck"))
		require.NoError(t, err)
		var waits sync.WaitGroup
		waits.Go(func() { require.Error(t, g.barrier()) })
		synctest.Wait()
		start := time.Now()
		g.abort()
		waits.Wait()
		require.Error(t, g.barrier())
		_ = g.Close()
		require.Zero(t, time.Since(start))
	})
}

func TestGatherRemembersTheGreeting(t *testing.T) {
	near, far := net.Pipe()
	g := newGatherConn(near, transport.Meter(near))
	go func() {
		for _, part := range []string{"HT", "TP/1.1 400 Bad Request"} {
			_, _ = far.Write([]byte(part))
		}
		_ = far.Close()
	}()
	all, err := io.ReadAll(g)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 400 Bad Request", string(all))
	require.Equal(t, "HTTP/1.1", g.handshake().greeting)
	require.ErrorIs(t, g.cause(), io.EOF)
	require.NoError(t, g.Close())
}
