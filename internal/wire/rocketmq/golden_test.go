package rocketmq_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// readGolden returns the golden bytes by name. RocketMQ 5.5.0's own classes made them: see testdata/Golden.java for
// which.
func readGolden(t testing.TB) map[string][]byte {
	t.Helper()
	text := musttest.Get(os.ReadFile("testdata/rocketmq.golden"))(t)
	list := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		list[name] = musttest.Get(hex.DecodeString(digits))(t)
	}
	return list
}

// fieldsOf returns the fields of a frame.
func fieldsOf(t testing.TB, f *wire.Frame) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for b := f.Fields; len(b) > 0; {
		key, value, rest := wire.CutField(b)
		fields[string(key)], b = string(value), rest
	}
	return fields
}

// TestGoldenFrames: RemotingCommand.encode, with RocketMQSerializable and RemotingSerializable.
func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	for name, want := range map[string]struct {
		code         int
		flag, opaque uint32
		remark, body string
		fields       [][2]string
	}{
		"send":    {code: wire.ReqSendMessageV2, opaque: 7, body: "body", fields: [][2]string{{"a", "group"}, {"b", "topic"}, {"i", "k\x01v\x02"}}},
		"one-way": {code: wire.ReqEndTransaction, flag: wire.FlagOneWay, opaque: 1<<32 - 3},
		"answer":  {code: wire.ResSuccess, flag: wire.FlagAnswer, opaque: 7, fields: [][2]string{{"offset", "12"}}},
		"refusal": {code: wire.ResTopicNotExist, flag: wire.FlagAnswer, opaque: 1 << 30, remark: "no \"topic\"\nü😀"},
	} {
		for _, codec := range []string{"json", "binary"} {
			b := golden["frame "+name+" "+codec]
			require.EqualValues(t, len(b)-wire.LengthSize, binary.BigEndian.Uint32(b), name)
			var f wire.Frame
			require.NoError(t, f.Parse(b[wire.LengthSize:]), name)
			assert.Equal(t, want.code, f.Code, name)
			assert.Equal(t, want.flag, f.Flag, name)
			assert.Equal(t, want.opaque, f.Opaque, name)
			assert.Equal(t, wire.Version, f.Version, name)
			assert.Equal(t, want.remark, string(f.Remark), name)
			assert.Equal(t, want.body, string(f.Body), name)
			fields := map[string]string{}
			w := wire.Writer{B: []byte("before")}
			w.Begin(want.code, want.flag, want.opaque, want.remark)
			for _, x := range want.fields {
				fields[x[0]] = x[1]
				w.Text(x[0], x[1])
			}
			w.End(len(want.body))
			w.B = append(w.B, want.body...)
			assert.Equal(t, fields, fieldsOf(t, &f), name)

			if codec == "binary" {
				assert.Equal(t, hex.EncodeToString(b), hex.EncodeToString(w.B[len("before"):]), name)
			}
		}
	}
}

// TestGoldenMessages: MessageDecoder.encode and, for the second magic, which only brokers write,
// MessageExtEncoder.encode.
func TestGoldenMessages(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	v4, v6 := []byte{127, 0, 0, 1, 0, 0, 0x10, 0xe1}, append([]byte{0x20, 1, 0xd, 0xb8, 15: 1}, 0, 0, 0x10, 0xe1)
	store4, store6 := []byte{10, 0, 0, 2, 0, 0, 0x2a, 0x9f}, append([]byte{0x20, 1, 0xd, 0xb8, 15: 2}, 0, 0, 0x2a, 0x9f)
	for name, change := range map[string]func(*wire.Message){
		"message v4":       func(*wire.Message) {},
		"message v6 born":  func(m *wire.Message) { m.BornHost, m.SysFlag = v6, wire.SysBornHostV6 },
		"message v6 store": func(m *wire.Message) { m.StoreHost, m.SysFlag = store6, wire.SysStoreHostV6 },
		"message v6 both": func(m *wire.Message) {
			m.BornHost, m.StoreHost, m.SysFlag = v6, store6, wire.SysBornHostV6|wire.SysStoreHostV6
		},
		"message half":       func(m *wire.Message) { m.SysFlag = wire.SysPrepared },
		"message compressed": func(m *wire.Message) { m.SysFlag = wire.SysCompressed | wire.SysCompressionZlib },
		"message long topic": func(m *wire.Message) {
			m.Topic, m.QueueOffset, m.LogOffset = []byte(strings.Repeat("0123456789", 13)), 0, 0
		},
	} {
		b := golden[name]
		want := wire.Message{MessageHead: wire.MessageHead{
			Queue: 3, Flag: 5, QueueOffset: 77, LogOffset: 4242, Born: 1_700_000_000_123, BornHost: v4,
			Stored: 1_700_000_000_456, StoreHost: store4, Retries: 2, Prepared: 99,
		}, Body: []byte("hello"), Topic: []byte("T"), Properties: []byte("color\x01red\x02"), Checksum: 0x3610a686}
		change(&want)
		var m wire.Message
		rest, err := m.Cut(append(b[:len(b):len(b)], "rest"...))
		require.NoError(t, err, name)
		assert.Equal(t, "rest", string(rest), name)
		if m.SysFlag&wire.SysCompressed != 0 {
			body := musttest.Get(new(wire.Inflater).Inflate(m.SysFlag, m.Body, 500))(t)
			assert.Equal(t, strings.Repeat("hello", 100), string(body))
			want.Body, want.Checksum = m.Body, m.Checksum
		}
		assert.Equal(t, want, m, name)

		if len(m.BornHost)+len(m.StoreHost) == 16 {
			ours := wire.AppendMessage([]byte("before"), &m.MessageHead, m.Body, m.Topic, m.Properties)
			assert.Equal(t, hex.EncodeToString(b), hex.EncodeToString(ours[len("before"):]), name)
			assert.Len(t, b, wire.SizeMessage(len(m.Body), len(m.Topic), len(m.Properties)), name)
		}
		for n := range b {
			_, err := new(wire.Message).Cut(b[:n])
			require.ErrorIs(t, err, wire.ErrMessage, "%s, %d bytes", name, n)
		}
	}
}

// TestGoldenBatch: MessageDecoder.encodeMessages.
func TestGoldenBatch(t *testing.T) {
	t.Parallel()
	b := readGolden(t)["batch"]
	var ours []byte
	for _, want := range []struct {
		flag             uint32
		body, properties string
	}{{5, "first", "color\x01red\x02"}, {0, "second", "color\x01blue\x02"}} {
		m, rest, ok := wire.CutBatched(b)
		require.True(t, ok)
		assert.Equal(t, want.flag, m.Flag)
		assert.Equal(t, want.body, string(m.Body))
		color := wire.Property(m.Properties, "color")
		assert.Equal(t, want.properties, string(wire.AppendProperty(nil, "color", color)))
		var at int
		ours, at = wire.BeginBatched(ours, m.Flag, m.Body)
		ours = append(ours, m.Properties...)
		wire.EndBatched(ours, at, len(m.Body))
		b = rest
	}
	require.Empty(t, b)
	require.Equal(t, hex.EncodeToString(readGolden(t)["batch"]), hex.EncodeToString(ours))
}

// TestGoldenTexts: MessageDecoder.messageProperties2String and createMessageId, AclUtils.calSignature, String.hashCode.
func TestGoldenTexts(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	properties := map[string]string{}
	for b := golden["properties"]; len(b) > 0; {
		var name, value []byte
		name, value, b = wire.CutProperty(b)
		properties[string(name)] = string(value)
	}
	require.Equal(t, map[string]string{"a": "1", "b": "", "c": "x y"}, properties)
	ours := wire.AppendProperty(wire.AppendProperty(wire.AppendIntProperty(nil, "a", 1), "b", ""), "c", "x y")
	require.Equal(t, string(golden["properties"]), string(ours))

	v4, v6 := []byte{10, 0, 0, 2, 0, 0, 0x2a, 0x9f}, append([]byte{0x20, 1, 0xd, 0xb8, 15: 2}, 0, 0, 0x2a, 0x9f)
	require.Equal(t, string(golden["id v4"]), string(wire.AppendMessageID(nil, v4, 4242)))
	require.Equal(t, string(golden["id v6"]), string(wire.AppendMessageID(nil, v6, 1<<40)))
	for name, want := range map[string]int64{"id v4": 4242, "id v6": 1 << 40} {
		offset, ok := wire.ParseMessageID(golden[name])
		require.True(t, ok)
		require.Equal(t, want, offset)
	}
	for _, id := range []string{"", "0A", strings.Repeat("0", 31), strings.Repeat("x", 32)} {
		_, ok := wire.ParseMessageID([]byte(id))
		require.False(t, ok, id)
	}

	s := wire.NewSigner("perfmq-admin", "perfmq-secret")
	b := s.Begin(wire.BeginFrame(nil, wire.ReqLockBatchMQ, 0, 1, ""))
	b = s.Sign(wire.AppendField(wire.AppendField(b, "a", "2"), "b", "1"), []byte("hello"))
	wire.EndFrame(b, len("hello"))
	var f wire.Frame
	require.NoError(t, f.Parse(append(b, "hello"...)[wire.LengthSize:]))
	require.Equal(t, string(golden["signature"]), string(f.Get(wire.FieldSignature)))
	require.True(t, s.Verify(&f))

	for tag, digits := range maps.All(golden) {
		if tag, ok := strings.CutPrefix(tag, "hash "); ok {
			require.Equal(t, int32(binary.BigEndian.Uint32(digits)), wire.HashCode([]byte(tag)), tag) //nolint:gosec // its bits
		}
	}
}

// TestConstants compares codes, flags and names with RocketMQ's own classes, see testdata/Golden.java.
func TestConstants(t *testing.T) {
	t.Parallel()
	golden := readGolden(t)
	for kind, list := range map[string]map[string]any{
		"request": {
			"SEND_MESSAGE": wire.ReqSendMessage, "PULL_MESSAGE": wire.ReqPullMessage, "QUERY_CONSUMER_OFFSET": wire.ReqQueryConsumerOffset,
			"UPDATE_CONSUMER_OFFSET": wire.ReqUpdateConsumerOffset, "UPDATE_AND_CREATE_TOPIC": wire.ReqUpdateAndCreateTopic,
			"GET_BROKER_CONFIG": wire.ReqGetBrokerConfig, "GET_BROKER_RUNTIME_INFO": wire.ReqGetBrokerRuntimeInfo,
			"GET_MAX_OFFSET": wire.ReqGetMaxOffset,
			"GET_MIN_OFFSET": wire.ReqGetMinOffset,
			"HEART_BEAT":     wire.ReqHeartBeat, "UNREGISTER_CLIENT": wire.ReqUnregisterClient,
			"CONSUMER_SEND_MSG_BACK": wire.ReqConsumerSendMsgBack, "END_TRANSACTION": wire.ReqEndTransaction,
			"GET_CONSUMER_LIST_BY_GROUP": wire.ReqGetConsumerListByGroup, "CHECK_TRANSACTION_STATE": wire.ReqCheckTransactionState,
			"NOTIFY_CONSUMER_IDS_CHANGED": wire.ReqNotifyConsumerIDsChanged, "LOCK_BATCH_MQ": wire.ReqLockBatchMQ,
			"UNLOCK_BATCH_MQ": wire.ReqUnlockBatchMQ, "CHECK_CLIENT_CONFIG": wire.ReqCheckClientConfig,
			"GET_ROUTEINFO_BY_TOPIC": wire.ReqGetRouteInfoByTopic, "GET_BROKER_CLUSTER_INFO": wire.ReqGetBrokerClusterInfo,
			"UPDATE_AND_CREATE_SUBSCRIPTIONGROUP": wire.ReqUpdateAndCreateSubscriptionGroup,
			"GET_TOPIC_STATS_INFO":                wire.ReqGetTopicStatsInfo, "DELETE_SUBSCRIPTIONGROUP": wire.ReqDeleteSubscriptionGroup, "GET_CONSUME_STATS": wire.ReqGetConsumeStats,
			"DELETE_TOPIC_IN_BROKER": wire.ReqDeleteTopicInBroker, "DELETE_TOPIC_IN_NAMESRV": wire.ReqDeleteTopicInNamesrv,
			"QUERY_TOPIC_CONSUME_BY_WHO": wire.ReqQueryTopicConsumeByWho, "SEND_MESSAGE_V2": wire.ReqSendMessageV2,
			"SEND_BATCH_MESSAGE": wire.ReqSendBatchMessage, "SEND_REPLY_MESSAGE": wire.ReqSendReplyMessage,
			"SEND_REPLY_MESSAGE_V2": wire.ReqSendReplyMessageV2, "PUSH_REPLY_MESSAGE_TO_CLIENT": wire.ReqPushReplyMessageToClient,
			"GET_SUBSCRIPTIONGROUP_CONFIG": wire.ReqGetSubscriptionGroupConfig,
		},
		"answer": {
			"SUCCESS": wire.ResSuccess, "SYSTEM_ERROR": wire.ResSystemError, "SYSTEM_BUSY": wire.ResSystemBusy,
			"REQUEST_CODE_NOT_SUPPORTED": wire.ResRequestCodeNotSupported, "FLUSH_DISK_TIMEOUT": wire.ResFlushDiskTimeout,
			"SLAVE_NOT_AVAILABLE": wire.ResSlaveNotAvailable, "FLUSH_SLAVE_TIMEOUT": wire.ResFlushSlaveTimeout,
			"MESSAGE_ILLEGAL": wire.ResMessageIllegal, "SERVICE_NOT_AVAILABLE": wire.ResServiceNotAvailable,
			"NO_PERMISSION": wire.ResNoPermission, "TOPIC_NOT_EXIST": wire.ResTopicNotExist, "PULL_NOT_FOUND": wire.ResPullNotFound,
			"PULL_RETRY_IMMEDIATELY": wire.ResPullRetryImmediately, "PULL_OFFSET_MOVED": wire.ResPullOffsetMoved,
			"QUERY_NOT_FOUND": wire.ResQueryNotFound, "SUBSCRIPTION_PARSE_FAILED": wire.ResSubscriptionParseFailed,
			"SUBSCRIPTION_NOT_EXIST": wire.ResSubscriptionNotExist, "SUBSCRIPTION_NOT_LATEST": wire.ResSubscriptionNotLatest,
			"SUBSCRIPTION_GROUP_NOT_EXIST": wire.ResSubscriptionGroupNotExist, "FLOW_CONTROL": wire.ResFlowControl, "GO_AWAY": wire.ResGoAway,
		},
		"sysflag": {
			"COMPRESSED_FLAG": wire.SysCompressed, "TRANSACTION_PREPARED_TYPE": wire.SysPrepared, "TRANSACTION_COMMIT_TYPE": wire.SysCommit,
			"TRANSACTION_ROLLBACK_TYPE": wire.SysRollback, "BORNHOST_V6_FLAG": wire.SysBornHostV6,
			"STOREHOSTADDRESS_V6_FLAG": wire.SysStoreHostV6, "COMPRESSION_ZLIB_TYPE": wire.SysCompressionZlib,
			"COMPRESSION_TYPE_COMPARATOR": wire.SysCompression,
		},
		"pull flag": {
			"FLAG_COMMIT_OFFSET": wire.PullCommitOffset, "FLAG_SUSPEND": wire.PullSuspend, "FLAG_SUBSCRIPTION": wire.PullSubscription,
		},
		"permission": {"PERM_READ": wire.PermRead, "PERM_WRITE": wire.PermWrite},
		"property": {
			"PROPERTY_TAGS": wire.PropTags, "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX": wire.PropUniqueKey,
			"PROPERTY_WAIT_STORE_MSG_OK": wire.PropWait, "PROPERTY_DELAY_TIME_LEVEL": wire.PropDelayLevel,
			"PROPERTY_TIMER_DELAY_MS":       wire.PropTimerDelayMs,
			"PROPERTY_TRANSACTION_PREPARED": wire.PropPrepared,
			"PROPERTY_PRODUCER_GROUP":       wire.PropProducerGroup, "PROPERTY_RETRY_TOPIC": wire.PropRetryTopic,
			"PROPERTY_ORIGIN_MESSAGE_ID": wire.PropOriginID, "PROPERTY_SHARDING_KEY": wire.PropShardingKey,
			"PROPERTY_CLUSTER": wire.PropCluster, "PROPERTY_CORRELATION_ID": wire.PropCorrelationID,
			"PROPERTY_MESSAGE_REPLY_TO_CLIENT": wire.PropReplyTo, "PROPERTY_MESSAGE_TTL": wire.PropReplyTTL,
			"PROPERTY_MESSAGE_TYPE": wire.PropMessageType, "PROPERTY_PUSH_REPLY_TIME": wire.PropPushReplyTime,
		},
	} {
		for name, ours := range list {
			require.Contains(t, golden, kind+" "+name)
			assert.Equal(t, string(golden[kind+" "+name]), fmt.Sprint(ours), name)
		}
	}
}
