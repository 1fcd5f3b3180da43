//go:build unix

package rocketmq_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/brokertest"
	ours "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/interoptest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// frame returns the next frame.
func (c *client) frame() (f wire.Frame) {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(2*patience)))
	frame := musttest.Get(readFrame(c.conn, make([]byte, 4<<20)))(c.t)
	require.NoError(c.t, f.Parse(frame))
	return f
}

// requester is a client that has sent a heartbeat with a producer.
func requester(t *testing.T, b *testBroker, id string) *client {
	t.Helper()
	c := dial(t, b)
	c.post(wire.ReqHeartBeat, 0, musttest.Get(json.Marshal(wire.Heartbeat{
		ClientID: id, Producers: []wire.ProducerData{{Group: "g"}}, Consumers: []wire.ConsumerData{},
	}))(t))
	f := c.frame()
	require.Equal(t, wire.ResSuccess, f.Code)
	return c
}

func properties(pairs ...string) string {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = wire.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return string(b)
}

// replyFields are those of SEND_REPLY_MESSAGE_V2.
func replyFields(client string) []string {
	return sendFields("DefaultCluster_REPLY_TOPIC", "i", properties(
		wire.PropMessageType, wire.ReplyType, wire.PropCorrelationID, "c-1", wire.PropReplyTo, client))
}

// TestReply: a request names the cluster to its responder, and the reply is pushed to the client.
func TestReply(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{})
	requests := musttest.Get(b.store.Subscribe("S", store.Subscription{}, func() {}))(t)
	asking, responder := requester(t, b, "client-1"), dial(t, b)
	asking.post(wire.ReqSendMessageV2, 0, []byte("ping"), sendFields("S", "i", properties(
		wire.PropCorrelationID, "c-1", wire.PropReplyTo, "client-1", wire.PropReplyTTL, "1000"))...)
	f := asking.frame()
	require.Equal(t, wire.ResSuccess, f.Code)
	var got [2]store.Delivery
	require.Equal(t, 1, requests.Take(got[:]))
	require.Equal(t, "c-1@client-1", got[0].Message.Content.Addressing().CorrelationID)
	require.Empty(t, got[0].Message.Content.Properties())

	responder.post(wire.ReqGetRouteInfoByTopic, 0, nil, "topic", "DefaultCluster_REPLY_TOPIC")
	f = responder.frame()
	require.Equal(t, wire.ResSuccess, f.Code)
	used, _ := b.store.Memory()
	for i, code := range []int{wire.ReqSendReplyMessageV2, wire.ReqSendReplyMessage} {
		fields := replyFields("client-1")
		if code == wire.ReqSendReplyMessage {
			fields = []string{"topic", "DefaultCluster_REPLY_TOPIC", "queueId", "0", "sysFlag", "0", "bornTimestamp", "9", "flag", "0", "properties", fields[len(fields)-1]}
		}
		responder.post(code, 0, []byte("pong"), fields...)
		f = responder.frame()
		require.Equal(t, wire.ResSuccess, f.Code, "%s", f.Remark)
		require.Equal(t, "0", string(f.Get("msgId")))
		push := asking.frame()
		require.Equal(t, wire.ReqPushReplyMessageToClient, push.Code)
		require.Equal(t, "pong", string(push.Body))
		require.Equal(t, "c-1", string(wire.Property(push.Get("properties"), wire.PropCorrelationID)))
		require.NotEmpty(t, wire.Property(push.Get("properties"), wire.PropPushReplyTime))
		require.Contains(t, string(push.Get("bornHost")), "127.0.0.1:")
		musttest.Get(asking.conn.Write(request(0, wire.FlagAnswer, nil)))(t)
		require.EqualValues(t, i+1, b.Stats().Replies)
	}
	require.EqualValues(t, 2, sent(b, "DefaultCluster_REPLY_TOPIC"))

	// Another protocol answers the request.
	d := b.store.Destination(driver.Destination{Kind: driver.Topic, Name: "DefaultCluster_REPLY_TOPIC"})
	d.Send(&store.Message{Content: storetest.Content{Data: "pong", Address: store.Addressing{CorrelationID: "c-1@client-1"}}, Priority: 4})
	push := asking.frame()
	require.Equal(t, "c-1", string(wire.Property(push.Get("properties"), wire.PropCorrelationID)))
	now, _ := b.store.Memory()
	require.Equal(t, used, now, "nothing is kept")
}

// TestReplyWithoutRequester: the responder is told, as by RocketMQ.
func TestReplyWithoutRequester(t *testing.T) {
	b := start(t, store.Config{Reject: true}, rocketmq.Options{MaxMessage: 100})
	asking, responder := requester(t, b, "client-1"), dial(t, b)
	refused := func(code int, words string, body int, fields ...string) {
		t.Helper()
		responder.post(wire.ReqSendReplyMessageV2, 0, make([]byte, body), fields...)
		f := responder.frame()
		require.Equal(t, code, f.Code)
		require.Contains(t, string(f.Remark), words)
	}
	refused(wire.ResSystemError, "channel of <client-2> not found", 1, replyFields("client-2")...)
	refused(wire.ResSystemError, "channel of <> not found", 1, sendFields("DefaultCluster_REPLY_TOPIC")...)
	refused(wire.ResMessageIllegal, "limit 100B", 101, replyFields("client-1")...)
	b.store.SetFaults(store.Faults{Full: true})
	refused(wire.ResSystemBusy, "is full", 1, replyFields("client-1")...)
	b.store.SetFaults(store.Faults{LoseEvery: 1})
	refused(wire.ResSuccess, "", 1, replyFields("client-1")...)
	b.store.SetFaults(store.Faults{DuplicateEvery: 1})
	refused(wire.ResSuccess, "", 1, replyFields("client-1")...)
	for range 2 {
		f := asking.frame()
		require.Equal(t, wire.ReqPushReplyMessageToClient, f.Code)
	}
	b.store.SetFaults(store.Faults{Delay: time.Hour}) // its requester has gone when it is due
	refused(wire.ResSuccess, "", 1, replyFields("client-1")...)
	b.store.SetFaults(store.Faults{})
	asking.silent()
	require.NoError(t, asking.conn.Close())
	require.Eventually(t, func() bool {
		responder.post(wire.ReqSendReplyMessageV2, 0, []byte("x"), replyFields("client-1")...)
		f := responder.frame()
		return f.Code == wire.ResSystemError
	}, patience, time.Millisecond)
}

// TestReplyToAnotherProtocol: the address of a requester of another protocol is in place of the client.
func TestReplyToAnotherProtocol(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{})
	replies := musttest.Get(b.store.Temporary())(t)
	c := musttest.Get(b.store.ConsumeQueue(replies.Address().Name, nil, func() {}))(t)
	responder := dial(t, b)
	responder.post(wire.ReqSendReplyMessageV2, 0, []byte("pong"), replyFields(replies.Address().Name)...)
	f := responder.frame()
	require.Equal(t, wire.ResSuccess, f.Code)
	var got [1]store.Delivery
	require.Equal(t, 1, c.Take(got[:]))
	require.Equal(t, store.Addressing{CorrelationID: "c-1"}, got[0].Message.Content.Addressing())
}

// TestTwoClientsOfOneID: the last heartbeat counts.
func TestTwoClientsOfOneID(t *testing.T) {
	b := start(t, store.Config{}, rocketmq.Options{})
	first, second, responder := requester(t, b, "same"), requester(t, b, "same"), dial(t, b)
	reply := func(to *client) {
		t.Helper()
		responder.post(wire.ReqSendReplyMessageV2, wire.FlagOneWay, []byte("x"), replyFields("same")...)
		f := to.frame()
		require.Equal(t, wire.ReqPushReplyMessageToClient, f.Code)
	}
	reply(second)
	first.post(wire.ReqHeartBeat, 0, []byte(`{"clientID":"same","producerDataSet":[{"groupName":"g"}]}`))
	first.frame()
	reply(first)
	require.NoError(t, second.conn.Close())
	reply(first)
}

// TestJavaReplies has RocketMQ's own client ask and answer.
func TestJavaReplies(t *testing.T) {
	brokertest.Needs(t, "Java")
	b, source, dir := start(t, store.Config{}, rocketmq.Options{}), interoptest.Source(t, "Rocket.java"), t.TempDir()
	interoptest.Run(t, ours.Factory(), driver.OpenOptions{URL: b.url()}, func(ctx context.Context, role, queue string) *exec.Cmd {
		return musttest.Get(brokertest.RocketMQCommand(ctx, dir, b.addr, source, b.addr, role, queue, strconv.Itoa(interoptest.Requests)))(t)
	})
}
