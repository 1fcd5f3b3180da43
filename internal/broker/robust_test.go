package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

// patience bounds each wait for something that must happen.
const patience = time.Minute

// remoting returns a request of RocketMQ with a JSON header.
func remoting(t testing.TB, code, opaque int, fields map[string]string, body string) []byte {
	t.Helper()
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "JAVA", "version": 401, "opaque": opaque, "flag": 0, "extFields": fields,
	})
	require.NoError(t, err)
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(header))), header...)
	return append(b, body...)
}

// sendRemoting returns a request that sends a message to queue 0 of a topic.
func sendRemoting(t testing.TB, opaque int, topic, body string) []byte {
	t.Helper()
	return remoting(t, 10, opaque, map[string]string{
		"producerGroup": "g", "topic": topic, "defaultTopic": "TBW102", "defaultTopicQueueNums": "1", "queueId": "0", "sysFlag": "0",
		"bornTimestamp": "1", "flag": "0", "properties": "", "reconsumeTimes": "0", "batch": "false",
	}, body)
}

func dialRaw(t testing.TB, b *Broker, protocol string) net.Conn {
	t.Helper()
	conn := musttest.Get(net.Dial("tcp", b.Addr(protocol)))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func open(b *Broker) (n int) {
	for _, c := range b.Stats().Connections {
		n += c.Open
	}
	return n
}

// gone waits until nothing is left of any connection.
func gone(t testing.TB, b *Broker) {
	t.Helper()
	require.Eventually(t, func() bool { return open(b) == 0 }, patience, time.Millisecond, "%+v", b.Stats().Connections)
}

// TestDroppingEndsAStall: connections of all protocols that wait in a stall end when they are dropped, not when the
// stall is over.
func TestDroppingEndsAStall(t *testing.T) {
	b := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn := musttest.Get(amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), nil))(t)
	defer conn.Close()
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	sender := musttest.Get(session.NewSender(ctx, "A", nil))(t)
	receiver := musttest.Get(session.NewReceiver(ctx, "A", nil))(t)
	require.NoError(t, sender.Send(ctx, amqp.NewMessage([]byte("1")), nil))
	held := musttest.Get(receiver.Receive(ctx, nil))(t)
	text := dialSTOMP(t, b)
	remote := dialRaw(t, b, RocketMQ)

	require.Eventually(t, func() bool { return open(b) == 3 }, patience, time.Millisecond)
	b.Store().Stall(time.Hour)
	ended := make(chan error, 1)
	require.NoError(t, receiver.AcceptMessage(ctx, held)) // does not wait for an answer
	go func() { ended <- sender.Send(ctx, amqp.NewMessage([]byte("2")), nil) }()
	text.say("SEND\ndestination:/queue/S\nreceipt:1\n\nbody")
	musttest.Get(remote.Write(sendRemoting(t, 1, "R", "body")))(t)
	require.Equal(t, 3, b.DropConnections())
	gone(t, b)
	require.Error(t, <-ended)
	assert.Zero(t, b.Store().Queue("A").Stats().Consumers)
	dialSTOMP(t, b).send("after the stall")
}

// TestGarbage: whatever comes over a connection ends that one at most.
func TestGarbage(t *testing.T) {
	b := start(t, Config{MaxMessage: 1 << 20})
	good := dialSTOMP(t, b)
	huge := "\x7f\xff\xff\xff"
	amqpOpen := "AMQP\x00\x01\x00\x00"
	for _, c := range []struct{ protocol, text string }{
		{AMQP, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{AMQP, amqpOpen + huge + "\x02\x00\x00\x00"},
		{AMQP, amqpOpen + "\x00\x00\x00\x04\x02\x00\x00\x00"},
		{AMQP, amqpOpen + "\x00\x00\x00\x10\xff\x00\x00\x00garbage!"},
		{AMQP, amqpOpen + "\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53\x10\xd0\xff\xff\xff\xff"},
		{STOMP, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{STOMP, strings.Repeat("x", 1<<16)},
		{STOMP, "CONNECT\n" + strings.Repeat("x:y\n", 20_000)},
		{STOMP, "CONNECT\naccept-version:1.2\n\n\x00SEND\ndestination:/queue/Q\ncontent-length:99999999999\n\n"},
		{STOMP, "CONNECT\naccept-version:1.2\n\n\x00SEND\ndestination:/queue/Q\ncontent-length:2\n\nxyz\x00"},
		{STOMP, "CONNECT\naccept-version:1.2\n\n\x00SEND\ndestination:/queue/Q\n\n" + strings.Repeat("x", 3<<20)},
		{RocketMQ, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{RocketMQ, huge},
		{RocketMQ, "\x00\x00\x00\x00"},
		{RocketMQ, "\x00\x00\x00\x08\x00\xff\xff\xffgarb"},
		{RocketMQ, "\x00\x00\x00\x0c\x07\x00\x00\x04garbgarb"},
		{RocketMQ, "\x00\x00\x00\x0c\x00\x00\x00\x08{{{{{{{{"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			conn := dialRaw(t, b, c.protocol)
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			_, _ = conn.Write([]byte(c.text)) // it may be broken off meanwhile
			_, err := io.Copy(io.Discard, conn)
			if err != nil { // a reset is an end as well
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.NotContains(t, err.Error(), "timeout")
			}
		})
	}
	good.send("1")
	require.Eventually(t, func() bool { return open(b) == 1 }, patience, time.Millisecond)
}

// TestBomb: a small body in JSON does not become hundreds of megabytes.
func TestBomb(t *testing.T) {
	b := start(t, Config{})
	for name, c := range map[string]struct {
		code int
		body string
	}{
		"members of groups": {34, `{"clientID":"x","consumerDataSet":[` + strings.Repeat("{},", 5<<20) + "{}]}"},
		"queues to lock":    {41, `{"consumerGroup":"g","clientId":"x","mqSet":[` + strings.Repeat("{},", 5<<20) + "{}]}"},
		"nested":            {41, `{"mqSet":` + strings.Repeat("[", 1<<19)},
	} {
		t.Run(name, func(t *testing.T) {
			before := totalMemory()
			conn := dialRaw(t, b, RocketMQ)
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			musttest.Get(conn.Write(remoting(t, c.code, 1, nil, c.body)))(t)
			answer := make([]byte, 1000)
			n := musttest.Get(conn.Read(answer))(t)
			require.Contains(t, string(answer[:n]), "cannot be read")
			require.Less(t, totalMemory()-before, uint64(100<<20), "beside the body, thrice as its buffer doubles")
		})
	}
}

// totalMemory is all that was ever allocated, in bytes.
func totalMemory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestManySections: a message of 200,000 data sections takes no longer than it should.
func TestManySections(t *testing.T) {
	b := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn := musttest.Get(amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), nil))(t)
	defer conn.Close()
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	sender := musttest.Get(session.NewSender(ctx, "A", nil))(t)
	m := &amqp.Message{Data: make([][]byte, 200_000)}
	for i := range m.Data {
		m.Data[i] = []byte{'x', 'y'}
	}
	require.NoError(t, sender.Send(ctx, m, nil))
	assert.EqualValues(t, 1, b.Store().Queue("A").Stats().Depth)
}

// TestComingAndGoing opens and closes a thousand connections, some in the middle of something, to a broker with a
// full queue: nothing of them stays.
func TestComingAndGoing(t *testing.T) {
	b := start(t, Config{Limits: store.Config{Limit: 1}})
	dialSTOMP(t, b).send("fills it")
	topic := dialRaw(t, b, RocketMQ)
	for i := range 3 {
		musttest.Get(topic.Write(sendRemoting(t, i, "T", "x")))(t)
	}
	hello := map[string]string{
		AMQP:     "AMQP\x00\x01\x00\x00",
		STOMP:    "CONNECT\naccept-version:1.2\n\n\x00SEND\ndestination:/queue/Q\nreceipt:1\n\nx\x00",
		RocketMQ: string(sendRemoting(t, 1, "T", "x")),
	}
	round := func(n int) {
		var wg sync.WaitGroup
		for _, protocol := range Protocols() {
			for range 4 {
				wg.Go(func() {
					for i := range n {
						conn, err := net.Dial("tcp", b.Addr(protocol))
						if !assert.NoError(t, err) {
							return
						}
						text := hello[protocol]
						_, _ = io.WriteString(conn, text[:len(text)-i%3])
						if i%5 == 0 { // half-open: the broker sees an end, and may say something
							_ = conn.(*net.TCPConn).CloseWrite()
							_ = conn.SetReadDeadline(time.Now().Add(patience))
							_, _ = io.Copy(io.Discard, conn)
						}
						_ = conn.(*net.TCPConn).SetLinger(i % 2 * -1)
						_ = conn.Close()
					}
				})
			}
		}
		wg.Wait()
		require.Eventually(t, func() bool { return open(b) <= 2 }, patience, time.Millisecond)
	}
	round(20)
	before, routines := memoryNow(), runtime.NumGoroutine()
	round(80)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+2 }, patience, time.Millisecond)
	if after := memoryNow(); after > before {
		assert.Less(t, after-before, uint64(6<<20), "960 connections left memory behind")
	}
}

// TestNobodyReads: clients that ask for much and never read cost no more than a few MiB each, and nobody else anything.
func TestNobodyReads(t *testing.T) {
	b := start(t, Config{})
	body := strings.Repeat("x", 1<<20)
	filler := dialSTOMP(t, b)
	for i := range 16 {
		filler.say("SEND\ndestination:/queue/Q\nreceipt:" + strconv.Itoa(i) + "\n\n" + body)
		require.Contains(t, filler.frame(), "RECEIPT")
	}
	before := memoryNow()
	for range 3 {
		deaf := dialRaw(t, b, STOMP)
		_, err := io.WriteString(deaf, "CONNECT\naccept-version:1.2\n\n\x00SUBSCRIBE\nid:1\ndestination:/queue/Q\nack:client\nprefetch-count:1000000\n\n\x00")
		require.NoError(t, err)
		asker := dialRaw(t, b, STOMP) // asks for receipts and does not read them
		require.NoError(t, asker.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
		_, _ = io.WriteString(asker, "CONNECT\naccept-version:1.2\n\n\x00")
		_, _ = io.WriteString(asker, strings.Repeat("SEND\ndestination:/topic/nobody\nreceipt:"+strings.Repeat("r", 1000)+"\n\nx\x00", 30_000))
		routes := dialRaw(t, b, RocketMQ) // asks the same question for ever
		require.NoError(t, routes.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
		question := remoting(t, 105, 1, map[string]string{"topic": strings.Repeat("t", 2000)}, "")
		_, _ = io.WriteString(routes, strings.Repeat(string(question), 15_000))
	}
	grown := int64(memoryNow()) - int64(before)
	assert.Less(t, grown, int64(36<<20), "9 connections of clients that do not read")
	require.NoError(t, filler.conn.SetDeadline(time.Now().Add(patience)))
	filler.send("others go on")
	b.DropConnections()
	gone(t, b)
	assert.EqualValues(t, 17, b.Store().Queue("Q").Stats().Depth, "what was not read is still there")
}

func memoryNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCloseWhileStalled closes the broker while connections of all protocols wait in a stall, with a full queue and a
// parked transaction besides.
func TestCloseWhileStalled(t *testing.T) {
	b := start(t, Config{Limits: store.Config{Limit: 2}})
	p := dialSTOMP(t, b)
	p.send("1")
	p.send("2")
	p.say("BEGIN\ntransaction:t\n\n")
	p.say("SEND\ndestination:/queue/Q\ntransaction:t\n\n3")
	p.say("COMMIT\ntransaction:t\nreceipt:t\n\n")
	b.Store().Stall(time.Hour)
	for i := range 3 {
		q := dialSTOMP(t, b)
		q.say("SUBSCRIBE\nid:1\ndestination:/queue/Q\nack:client\n\n")
		q.say("SEND\ndestination:/queue/other\n\nx")
		conn := dialRaw(t, b, RocketMQ)
		musttest.Get(conn.Write(sendRemoting(t, i, "T", "x")))(t)
	}
	closed := make(chan struct{})
	go func() { b.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		t.Fatalf("Close hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// TestDroppedWhileWaiting: connections that wait for room end when the broker breaks them.
func TestDroppedWhileWaiting(t *testing.T) {
	b := start(t, Config{Faults: store.Faults{Full: true}})
	ahead := dialSTOMP(t, b)
	ahead.say(strings.Repeat("SEND\ndestination:/queue/Q\n\nx\x00", 5000)) // more than are read on
	require.Eventually(t, func() bool { return b.Store().Queue("Q").Stats().Stored > 4000 }, patience, time.Millisecond)
	assert.Equal(t, 1, b.DropConnections())
	gone(t, b)
}
