//go:build unix

package amqp

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// raw is a client that costs as little as it can.
type raw struct {
	net.Conn
	b testing.TB
	r *bufio.Reader

	limit     atomic.Int64 // deliveries that we may send
	confirmed atomic.Int64
	changed   chan struct{}
}

func connectRaw(b testing.TB, addr string, attach []byte) *raw {
	b.Helper()
	nc, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	c := &raw{Conn: nc, b: b, r: bufio.NewReaderSize(nc, 256<<10), changed: make(chan struct{}, 1)}
	_, err = nc.Write(append(append([]byte(headerAMQP),
		frameOf(0, descOpen, nil, str("bench"), null, u(128<<10))...), frameOf(0, descBegin, nil, null, u(0), u(1<<30), u(1<<30))...))
	require.NoError(b, err)
	_, err = nc.Write(attach)
	require.NoError(b, err)
	_, err = io.ReadFull(c.r, make([]byte, headerSize))
	require.NoError(b, err)
	return c
}

// next returns the next frame's performative and what follows it.
func (c *raw) next(buf []byte) (descriptor uint64, list fields, size int, err error) {
	head, err := c.r.Peek(4)
	if err != nil {
		return 0, list, 0, err
	}
	size = int(binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(c.r, buf[:size]); err != nil {
		return 0, list, 0, err
	}
	if size == frameHeader {
		return 0, list, size, nil
	}
	f := values(buf[frameHeader:size])
	descriptor, list = f.performative()
	return descriptor, list, size, nil
}

func (c *raw) follow() {
	buf := make([]byte, 256<<10)
	for {
		descriptor, list, _, err := c.next(buf)
		if err != nil {
			return
		}
		switch descriptor {
		case descFlow:
			w := list.flow()
			if w.hasHandle {
				c.limit.Store(int64(w.count + w.credit))
			}
		case descDisposition:
			c.confirmed.Store(int64(list.disposition().last) + 1)
		default:
			continue
		}
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// produce sends n messages with at most pending in flight.
func (c *raw) produce(n, pending int, payload []byte) {
	var out []byte
	for sent := 0; sent < n || c.confirmed.Load() < int64(n); {
		may := min(int64(n), c.limit.Load(), c.confirmed.Load()+int64(pending)) - int64(sent)
		if may <= 0 {
			select {
			case <-c.changed:
				continue
			case <-time.After(30 * time.Second):
				c.b.Errorf("stuck at %d sent, %d confirmed, limit %d", sent, c.confirmed.Load(), c.limit.Load())
				return
			}
		}
		out = out[:0]
		for range min(may, 64) {
			var frame, at int
			out, frame = beginFrame(out, frameAMQP, 0)
			out, at = beginShort(out, descTransfer)
			out = appendUint(appendUint(out, 0), uint32(sent))
			out = binary.BigEndian.AppendUint32(append(out, codeBin8, 4), uint32(sent))
			out = append(finishShort(out, at, 3), payload...)
			out = finishFrame(out, frame)
			sent++
		}
		if _, err := c.Write(out); err != nil {
			c.b.Error(err)
			return
		}
	}
}

// consume receives n messages, and accepts them in ranges.
func (c *raw) consume(n, credit int) {
	buf := make([]byte, 256<<10)
	flow := func(count int) {
		_, _ = c.Write(frameOf(0, descFlow, nil, u(uint32(count)), u(1<<30), u(0), u(1<<30), u(0), u(uint32(count)), u(uint32(credit))))
	}
	accepted := func(b []byte) []byte { return append(b, acceptedState()...) }
	flow(0)
	first, got := 0, 0
	for got < n {
		descriptor, _, _, err := c.next(buf)
		if err != nil {
			c.b.Error(err)
			return
		}
		if descriptor != descTransfer {
			continue
		}
		if got++; got-first >= credit/2 || got == n || c.r.Buffered() == 0 && got-first >= 32 {
			_, _ = c.Write(frameOf(0, descDisposition, nil, yes, u(uint32(first)), u(uint32(got-1)), yes, accepted))
			flow(got)
			first = got
		}
	}
}

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkThrough sends messages of 1 KiB over one connection and receives them over another. The processor time is that
// of the broker and of both clients.
func BenchmarkThrough(b *testing.B) {
	for name, pending := range map[string]int{"pending=1": 1, "pending=100": 100, "pending=1000": 1000} {
		b.Run(name, func(b *testing.B) { benchThrough(b, pending) })
	}
}

func benchThrough(b *testing.B, pending int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	srv := New(store.New(store.Config{}), Options{})
	ctx, stop := context.WithCancel(b.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = srv.Serve(ctx, nc) })
		}
	})
	q := terminus{kind: descTarget, address: "Q", hasAddress: true, expiry: expireSessionEnd}
	src := q
	src.kind = descSource
	out := connectRaw(b, l.Addr().String(), frameOf(0, descAttach, nil, str("s"), u(0), no, ub(2), ub(0), null, term(q), null, null, u(0)))
	in := connectRaw(b, l.Addr().String(), frameOf(0, descAttach, nil, str("r"), u(0), yes, ub(0), ub(0), term(src), term(q)))
	serving.Go(out.follow)
	payload := appendApplication(nil, []store.Property{{Key: "time", Value: int64(1 << 50)}})
	payload = appendBinary(appendDescriptor(payload, descData), make([]byte, 1024))
	b.ResetTimer()
	began := cpu()
	var work sync.WaitGroup
	work.Go(func() { out.produce(b.N, pending, payload) })
	work.Go(func() { in.consume(b.N, 1000) })
	work.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/msg")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	_ = l.Close()
	stop()
	_ = out.Close()
	_ = in.Close()
	serving.Wait()
}
