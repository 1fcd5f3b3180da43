//go:build unix

package rocketmq_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// client is a raw connection.
type client struct {
	t    testing.TB
	conn net.Conn
}

func dial(t testing.TB, b *testBroker) *client {
	t.Helper()
	conn := musttest.Get(net.Dial("tcp", b.addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn}
}

// post sends a request and does not wait for its answer.
func (c *client) post(code int, flag uint32, body []byte, fields ...string) {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetDeadline(time.Now().Add(2*patience)))
	musttest.Get(c.conn.Write(request(code, flag, body, fields...)))(c.t)
}

// answer returns the code and the body of the next frame.
func (c *client) answer() (code int, body []byte) {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(2*patience)))
	frame := musttest.Get(readFrame(c.conn, make([]byte, 4<<20)))(c.t)
	return int(binary.BigEndian.Uint16(frame[4:])), frame[4+binary.BigEndian.Uint32(frame)&0xffffff:]
}

// silent checks that nothing comes for a while.
func (c *client) silent() {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.conn.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(c.t, err, &timeout)
}

func sendFields(topic string, more ...string) []string {
	return append([]string{"a", "p", "b", topic, "c", "TBW102", "d", "1", "e", "0", "f", "0", "g", "1", "h", "0", "j", "0"}, more...)
}

func (c *client) send(topic, body string, more ...string) int {
	c.t.Helper()
	c.post(310, 0, []byte(body), sendFields(topic, more...)...)
	code, _ := c.answer()
	return code
}

func pullFields(topic string, offset, wait int, more ...string) []string {
	return append([]string{
		"consumerGroup", "g", "topic", topic, "queueId", "0", "queueOffset", strconv.Itoa(offset), "maxMsgNums", "1000",
		"sysFlag", "6", "suspendTimeoutMillis", strconv.Itoa(wait), "subscription", "*", "expressionType", "TAG",
	}, more...)
}

// holdFor is the hold of a pull that a message must answer, in milliseconds.
const holdFor = 60_000

// bodies cuts stored messages.
func bodies(b []byte) (list []string) {
	for ; len(b) > 0; b = b[binary.BigEndian.Uint32(b):] {
		const at = 84 // of the body's length
		n := int(binary.BigEndian.Uint32(b[at:]))
		list = append(list, string(b[at+4:at+4+n]))
	}
	return list
}

func (c *client) pull(topic string, offset int) []string {
	c.t.Helper()
	c.post(11, 0, nil, pullFields(topic, offset, holdFor)...)
	code, body := c.answer()
	require.Zero(c.t, code)
	return bodies(body)
}

func TestLongPolls(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	createTopic(t, b, "T", 1)
	consumer, producer := dial(t, b), dial(t, b)
	begin := time.Now()
	consumer.post(11, 0, nil, pullFields("T", 0, 300)...)
	code, _ := consumer.answer()
	require.Equal(t, 19, code)
	require.GreaterOrEqual(t, time.Since(begin), 290*time.Millisecond)
	consumer.post(11, 0, nil, pullFields("T", 0, holdFor)...)
	require.Eventually(t, func() bool { return b.Stats().HeldPulls == 1 }, patience, time.Millisecond)
	require.Zero(t, producer.send("T", "x"))
	code, body := consumer.answer()
	require.Zero(t, code)
	require.Equal(t, []string{"x"}, bodies(body))
	require.Eventually(t, func() bool { return b.Stats().HeldPulls == 0 }, patience, time.Millisecond)
	// An offset beyond the queue is corrected, and filtered messages are skipped.
	for offset, want := range map[int]int{1: 19, 7: 21} {
		consumer.post(11, 0, nil, pullFields("T", offset, 0)...)
		code, _ = consumer.answer()
		require.Equal(t, want, code)
	}
	consumer.post(11, 0, nil, append(pullFields("T", 0, 1000), "subscription", "A")...)
	code, _ = consumer.answer()
	require.Zero(t, code, "the first of two fields of one name holds")
	consumer.post(11, 0, nil, "consumerGroup", "g", "topic", "T", "queueId", "0", "queueOffset", "0", "sysFlag", "6", "suspendTimeoutMillis", "1000",
		"subscription", "A", "expressionType", "TAG")
	code, _ = consumer.answer()
	require.Equal(t, 20, code)
	// A connection that ends takes its pulls along.
	consumer.post(11, 0, nil, pullFields("T", 1, holdFor)...)
	require.Eventually(t, func() bool { return b.Stats().HeldPulls == 1 }, patience, time.Millisecond)
	require.NoError(t, consumer.conn.Close())
	require.Eventually(t, func() bool { return b.Stats().HeldPulls == 0 }, patience, time.Millisecond)
}

func TestAnswersWaitForRoom(t *testing.T) {
	b := start(t, store.Config{Limit: 16}, rocketmq.Options{Queues: 1})
	createTopic(t, b, "T", 1)
	consumer, producer, oneWay := dial(t, b), dial(t, b), dial(t, b)
	commit := func(offset string) {
		consumer.post(15, 0, nil, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", offset)
		code, _ := consumer.answer()
		require.Zero(t, code)
	}
	commit("0")
	for i := range 15 {
		require.Zero(t, producer.send("T", strconv.Itoa(i)))
	}
	producer.post(310, 0, []byte("15"), sendFields("T")...)
	producer.post(310, 0, []byte("16"), sendFields("T")...)
	sent := func(n uint64) {
		t.Helper()
		require.Eventually(t, func() bool { return b.store.Stats()[0].Sent == n }, patience, time.Millisecond)
	}
	sent(17)
	producer.silent()
	for range 3 {
		oneWay.post(310, 2, []byte("x"), sendFields("T")...)
	}
	sent(18) // one that gets no answer is stored, what follows is not read
	require.Len(t, consumer.pull("T", 0), 18)
	commit("10")
	for range 2 {
		code, _ := producer.answer()
		require.Zero(t, code)
	}
	sent(20)
}

func TestCrossing(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1, MaxMessage: 1 << 20})
	c := dial(t, b)
	woken := make(chan struct{}, 100)
	other := musttest.Get(b.store.Subscribe("T", store.Subscription{}, func() { woken <- struct{}{} }))(t)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write([]byte("plain text"))
	require.NoError(t, z.Close())
	c.post(310, 0, packed.Bytes(), "b", "T", "e", "0", "f", "1", "g", "5", "i", "time\x0112\x02UNIQ_KEY\x01id\x02TAGS\x01red\x02WAIT\x01true\x02")
	code, _ := c.answer()
	require.Zero(t, code)
	got := make([]store.Delivery, 1)
	require.Eventually(t, func() bool { return other.Take(got) == 1 }, patience, time.Millisecond)
	content := got[0].Message.Content
	require.Equal(t, "plain text", string(content.Body()))
	require.Equal(t, []store.Property{{Key: "time", Value: "12"}, {Key: "TAGS", Value: "red"}}, content.Properties())
	require.Equal(t, "PLAIN TEXT", string(content.WithBody([]byte("PLAIN TEXT")).Body()))

	b.store.Destination(driver.Destination{Kind: driver.Topic, Name: "T"}).Send(&store.Message{Content: content.WithBody([]byte("again"))})
	require.Equal(t, []string{packed.String(), "again"}, c.pull("T", 0))

	// A topic that others use has a route.
	b.store.Destination(driver.Destination{Kind: driver.Topic, Name: "U"})
	answer, _ := call(t, b.addr, 105, nil, "topic", "U")
	require.Zero(t, answer)
	answer, _ = call(t, b.addr, 105, nil, "topic", "V")
	require.EqualValues(t, 17, answer)
}

func TestGivingBackAndDeadLetters(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	c := dial(t, b)
	require.Zero(t, c.send("T", "x", "i", "KEYS\x01k\x02"))
	topic, offset := "T", int64(0)
	back := func(level string) {
		// The offset in the log is in the stored message.
		c.post(11, 0, nil, pullFields(topic, 0, holdFor)...)
		code, body := c.answer()
		require.Zero(t, code)
		offset = int64(binary.BigEndian.Uint64(body[28:]))
		c.post(36, 0, nil, "group", "g", "originTopic", topic, "offset", strconv.FormatInt(offset, 10), "delayLevel", level, "maxReconsumeTimes", "1")
		code, _ = c.answer()
		require.Zero(t, code)
	}
	begin := time.Now()
	back("1")
	topic = "%RETRY%g"
	c.post(11, 0, nil, pullFields(topic, 0, holdFor)...)
	code, body := c.answer()
	require.Zero(t, code)
	require.GreaterOrEqual(t, time.Since(begin), time.Second, "level 1")
	require.EqualValues(t, 1, binary.BigEndian.Uint32(body[72:]), "given back once")
	require.Contains(t, string(body), "RETRY_TOPIC\x01T\x02")
	back("1")
	topic = "%DLQ%g"
	require.Equal(t, []string{"x"}, c.pull(topic, 0))
	s := b.Stats()
	require.EqualValues(t, 2, s.GivenBack)
	require.EqualValues(t, 1, s.Dead)
	code16, _ := call(t, b.addr, 36, nil, "group", "g", "offset", "123456789")
	require.EqualValues(t, 1, code16)
}

func TestMalformedFramesEndTheirConnectionOnly(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	good := dial(t, b)
	require.Zero(t, good.send("T", "x"))
	for _, frame := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"\x00\x00\x00\x02xx",
		"\x7f\xff\xff\xff\x00\x00\x00\x00",
		"\x00\x00\x00\x08\x07\x00\x00\x04abcd",
		"\x00\x00\x00\x08\x00\x00\x00\x04{\"a\"",
		"\x00\x00\x00\x08\x01\x00\x00\x09abcd",
	} {
		bad := dial(t, b)
		musttest.Get(bad.conn.Write([]byte(frame)))(t)
		require.NoError(t, bad.conn.SetReadDeadline(time.Now().Add(patience)))
		_, err := bad.conn.Read(make([]byte, 1))
		require.Error(t, err)
		var timeout net.Error
		require.False(t, errorAsTimeout(err, &timeout), "%q: the connection lives", frame)
	}
	require.Zero(t, good.send("T", "x"))
	code, _ := call(t, b.addr, 400, nil)
	require.EqualValues(t, 3, code)
	code, _ = call(t, b.addr, 310, make([]byte, 4<<20+1), "b", "T", "e", "0")
	require.EqualValues(t, 13, code)
	code, _ = call(t, b.addr, 310, nil, "b", "no/topic", "e", "0")
	require.EqualValues(t, 17, code)
	code, _ = call(t, b.addr, 310, nil, "b", "T", "e", "99")
	require.EqualValues(t, 1, code)
	code, _ = call(t, b.addr, 320, []byte("no batch"), "b", "T", "e", "0")
	require.EqualValues(t, 13, code)
}

func errorAsTimeout(err error, target *net.Error) bool {
	if ne, ok := err.(net.Error); ok { //nolint:errorlint // as it comes from the connection
		*target = ne
		return ne.Timeout()
	}
	return false
}
