//go:build unix

package stomp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPair sends with receipts over one connection and receives over another one. The client is as light as can
// be: it writes frames that were made before and counts NULs. The processor time is that of both sides, client and
// broker.
func BenchmarkPair(b *testing.B) {
	for _, size := range []int{100, 1024} {
		for _, mode := range []string{"auto", "client"} {
			b.Run(fmt.Sprintf("%d/%s", size, mode), func(b *testing.B) { benchmarkPair(b, size, mode) })
		}
	}
}

func benchmarkPair(b *testing.B, size int, mode string) {
	s := serve(b, store.Config{Limit: 10_000}, Options{})
	in, out := connected(b, s.addr, "1.2"), connected(b, s.addr, "1.2")
	in.ask("SUBSCRIBE", "", "id:0", "destination:/queue/x", "ack:"+mode)
	const batch = 64
	one := "SEND\ndestination:/queue/x\ndestination-type:ANYCAST\npersistent:false\ntime:1700000000000000\nreceipt:s0.17.12345\n" +
		fmt.Sprintf("content-length:%d\n\n%s\x00", size, strings.Repeat("x", size))
	frames := []byte(strings.Repeat(one, batch))
	count := (b.N + batch - 1) / batch * batch
	receipts, received := make(chan error, 1), make(chan error, 1)
	credit := make(chan struct{}, 32)
	_ = in.SetReadDeadline(time.Now().Add(5 * time.Minute))
	_ = out.SetReadDeadline(time.Now().Add(5 * time.Minute))
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	go func() {
		buf := make([]byte, 256<<10)
		for n, given := 0, 0; n < count; {
			k, err := out.r.Read(buf)
			if err != nil {
				receipts <- err
				return
			}
			for n += bytes.Count(buf[:k], []byte{0}); given < n/batch; given++ {
				<-credit
			}
		}
		receipts <- nil
	}()
	go func() { received <- receive(in.Conn, in.r, count, mode) }()
	for n := 0; n < count; n += batch {
		credit <- struct{}{}
		_, err := out.Write(frames)
		require.NoError(b, err)
	}
	require.NoError(b, <-receipts)
	require.NoError(b, <-received)
	b.StopTimer()
	require.Equal(b, count, int(queueStats(s.store, "x").Delivered))
	b.ReportMetric(float64(cpu()-start)/float64(count), "cpu-ns/msg")
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "msg/s")
}

// receive counts messages, and acknowledges after each 200.
func receive(conn net.Conn, r io.Reader, count int, mode string) error {
	buf := make([]byte, 256<<10)
	keep, acked := 0, 0
	for n := 0; n < count; {
		k, err := r.Read(buf[keep:])
		if err != nil {
			return err
		}
		n += bytes.Count(buf[keep:keep+k], []byte{0})
		if mode == "auto" {
			continue
		}
		at := bytes.LastIndex(buf[:keep+k], []byte("\nack:"))
		end := -1
		if at >= 0 {
			end = bytes.IndexByte(buf[at+1:keep+k], '\n')
		}
		if end >= 0 && (n-acked >= 200 || n == count) {
			acked = n
			ack := append([]byte("ACK\nid:"), buf[at+5:at+1+end]...)
			if _, err := conn.Write(append(ack, "\n\n\x00"...)); err != nil {
				return err
			}
		}
		keep = 0
		if end < 0 && at >= 0 { // the header was cut
			keep = copy(buf, bytes.ReplaceAll(buf[at:k], []byte{0}, nil))
		}
	}
	return nil
}

// BenchmarkScan reads SEND frames and makes messages of them.
func BenchmarkScan(b *testing.B) {
	one := "SEND\ndestination:/queue/x\ndestination-type:ANYCAST\npersistent:false\ntime:1700000000000000\nreceipt:s0.17.12345\n" +
		"content-length:100\n\n" + strings.Repeat("x", 100) + "\x00"
	c := &conn{version: wire.V12}
	c.in = wire.NewReader(bufio.NewReaderSize(&repeated{text: []byte(strings.Repeat(one, 100))}, readBuffer), maxHead, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		f, err := c.in.Next()
		require.NoError(b, err)
		var s sendHeaders
		if _, err = c.build(f, &s); err != nil {
			b.Fatal(err)
		}
	}
}

// repeated is an input without end.
type repeated struct {
	text []byte
	pos  int
}

func (r *repeated) Read(b []byte) (int, error) {
	n := copy(b, r.text[r.pos:])
	r.pos = (r.pos + n) % len(r.text)
	return n, nil
}
