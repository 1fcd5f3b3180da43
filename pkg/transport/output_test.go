package transport_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// outputs returns outputs over TCP, written to directly and through something above it.
func outputs(t *testing.T, test func(t *testing.T, o *transport.Output, far io.ReadCloser, failed chan error)) {
	t.Helper()
	for name, direct := range map[string]bool{"direct": true, "through TLS": false} {
		t.Run(name, func(t *testing.T) {
			m, far := pair(t)
			var mem transport.Buffers
			var conn io.Writer = m
			if !direct {
				conn = struct{ io.Writer }{m}
			}
			failed := make(chan error, 1)
			o := transport.NewOutput(conn, m, &mem, func(err error) { failed <- err })
			t.Cleanup(func() {
				_ = m.Close()
				o.Wait()
			})
			test(t, o, far, failed)
		})
	}
}

func send(t testing.TB, o *transport.Output, frame []byte, more bool) {
	t.Helper()
	b := musttest.Get(o.Lock(t.Context(), driver.NewMeter()))(t)
	o.Unlock(append(b, frame...), more)
}

// Frames of many senders arrive whole, and each sender's in order, however slow the reader is.
func TestOutputKeepsFramesWhole(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, _ chan error) {
		const senders, frames = 8, 2000
		var running sync.WaitGroup
		for s := range senders {
			running.Go(func() {
				frame := make([]byte, 16+100*s)
				for i := range frames {
					binary.BigEndian.PutUint32(frame, uint32(len(frame)))
					binary.BigEndian.PutUint32(frame[4:], uint32(s))
					binary.BigEndian.PutUint32(frame[8:], uint32(i))
					send(t, o, frame, i%7 != 6 && i < frames-1)
				}
			})
		}
		next := make([]uint32, senders)
		head := make([]byte, 16)
		for n := range senders * frames {
			if n%1000 == 0 {
				<-time.After(time.Millisecond) // lets the buffers fill
			}
			musttest.Get(io.ReadFull(far, head))(t)
			s := binary.BigEndian.Uint32(head[4:])
			require.Equal(t, next[s], binary.BigEndian.Uint32(head[8:]))
			next[s]++
			musttest.Get(io.CopyN(io.Discard, far, int64(binary.BigEndian.Uint32(head))-16))(t)
		}
		running.Wait()
		o.Drain(t.Context())
	})
}

// A frame that announces another waits for that, or for a flush; a lone frame does not wait.
func TestOutputGathers(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, _ chan error) {
		send(t, o, []byte("one "), true)
		require.NoError(t, o.Put(func(b []byte) []byte { return append(b, "two "...) }))
		require.Zero(t, o.Writes())
		send(t, o, []byte("three "), false)
		got := make([]byte, 14)
		musttest.Get(io.ReadFull(far, got))(t)
		require.Equal(t, "one two three ", string(got))
		o.Drain(t.Context())
		require.EqualValues(t, 1, o.Writes())

		require.NoError(t, o.Put(func(b []byte) []byte { return append(b, "four"...) }))
		o.Flush()
		musttest.Get(io.ReadFull(far, got[:4]))(t)
		require.Equal(t, "four", string(got[:4]))

		for range 40 { // more than gatherLimit
			send(t, o, make([]byte, 1<<10), true)
		}
		_, err := io.ReadFull(far, make([]byte, 32<<10))
		require.NoError(t, err, "it does not wait for ever")
	})
}

// A frame that is given up leaves nothing behind, and is no write; frames that have waited for it leave.
func TestOutputOfNothing(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, _ chan error) {
		send(t, o, nil, false)
		send(t, o, nil, true)
		o.Flush()
		o.Drain(t.Context())
		require.Zero(t, o.Writes())
		send(t, o, []byte("one "), true)
		send(t, o, nil, true)
		require.Zero(t, o.Writes())
		send(t, o, nil, false)
		got := make([]byte, 8)
		musttest.Get(io.ReadFull(far, got[:4]))(t)
		require.Equal(t, "one ", string(got[:4]))
		o.Drain(t.Context())
		require.EqualValues(t, 1, o.Writes())
		send(t, o, []byte("goes on."), false)
		musttest.Get(io.ReadFull(far, got))(t)
		require.Equal(t, "goes on.", string(got))
	})
}

// A peer that does not read holds senders up, not for longer than they want to wait, and the waits are measured.
func TestOutputHoldsSendersUp(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, _ chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		meter := driver.NewMeter()
		go func() { // once a sender has waited, it does not want to any more
			defer cancel()
			for meter.Wait().Times == 0 && ctx.Err() == nil {
				<-time.After(time.Millisecond)
			}
			<-time.After(50 * time.Millisecond)
		}()
		frame := make([]byte, 64<<10)
		sent := 0
		var err error
		for err == nil {
			var b []byte
			if b, err = o.Lock(ctx, meter); err == nil {
				o.Unlock(append(b, frame...), false)
				sent++
			}
		}
		require.ErrorIs(t, err, context.Canceled)
		require.NotZero(t, meter.Wait().Times)
		require.NotZero(t, meter.Wait().Time)
		require.Less(t, sent, 1000, "some megabytes, most of them the system's")
		// The reader's own frames never wait.
		require.NoError(t, o.Put(func(b []byte) []byte { return append(b, "end"...) }))
		o.Flush() // the system may have taken all at the last moment
		got := musttest.Get(io.ReadAll(io.LimitReader(far, int64(sent*len(frame)+3))))(t)
		require.Equal(t, "end", string(got[len(got)-3:]))
		send(t, o, []byte("goes on"), false)
		musttest.Get(io.ReadFull(far, got[:7]))(t)
	})
}

// ended notes which slots were written.
type ended struct {
	mu    sync.Mutex
	slots []driver.Slot
}

func (e *ended) Written(slots []driver.Slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slots = append(e.slots, slots...)
}

func (e *ended) list() []driver.Slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]driver.Slot(nil), e.slots...)
}

// Sends without a confirmation by the broker end when they were written, and not before.
func TestOutputConfirms(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, failed chan error) {
		var a, b ended
		var want []driver.Slot
		for i := range driver.Slot(200) {
			to := &a
			if i%5 == 4 {
				to = &b
			} else {
				want = append(want, i)
			}
			buf := musttest.Get(o.Lock(t.Context(), driver.NewMeter()))(t)
			o.Confirm(to, i)
			o.Unlock(append(buf, make([]byte, 10)...), i < 199)
			if i == 100 {
				require.Empty(t, a.list())
			}
		}
		_, err := io.ReadFull(far, make([]byte, 2000))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(b.list()) == 40 }, time.Minute, time.Millisecond)
		require.Equal(t, want, a.list())

		require.NoError(t, far.Close())
		for err == nil { // the first write may still succeed
			var buf []byte
			if buf, err = o.Lock(t.Context(), driver.NewMeter()); err == nil {
				o.Unlock(append(buf, "x"...), false)
			}
		}
		require.Error(t, <-failed)
		buf, again := o.Lock(t.Context(), driver.NewMeter())
		require.Equal(t, err, again)
		require.Nil(t, buf)
		require.Equal(t, err, o.Put(func(b []byte) []byte { return b }))
		o.Drain(t.Context())
	})
}

// Fail ends the waits of senders.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, _ io.ReadCloser, _ chan error) {
		gone := errors.New("gone")
		result := make(chan error, 1)
		go func() {
			frame := bytes.Repeat([]byte("x"), 64<<10)
			for {
				b, err := o.Lock(context.Background(), driver.NewMeter())
				if err != nil {
					result <- err
					return
				}
				o.Unlock(append(b, frame...), false)
			}
		}()
		<-time.After(20 * time.Millisecond)
		o.Fail(gone)
		o.Fail(errors.New("later"))
		require.ErrorIs(t, <-result, gone)
	})
}

func TestOutputAllocatesNothing(t *testing.T) {
	m, far := pair(t)
	var mem transport.Buffers
	o := transport.NewOutput(m, m, &mem, func(error) {})
	meter, frame, got := driver.NewMeter(), make([]byte, 1000), make([]byte, 4000)
	ctx := t.Context()
	allocs := testing.AllocsPerRun(1000, func() {
		for i := range 4 {
			b, _ := o.Lock(ctx, meter)
			o.Unlock(append(b, frame...), i < 3)
		}
		_, _ = io.ReadFull(far, got)
	})
	require.LessOrEqual(t, allocs, allowed)
}

// TryLock does not wait for room, and fails once nothing can be written any more.
func TestOutputTryLock(t *testing.T) {
	t.Parallel()
	outputs(t, func(t *testing.T, o *transport.Output, far io.ReadCloser, _ chan error) {
		chunk := make([]byte, 100_000)
		taken := 0
		for b, ok := o.TryLock(); ok; b, ok = o.TryLock() { // until the network takes no more, and the buffer is full
			o.Unlock(append(b, chunk...), false)
			taken += len(chunk)
		}
		go func() { _, _ = io.Copy(io.Discard, far) }()
		o.Drain(t.Context())
		b, ok := o.TryLock()
		require.True(t, ok)
		o.Unlock(b, false)
		require.Greater(t, taken, 256<<10)

		o.Fail(errors.New("over"))
		_, ok = o.TryLock()
		require.False(t, ok)
		_, err := o.Lock(t.Context(), driver.NewMeter())
		require.ErrorContains(t, err, "over", "the lock is free")
	})
}
