package tcpproxy

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestLine: pieces are late while the line is slow, and in order.
func TestLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		l := &Line{Delay: 100 * time.Millisecond, Loss: 200 * time.Millisecond, LossOneIn: 10}
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

		l.Slow(true)
		sent := make(chan time.Time, n)
		go func() {
			for i := range n {
				sent <- time.Now()
				_, _ = near.Write([]byte{'a' + byte(i%26)})
				time.Sleep(time.Millisecond) //nolint:forbidigo // a fake clock
			}
			l.Slow(false)
			_, _ = near.Write([]byte("z"))
			_ = near.Close()
		}()
		longest := time.Duration(0)
		for i := range n {
			hear(string([]byte{'A' + byte(i%26)}))
			took := time.Since(<-sent)
			require.GreaterOrEqual(t, took, l.Delay)
			longest = max(longest, took)
		}
		hear("Z")
		require.LessOrEqual(t, longest, l.Delay+l.Loss)
		require.Greater(t, longest, l.Delay, "a loss")
		rest := musttest.Get(io.ReadAll(far))(t)
		require.Empty(t, rest)
	})
}
