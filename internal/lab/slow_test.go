//go:build unix

package main

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowLine: pieces are late while the line is slow, and in order.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		l := new(slowLine)
		from, near := io.Pipe()
		far, to := io.Pipe()
		go func() {
			l.pass(to, from, bytes.ToUpper)
			_ = to.Close()
		}()
		hear := func(want string) {
			b := make([]byte, len(want))
			_, err := io.ReadFull(far, b)
			require.NoError(t, err)
			require.Equal(t, want, string(b))
		}
		start := time.Now()
		_, err := near.Write([]byte("a"))
		require.NoError(t, err)
		hear("A")
		require.Zero(t, time.Since(start))

		l.slow.Store(true)
		sent := make(chan time.Time, n)
		go func() {
			for i := range n {
				sent <- time.Now()
				_, _ = near.Write([]byte{'a' + byte(i%26)})
				time.Sleep(time.Millisecond)
			}
			l.slow.Store(false)
			_, _ = near.Write([]byte("z"))
			_ = near.Close()
		}()
		longest := time.Duration(0)
		for i := range n {
			hear(string([]byte{'A' + byte(i%26)}))
			took := time.Since(<-sent)
			require.GreaterOrEqual(t, took, slowDelay)
			longest = max(longest, took)
		}
		hear("Z")
		require.LessOrEqual(t, longest, slowDelay+lossDelay)
		require.EqualValues(t, n, l.pieces.Load())
		if l.lost.Load() > 0 {
			require.Equal(t, slowDelay+lossDelay, longest)
		}
		rest, err := io.ReadAll(far)
		require.NoError(t, err)
		require.Empty(t, rest)
	})
}
