package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// interrupted is the status of a run that a signal ended, and that was otherwise a success.
const interrupted = 130

func TestSupervise(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []time.Duration // signals
		work func(ctx context.Context, stop <-chan struct{}) int
		want int
		took time.Duration
		said int
	}{
		{
			"no signal", nil,
			func(context.Context, <-chan struct{}) int { <-time.After(5 * time.Second); return 7 },
			7, 5 * time.Second, 0,
		},
		{
			"the first one stops",
			[]time.Duration{time.Second},
			func(_ context.Context, stop <-chan struct{}) int {
				<-stop
				<-time.After(3 * time.Second)
				return 0
			},
			interrupted, 4 * time.Second, 1,
		},
		{
			"a failed run stays failed",
			[]time.Duration{time.Second},
			func(_ context.Context, stop <-chan struct{}) int { <-stop; return 1 },
			1, time.Second, 1,
		},
		{
			"the second one cancels",
			[]time.Duration{time.Second, 2 * time.Second},
			func(ctx context.Context, stop <-chan struct{}) int { <-stop; <-ctx.Done(); return 0 },
			interrupted, 2 * time.Second, 2,
		},
		{
			"after the second one, a moment is left",
			[]time.Duration{time.Second, 2 * time.Second},
			func(context.Context, <-chan struct{}) int { <-time.After(time.Hour); return 0 },
			interrupted, 2*time.Second + lastGrace, 2,
		},
		{
			"the third one leaves at once",
			[]time.Duration{time.Second, 2 * time.Second, 2100 * time.Millisecond},
			func(context.Context, <-chan struct{}) int { <-time.After(time.Hour); return 0 },
			interrupted, 2100 * time.Millisecond, 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				for _, at := range c.at {
					time.AfterFunc(at, func() { signals <- syscall.SIGTERM })
				}
				var said []string
				start := time.Now()
				status, ended, waited := supervise(signals, nil, func(s string) { said = append(said, s) }, 30*time.Second, new(atomic.Bool), c.work)
				if ended && status == 0 {
					status = interrupted
				}
				require.Equal(t, c.want, status)
				require.Equal(t, len(c.at) < 2 || c.took == 2*time.Second, waited)
				require.Equal(t, c.took, time.Since(start))
				require.Len(t, said, c.said)
				if c.said > 0 {
					require.Equal(t, "stopping: waiting up to 30s for messages in flight; press Ctrl-C again to leave at once", said[0])
				}
				time.Sleep(2 * time.Hour) //nolint:forbidigo // of the bubble: abandoned work ends
			})
		})
	}
}

func TestClosedOutputStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipeWriter(brokenPipe{})
		_, ended, waited := supervise(nil, w.halt, func(string) {}, 0, new(atomic.Bool), func(_ context.Context, stop <-chan struct{}) int {
			for range 3 {
				n := musttest.Get(fmt.Fprint(w, "text"))(t)
				require.Equal(t, 4, n)
			}
			<-stop
			return 0
		})
		require.True(t, ended)
		require.True(t, waited)
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: syscall.EPIPE}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestPipeWriterPassesOn(t *testing.T) {
	var b strings.Builder
	_, err := io.WriteString(newPipeWriter(&b), "text")
	require.NoError(t, err)
	require.Equal(t, "text", b.String())
	_, err = newPipeWriter(fullDisk{}).Write([]byte("text"))
	require.True(t, errors.Is(err, syscall.ENOSPC), "other errors are not swallowed")
}

// TestHangups: a terminal that goes sends a hangup, and its shell another one. That is one wish to end, and not to
// leave at once.
func TestHangups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		go func() {
			signals <- syscall.SIGHUP
			signals <- syscall.SIGHUP
		}()
		var said []string
		_, ended, waited := supervise(signals, nil, func(s string) { said = append(said, s) }, time.Second, new(atomic.Bool), func(ctx context.Context, stop <-chan struct{}) int {
			<-stop
			<-time.After(5 * time.Second)
			require.NoError(t, ctx.Err())
			return 0
		})
		require.True(t, ended)
		require.True(t, waited)
		require.Len(t, said, 1)
	})
}

func TestUntilSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		got, ended := UntilSignal(signals, func() int { return 7 })
		require.True(t, ended)
		require.Equal(t, 7, got)
		signals <- os.Interrupt
		_, ended = UntilSignal(signals, func() int { <-time.After(time.Hour); return 7 })
		require.False(t, ended)
		<-time.After(2 * time.Hour) // what was left behind ends
	})
}

// TestSignalOfACompleteRun: a run that is over and only waits ends by the first signal, as it was told to do, and is not
// interrupted. A second one leaves at once.
func TestSignalOfACompleteRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stuck := range []bool{false, true} {
			signals := make(chan os.Signal)
			var over atomic.Bool
			over.Store(true)
			for at := range 2 {
				time.AfterFunc(time.Duration(at+1)*time.Second, func() {
					select {
					case signals <- os.Interrupt:
					case <-time.After(time.Minute):
					}
				})
			}
			var said []string
			work := func(ctx context.Context, stop <-chan struct{}) int {
				<-stop
				if stuck {
					<-ctx.Done()
				}
				return 7
			}
			status, ended, waited := supervise(signals, nil, func(s string) { said = append(said, s) }, time.Second, &over, work)
			require.Equal(t, 7, status)
			require.True(t, waited)
			require.Equal(t, stuck, ended)
			require.Equal(t, stuck, len(said) > 0, said)
			time.Sleep(2 * time.Minute) //nolint:forbidigo // of the bubble
		}
	})
}
