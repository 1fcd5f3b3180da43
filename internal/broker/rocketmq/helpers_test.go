//go:build unix

package rocketmq_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// patience bounds each wait for something that must happen.
const patience = time.Minute

// testBroker is a front-end with a listener.
type testBroker struct {
	*rocketmq.Server
	store *store.Store
	addr  string
	l     net.Listener
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// start starts a broker that ends with the test.
func start(tb testing.TB, cfg store.Config, o rocketmq.Options) *testBroker {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	b := serve(l, cfg, o)
	tb.Cleanup(b.end)
	return b
}

func serve(l net.Listener, cfg store.Config, o rocketmq.Options) *testBroker {
	s := store.New(cfg)
	ctx, stop := context.WithCancel(context.Background())
	b := &testBroker{Server: rocketmq.New(s, o), store: s, addr: l.Addr().String(), l: l, stop: stop}
	s.OnDrop(func() { b.drop() })
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns = append(b.conns, conn)
			b.mu.Unlock()
			b.wg.Go(func() { _ = b.Serve(ctx, conn) })
		}
	})
	return b
}

func (b *testBroker) url() string { return "rocketmq://" + b.addr }

func (b *testBroker) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	b.conns = nil
}

func (b *testBroker) end() {
	_ = b.l.Close()
	b.stop()
	b.store.Stall(0)
	b.wg.Wait()
	b.Close()
}

// call sends a request over a connection of its own and returns the answer's code and body.
func call(t testing.TB, addr string, code int, body []byte, fields ...string) (answer int, answerBody []byte) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write(request(code, 0, body, fields...))
	require.NoError(t, err)
	frame, err := readFrame(conn, make([]byte, 1<<20))
	require.NoError(t, err)
	var f wire.Frame
	require.NoError(t, f.Parse(frame))
	return f.Code, f.Body
}

func createTopic(t testing.TB, b *testBroker, topic string, queues int) {
	t.Helper()
	n := strconv.Itoa(queues)
	code, _ := call(t, b.addr, wire.ReqUpdateAndCreateTopic, nil, "topic", topic, "readQueueNums", n, "writeQueueNums", n, "perm", "6")
	require.Zero(t, code)
}

// request makes a frame in the binary codec.
func request(code int, flag uint32, body []byte, fields ...string) []byte {
	b := wire.BeginFrame(nil, code, flag, 7, "")
	for i := 0; i < len(fields); i += 2 {
		b = wire.AppendField(b, fields[i], fields[i+1])
	}
	wire.EndFrame(b, len(body))
	return append(b, body...)
}

// readFrame returns a frame without its length.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := buf[:min(int(binary.BigEndian.Uint32(size[:])), len(buf))]
	_, err := io.ReadFull(r, frame)
	return frame, err
}
