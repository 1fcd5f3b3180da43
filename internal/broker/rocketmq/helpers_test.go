//go:build unix

package rocketmq_test

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for something that must happen.
const patience = time.Minute

// testBroker is a front-end on a port.
type testBroker struct {
	*rocketmq.Server
	store      *store.Store
	addr       string
	drop, kill func()
}

// start starts a broker that ends with the test.
func start(tb testing.TB, cfg store.Config, o rocketmq.Options) *testBroker {
	tb.Helper()
	b := &testBroker{}
	tb.Cleanup(func() { b.Close() })
	r := storetest.Serve(tb, cfg, func(s *store.Store) storetest.Frontend {
		b.Server = rocketmq.New(s, o)
		return b.Server
	})
	b.store, b.addr, b.drop, b.kill = r.Store, r.Addr, r.Drop, r.Kill
	return b
}

func (b *testBroker) url() string { return "rocketmq://" + b.addr }

// call sends a request over a connection of its own and returns the answer's code and body.
func call(t testing.TB, addr string, code int, body []byte, fields ...string) (answer int, answerBody []byte) {
	t.Helper()
	conn := musttest.Get(net.DialTimeout("tcp", addr, patience))(t)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	musttest.Get(conn.Write(request(code, 0, body, fields...)))(t)
	frame := musttest.Get(readFrame(conn, make([]byte, 1<<20)))(t)
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

// sent returns the number of messages sent to a topic.
func sent(b *testBroker, topic string) uint64 {
	if d := b.store.Find(driver.Destination{Kind: driver.Topic, Name: topic}); d != nil {
		return d.Stats().Sent
	}
	return 0
}
