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
	topic, group := ResourceOf("T"), ResourceOf("G")
	id, handle := []byte("M"), []byte("H")
	expression := FilterExpression{FilterTypeSql, []byte("a > 1")}
	agent := UA{LanguageGolang, []byte("1")}
	for name, m := range map[string]message{
		"route":     &QueryRouteRequest{topic, Endpoints{AddressSchemeIpv4, []Address{{[]byte("127.0.0.1"), 8081}}}},
		"heartbeat": &HeartbeatRequest{group, ClientTypeSimpleConsumer},
		"producer": &TelemetryCommand{Command: TelemetryCommandSettings, Settings: Settings{
			ClientType: ClientTypeProducer, BackoffPolicy: RetryPolicy{1}, RequestTimeout: DurationOf(1500 * time.Millisecond),
			PubSub: SettingsPublishing, Publishing: Publishing{[]Resource{topic}, true}, UserAgent: agent,
		}},
		"consumer": &TelemetryCommand{Command: TelemetryCommandSettings, Settings: Settings{
			ClientType: ClientTypePushConsumer, BackoffPolicy: RetryPolicy{1}, RequestTimeout: DurationOf(3 * time.Second),
			PubSub: SettingsSubscription, Subscription: Subscription{
				group, []SubscriptionEntry{{topic, expression}}, false, 32, DurationOf(3 * time.Second),
			}, UserAgent: agent,
		}},
		"end": &EndTransactionRequest{
			topic, id, []byte("X"), TransactionResolutionRollback, TransactionSourceSourceServerCheck,
		},
		"ack":       &AckMessageRequest{group, topic, []AckMessageEntry{{id, handle}, {[]byte("N"), []byte("I")}}},
		"invisible": &ChangeInvisibleDurationRequest{group, topic, handle, DurationOf(time.Second), id},
		"dead":      &ForwardMessageToDeadLetterQueueRequest{group, topic, handle, id, 3, 3},
		"receive": &ReceiveMessageRequest{
			group,
			MessageQueue{Topic: topic, ID: -1, Broker: Broker{[]byte("b")}},
			FilterExpression{FilterTypeTag, []byte("*")},
			32, DurationOf(30 * time.Second), true, DurationOf(5 * time.Second),
		},
	} {
		require.Contains(t, want, name)
		got := m.Append(nil)
		assert.Equal(t, want[name], got, "%s: %x", name, got)
	}
	ack := (&AckMessageRequest{Group: group, Topic: topic}).Append(nil)
	ack = AppendAck(AppendAck(ack, &AckMessageEntry{id, handle}), &AckMessageEntry{[]byte("N"), []byte("I")})
	assert.Equal(t, want["ack"], ack)
}

// sent is a message as producers send it.
func sent() Message {
	return Message{
		Topic: ResourceOf("T"), UserProperties: []UserPropertiesEntry{{[]byte("a"), []byte("b")}},
		SystemProperties: SystemProperties{
			Tag: []byte("tag"), MessageID: []byte("id"), BodyEncoding: EncodingIdentity, MessageType: MessageTypeFifo,
			BornTimestamp: TimeOf(1700000000123456), BornHost: []byte("h"), DeliveryTimestamp: TimeOf(1700000001000000),
			MessageGroup: []byte("g"),
		},
	}
}

func TestSend(t *testing.T) {
	m := sent()
	b := AppendBodyHead(m.Append(nil), 5)
	got := append(AppendSendHead(nil, b, 5), append(b, "hello"...)...)
	length, ok := ParsePrefix(got)
	require.True(t, ok)
	require.Len(t, got, PrefixSize+int(length))
	assert.Equal(t, official(t)["send"], got[PrefixSize:])
}

// TestLong has lengths of one to three bytes.
func TestLong(t *testing.T) {
	for _, n := range []int{0, 1, 100, 127, 128, 200, 1 << 14, 1 << 16} {
		m := sent()
		m.UserProperties = append(m.UserProperties, UserPropertiesEntry{[]byte("b"), bytes.Repeat([]byte("x"), n)})
		m.SystemProperties.MessageGroup = bytes.Repeat([]byte("g"), n+1)
		var got Message
		require.NoError(t, Read(m.Append(nil), &got))
		if n == 0 {
			got.UserProperties[1].Value = []byte{}
		}
		assert.Equal(t, m, got)
	}
}

func TestReplies(t *testing.T) {
	answers := official(t)
	var send SendMessageResponse
	require.NoError(t, Read(answers["reply-send"], &send))
	assert.Equal(t, CodeOk, send.Status.Code)
	require.Len(t, send.Entries, 1)
	assert.Equal(t, CodeOk, send.Entries[0].Status.Code)
	assert.Equal(t, "M X", string(send.Entries[0].MessageID)+" "+string(send.Entries[0].TransactionID))
	var ack AckMessageResponse
	require.NoError(t, Read(answers["reply-ack"], &ack))
	require.Len(t, ack.Entries, 2)
	assert.Equal(t, CodeOk, ack.Entries[0].Status.Code)
	assert.Equal(t, Status{CodeInvalidReceiptHandle, []byte("gone")}, ack.Entries[1].Status)
	var route QueryRouteResponse
	require.NoError(t, Read(answers["reply-route"], &route))
	require.Len(t, route.MessageQueues, 1)
	assert.Equal(t, "b", string(route.MessageQueues[0].Broker.Name))
	assert.Equal(t, PermissionReadWrite, route.MessageQueues[0].Permission)
}

func TestReceived(t *testing.T) {
	answers := official(t)
	var r ReceiveMessageResponse
	require.NoError(t, Read(answers["received-message"], &r))
	require.Equal(t, ReceiveMessageResponseMessage, r.Content)
	check := func(m *Message) {
		own := &m.SystemProperties
		assert.Equal(t, "hello id H", string(m.Body)+" "+string(own.MessageID)+" "+string(own.ReceiptHandle))
		assert.Equal(t, []int64{1700000000123456, 1700000001000000}, []int64{own.BornTimestamp.Micros(), own.StoreTimestamp.Micros()})
		assert.Equal(t, int32(2), own.DeliveryAttempt)
		assert.Equal(t, []UserPropertiesEntry{{[]byte("a"), []byte("b")}, {[]byte("time"), []byte("1")}}, m.UserProperties)
	}
	check(&r.Message)
	require.NoError(t, Read(answers["received-status"], &r))
	assert.Equal(t, CodeMessageNotFound, r.Status.Code)
	assert.Equal(t, ReceiveMessageResponseStatus, r.Content)

	var c TelemetryCommand
	require.NoError(t, Read(answers["command-settings"], &c))
	assert.True(t, c.Command == TelemetryCommandSettings && c.Settings.Subscription.Fifo && c.Status.Code == CodeOk)
	require.NoError(t, Read(answers["command-orphan"], &c))
	assert.Equal(t, TelemetryCommandRecoverOrphanedTransactionCommand, c.Command)
	assert.Equal(t, "X", string(c.RecoverOrphanedTransactionCommand.TransactionID))
	check(&c.RecoverOrphanedTransactionCommand.Message)
	require.NoError(t, Read(answers["command-reconnect"], &c))
	assert.Equal(t, TelemetryCommandReconnectEndpointsCommand, c.Command)
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
			for _, m := range []message{
				&ReceiveMessageResponse{}, &QueryRouteResponse{}, &SendMessageResponse{}, &AckMessageResponse{}, &TelemetryCommand{},
			} {
				require.ErrorIs(t, Read(b, m), ErrMessage)
				require.ErrorIs(t, Read(inner, m), ErrMessage)
			}
		})
	}
	var many []byte
	for range MaxRepeated + 1 {
		many = append(many, 0x12, 0)
	}
	require.ErrorIs(t, Read(many, &QueryRouteResponse{}), ErrMessage, "too many queues")
	require.ErrorIs(t, Read(many, &Message{}), ErrMessage, "too many properties")
}

func TestAllocations(t *testing.T) {
	received, reply := official(t)["received-message"], official(t)["reply-send"]
	var r ReceiveMessageResponse
	var answer SendMessageResponse
	b, m, entry := make([]byte, 0, 4096), sent(), AckMessageEntry{[]byte("id"), []byte("id")}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = Read(received, &r)
		_ = Read(reply, &answer)
		_ = AppendSendHead(AppendBodyHead(m.Append(b), 5), b, 5)
		_ = AppendAck(b, &entry)
	}))
}

func BenchmarkSend(b *testing.B) {
	m, buffer, head := sent(), []byte(nil), []byte(nil)
	for b.Loop() {
		m.SystemProperties.BornTimestamp = TimeOf(1700000000123456)
		buffer = AppendBodyHead(m.Append(buffer[:0]), 1024)
		head = AppendSendHead(head[:0], buffer, 1024)
	}
}

func BenchmarkReceive(b *testing.B) {
	received := official(b)["received-message"]
	var r ReceiveMessageResponse
	for b.Loop() {
		_ = Read(received, &r)
	}
}

func FuzzMessages(f *testing.F) {
	for _, b := range official(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r ReceiveMessageResponse
		var route QueryRouteResponse
		for _, m := range []message{&r, &route, &SendMessageResponse{}, &AckMessageResponse{}, &TelemetryCommand{}} {
			if Read(b, m) == nil {
				require.NoError(t, Read(m.Append(nil), m), "as we write it")
			}
		}
		require.LessOrEqual(t, len(route.MessageQueues), MaxRepeated)
		require.LessOrEqual(t, len(r.Message.UserProperties), MaxRepeated)
		require.LessOrEqual(t, len(r.Message.Body), len(b))
	})
}
