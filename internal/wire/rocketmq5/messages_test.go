package rocketmq5

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// official returns what rocketmq-clients/golang/v5 v5.1.3 makes of the same messages (a line is a name and hexadecimal).
func official(tb testing.TB) map[string][]byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/official.txt")
	require.NoError(tb, err)
	all := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name], err = hex.DecodeString(digits)
		require.NoError(tb, err)
	}
	return all
}

func TestRequests(t *testing.T) {
	want := official(t)
	id, handle, other := []byte("M"), []byte("H"), []byte("N")
	head := AckHead("T", "G")
	receive := ReceiveRequest(&Settings{
		Kind: PushConsumer, Topic: "T", Group: "G", Filter: Filter{Expression: "*"}, Batch: 32,
	}, "b", 30*time.Second, 5*time.Second)
	for name, got := range map[string][]byte{
		// Official clients tell IP addresses from names.
		"route":     bytes.Replace(RouteRequest("T", "127.0.0.1", 8081), []byte{8, 3}, []byte{8, 1}, 1),
		"heartbeat": HeartbeatRequest("G", SimpleConsumer),
		"producer":  SettingsCommand(&Settings{Kind: Producer, Topic: "T", Timeout: 1500 * time.Millisecond, Version: "1"}),
		"consumer": SettingsCommand(&Settings{
			Kind: PushConsumer, Topic: "T", Group: "G", Filter: Filter{Expression: "a > 1", SQL: true}, Batch: 32,
			Timeout: 3 * time.Second, Version: "1",
		}),
		"end":       EndRequest("T", id, []byte("X"), true, true),
		"ack":       AppendAck(AppendAck(head, id, handle), other, []byte("I")),
		"invisible": InvisibleRequest(head, id, handle, time.Second),
		"dead":      DeadLetterRequest(head, id, handle, 3),
		"receive":   receive,
	} {
		require.Contains(t, want, name)
		assert.Equal(t, want[name], got, "%s: %x", name, got)
	}
}

func TestSend(t *testing.T) {
	m := append([]byte(nil), OutgoingTopic("T")...)
	m = AppendUser(m, "a", "b")
	m, at := BeginSystem(m, AppendSystem(nil, "tag", "h", FIFO), []byte("id"), 1700000000123456)
	m = AppendGroup(AppendDelivery(m, 1700000001000000), "g")
	m = append(AppendBody(EndSystem(m, at), 5), "hello"...)
	got := append(AppendRequestHead(nil, len(m)), m...)

	length, ok := ParsePrefix(got)
	require.True(t, ok)
	require.Len(t, got, PrefixSize+int(length))
	want := official(t)["send"]
	var parts [2][]byte
	for i, request := range [][]byte{got[PrefixSize:], want} {
		f, rest, err := cut(request)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, bytesOf(1), f.tag)
		parts[i] = f.bytes
	}
	read := func(b []byte) (m Message, all map[uint64][]string) {
		require.NoError(t, m.Read(b))
		all = map[uint64][]string{}
		require.NoError(t, each(b, func(f field) error {
			if f.tag != bytesOf(3) {
				all[f.tag] = append(all[f.tag], string(f.bytes))
				return nil
			}
			return each(f.bytes, func(f field) error {
				all[1000+f.tag] = append(all[1000+f.tag], string(f.bytes), time.UnixMicro(int64(f.n)).String())
				return nil
			})
		}))
		return m, all
	}
	m1, all1 := read(parts[0])
	m2, all2 := read(parts[1])
	assert.Equal(t, m2, m1)
	assert.Equal(t, all2, all1, "all fields, in any order")
	assert.Equal(t, int64(1700000000123456), m1.Born)
}

func TestReplies(t *testing.T) {
	answers := official(t)
	var r Reply
	require.NoError(t, r.Read(SendMessage, answers["reply-send"]))
	assert.Equal(t, OK, r.Status.Code)
	assert.Equal(t, OK, r.Entry.Code)
	assert.Equal(t, "M X", string(r.MessageID)+" "+string(r.TransactionID))
	require.NoError(t, r.Read(AckMessage, answers["reply-ack"]))
	assert.Equal(t, 1, r.Unacked)
	assert.Equal(t, Status{InvalidHandle, []byte("gone")}, r.Entry)
	require.NoError(t, r.Read(QueryRoute, answers["reply-route"]))
	assert.Equal(t, []Queue{{"b", true, true}}, r.Queues)
}

func TestReceived(t *testing.T) {
	answers := official(t)
	var r Received
	require.NoError(t, r.Read(answers["received-message"]))
	check := func(m Message) {
		assert.Equal(t, Message{
			Body: []byte("hello"), ID: []byte("id"), Handle: []byte("H"), Born: 1700000000123456,
			Stored: 1700000001000000, Attempt: 2,
			Properties: []Property{{[]byte("a"), []byte("b")}, {[]byte("time"), []byte("1")}},
		}, m)
	}
	check(r.Message)
	require.NoError(t, r.Read(answers["received-status"]))
	assert.Equal(t, MessageNotFound, r.Status.Code)

	var c Command
	require.NoError(t, c.Read(answers["command-settings"]))
	assert.True(t, c.Settings && c.FIFO && c.Status.Code == OK)
	require.NoError(t, c.Read(answers["command-orphan"]))
	assert.True(t, c.Orphan)
	assert.Equal(t, "X", string(c.TransactionID))
	check(c.Message)
	require.NoError(t, c.Read(answers["command-reconnect"]))
	assert.True(t, c.Reconnect)
}

// TestHostile reads messages that lie about their lengths.
func TestHostile(t *testing.T) {
	for name, b := range map[string][]byte{
		"no number":      {0x80},
		"number 0":       {0x00, 0x00},
		"past the end":   {0x0a, 0x05, 'x'},
		"length of 2^63": {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"endless varint": {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"open group":     {0x0b, 0x08, 0x01},
	} {
		t.Run(name, func(t *testing.T) {
			inner := append([]byte{0x12, byte(len(b))}, b...)
			var r Received
			require.ErrorIs(t, r.Read(b), ErrMessage)
			require.ErrorIs(t, r.Read(inner), ErrMessage)
			var reply Reply
			require.ErrorIs(t, reply.Read(QueryRoute, inner), ErrMessage)
			var c Command
			require.ErrorIs(t, c.Read(append([]byte{0x2a, byte(len(inner))}, inner...)), nil, "the transaction's id is not read")
			require.ErrorIs(t, c.Read(b), ErrMessage)
		})
	}
	var many []byte
	for range MaxQueues + 1 {
		many = append(many, 0x12, 0)
	}
	var reply Reply
	require.ErrorIs(t, reply.Read(QueryRoute, many), ErrMessage, "too many queues")
	require.ErrorIs(t, new(Message).Read(many), ErrMessage, "too many properties")
}

func TestAllocations(t *testing.T) {
	received := official(t)["received-message"]
	var r Received
	own, topic, id, b := AppendSystem(nil, "tag", "h", Normal), OutgoingTopic("T"), []byte("id"), make([]byte, 0, 4096)
	ack := AckHead("T", "G")
	ack = append(make([]byte, 0, 4096), ack...)
	reply := official(t)["reply-send"]
	var answer Reply
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = r.Read(received)
		_ = answer.Read(SendMessage, reply)
		m, at := BeginSystem(AppendUser(append(b, topic...), "time", id), own, id, 1700000000123456)
		_ = AppendRequestHead(AppendBody(EndSystem(m, at), 5), len(m))
		_ = AppendAck(ack, id, id)
	}))
}

func FuzzMessages(f *testing.F) {
	for _, b := range official(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Received
		var c Command
		var reply Reply
		_ = r.Read(b)
		_ = c.Read(b)
		for _, call := range []string{SendMessage, AckMessage, QueryRoute, Heartbeat} {
			_ = reply.Read(call, b)
			require.LessOrEqual(t, len(reply.Queues), MaxQueues)
		}
		require.LessOrEqual(t, len(r.Message.Properties), MaxProperties)
		require.LessOrEqual(t, len(r.Message.Body), len(b))
	})
}
