package transport_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/transport"
)

// An input reads like a bufio.Reader: any sequence of calls has the same results.
func TestInputIsABufferedReader(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // must be repeatable
		sent := make([]byte, random.IntN(400_000))
		for i := range sent {
			sent[i] = byte(random.Uint32())
		}
		m, far := pair(t)
		plain := seed%3 == 0 // a reader other than the connection itself, such as TLS
		go func() {
			pieces := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // must be repeatable
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+pieces.IntN(90_000))
				_, _ = far.Write(rest[:n])
				rest = rest[n:]
			}
			_ = far.CloseWrite()
		}()
		var mem transport.Buffers
		var conn io.Reader = m
		if plain {
			conn = struct{ io.Reader }{m}
		}
		in := transport.NewInput(conn, m, &mem)
		want := bufio.NewReaderSize(bytes.NewReader(sent), transport.InputSize)
		for ended := false; !ended; {
			switch n := random.IntN(80_000); random.IntN(3) {
			case 0:
				got, err := in.Peek(n)
				expected, wantErr := want.Peek(n)
				require.Equal(t, wantErr, err)
				require.True(t, bytes.Equal(expected, got))
			case 1:
				got, err := in.Discard(n)
				expected, wantErr := want.Discard(n)
				require.Equal(t, wantErr, err)
				require.Equal(t, expected, got)
				ended = err != nil
			default:
				got, expected := make([]byte, n), make([]byte, n)
				a, err := io.ReadFull(in, got)
				b, wantErr := io.ReadFull(want, expected)
				require.Equal(t, wantErr, err)
				require.Equal(t, b, a)
				require.True(t, bytes.Equal(expected, got))
				ended = err != nil
			}
		}
		in.Release()
	}
}

// The moment to settle received messages is when nothing is left to read, and before waiting.
func TestInputIdle(t *testing.T) {
	t.Parallel()
	m, far := pair(t)
	var mem transport.Buffers
	var left []int
	in := transport.NewInput(m, m, &mem)
	in.Idle = func() { left = append(left, in.Buffered()) }
	_, err := far.Write([]byte("abcdef"))
	require.NoError(t, err)
	for range 3 {
		_, err = in.Peek(2)
		require.NoError(t, err)
		_, err = in.Discard(2)
		require.NoError(t, err)
	}
	require.Equal(t, []int{0}, left[:1])
	before := len(left)
	go whenWaited(m, 0, func() { _, _ = far.Write([]byte("x")) })
	_, err = in.Discard(1)
	require.NoError(t, err)
	require.Equal(t, before+1, len(left))
}

// After a deadline that has passed, reading resumes at the same byte.
func TestInputAfterDeadline(t *testing.T) {
	t.Parallel()
	m, far := pair(t)
	var mem transport.Buffers
	in := transport.NewInput(m, m, &mem)
	_, err := far.Write([]byte("ab"))
	require.NoError(t, err)
	_, err = in.Peek(2)
	require.NoError(t, err)
	require.NoError(t, m.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	b, err := in.Peek(3)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, "ab", string(b))
	require.NoError(t, m.SetReadDeadline(time.Time{}))
	_, err = far.Write([]byte("c"))
	require.NoError(t, err)
	b, err = in.Peek(3)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b))

	require.NoError(t, far.SetLinger(0))
	require.NoError(t, far.Close())
	_, err = in.Peek(4)
	var op *net.OpError
	require.True(t, errors.As(err, &op), err)
}

// Connections on which nothing comes have no buffer, and reading allocates none.
func TestIdleInputsTakeNoMemory(t *testing.T) {
	const n = 200
	var mem transport.Buffers
	var before, after runtime.MemStats
	inputs := make([]*transport.Input, n)
	conns := make([]*transport.Metered, n)
	fars := make([]*net.TCPConn, n)
	for i := range inputs {
		conns[i], fars[i] = pair(t)
		inputs[i] = transport.NewInput(conns[i], conns[i], &mem)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	exchange := func(i int) {
		_, err := fars[i].Write([]byte("x"))
		require.NoError(t, err)
		_, err = inputs[i].Discard(1)
		require.NoError(t, err)
	}
	for i := range inputs {
		exchange(i)
		require.NoError(t, conns[i].SetReadDeadline(time.Unix(1, 0)))
		_, err := inputs[i].Discard(1) // waits, with nothing to hold on to
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, conns[i].SetReadDeadline(time.Time{}))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(n*2<<10))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { exchange(0) }), 1.0, "but for the test's own")
}
