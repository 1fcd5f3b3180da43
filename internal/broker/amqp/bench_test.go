//go:build unix

package amqp

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// raw is a client that costs as little as it can.
type raw struct {
	net.Conn
	b testing.TB
	r *wire.FrameReader

	limit     atomic.Int64 // deliveries that we may send
	confirmed atomic.Int64
	changed   chan struct{}
}

func connectRaw(b testing.TB, addr string, attach []byte) *raw {
	b.Helper()
	nc, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	c := &raw{Conn: nc, b: b, r: wire.NewFrameReader(bufio.NewReaderSize(nc, 256<<10), 256<<10), changed: make(chan struct{}, 1)}
	_, err = nc.Write(append(append([]byte(wire.HeaderAMQP),
		frameOf(0, wire.DescOpen, nil, str("bench"), null, u(128<<10))...), frameOf(0, wire.DescBegin, nil, null, u(0), u(1<<30), u(1<<30))...))
	require.NoError(b, err)
	_, err = nc.Write(attach)
	require.NoError(b, err)
	_, err = c.r.ReadProtocolHeader()
	require.NoError(b, err)
	return c
}

// next returns the next frame that is no heartbeat.
func (c *raw) next() (wire.Body, error) {
	for {
		f, err := c.r.Next()
		if err != nil {
			return wire.Body{}, err
		}
		if len(f.Body) > 0 {
			return wire.ParseBody(f.Body)
		}
	}
}

func (c *raw) follow() {
	for {
		p, err := c.next()
		if err != nil {
			return
		}
		switch p.Kind {
		case wire.DescFlow:
			var w wire.Flow
			if err := w.Decode(&p.Fields); err == nil && w.Handle.OK {
				c.limit.Store(int64(w.DeliveryCount.V + w.LinkCredit.V))
			}
		case wire.DescDisposition:
			var d wire.Disposition
			if err := d.Decode(&p.Fields); err == nil {
				c.confirmed.Store(int64(d.Last) + 1)
			}
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
	var tag [4]byte
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
			at := len(out)
			t := wire.Transfer{
				DeliveryID: wire.Some(uint32(sent)), DeliveryTag: binary.BigEndian.AppendUint32(tag[:0], uint32(sent)),
				MessageFormat: wire.Some[uint32](0),
			}
			out = append(t.AppendHead(out, 0), payload...)
			wire.EndFrame(out, at)
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
	flow := func(count int) {
		_, _ = c.Write(frameOf(0, wire.DescFlow, nil, u(uint32(count)), u(1<<30), u(0), u(1<<30), u(0), u(uint32(count)), u(uint32(credit))))
	}
	flow(0)
	first, got := 0, 0
	for got < n {
		p, err := c.next()
		if err != nil {
			c.b.Error(err)
			return
		}
		if p.Kind != wire.DescTransfer {
			continue
		}
		if got++; got-first >= credit/2 || got == n || c.r.Buffered() == 0 && got-first >= 32 {
			_, _ = c.Write(frameOf(0, wire.DescDisposition, nil, yes, u(uint32(first)), u(uint32(got-1)), yes, accepted))
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

// BenchmarkThrough sends messages of 1 KiB over one connection and receives them over another. The processor time is
// that of the broker and of both clients.
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
	out := connectRaw(b, l.Addr().String(), attachSender("s", 0, atQ(wire.DescTarget)))
	in := connectRaw(b, l.Addr().String(), attachReceiver("r", 0, atQ(wire.DescSource), atQ(wire.DescTarget)))
	serving.Go(out.follow)
	payload := appendApplication(nil, []store.Property{{Key: "time", Value: int64(1 << 50)}})
	payload = wire.AppendData(payload, make([]byte, 1024))
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
