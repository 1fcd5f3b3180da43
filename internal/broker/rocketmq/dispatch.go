package rocketmq

import (
	"encoding/json"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// dispatch handles a request. An error ends the connection.
func (c *conn) dispatch(r *wire.Frame) error { //nolint:gocyclo // a flat switch over requests
	if c.s.o.Secret != nil && !c.signed(r) {
		return c.refuse(r, wire.ResNoPermission,
			"AclException: Check signature failed for accessKey="+string(r.Get("AccessKey")))
	}
	switch r.Code {
	case wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqSendMessage:
		return c.send(r)
	case wire.ReqPullMessage:
		return c.pull(r)
	case wire.ReqHeartBeat:
		return c.heartbeat(r)
	case wire.ReqUnregisterClient:
		return c.unregister(r)
	case wire.ReqConsumerSendMsgBack:
		return c.sendBack(r)
	case wire.ReqEndTransaction:
		return c.endTransaction(r)
	case wire.ReqGetConsumerListByGroup:
		return c.consumerList(r)
	case wire.ReqLockBatchMQ:
		return c.lockQueues(r, true)
	case wire.ReqUnlockBatchMQ:
		return c.lockQueues(r, false)
	case wire.ReqCheckClientConfig:
		return c.checkClient(r)
	case wire.ReqQueryConsumerOffset:
		return c.queryOffset(r)
	case wire.ReqUpdateConsumerOffset:
		return c.updateOffset(r)
	case wire.ReqGetMaxOffset:
		return c.limitOffset(r, true)
	case wire.ReqGetMinOffset:
		return c.limitOffset(r, false)
	// Requests to the name server, and administration.
	case wire.ReqGetRouteInfoByTopic:
		return c.route(r)
	case wire.ReqGetBrokerClusterInfo:
		return c.clusterInfo(r)
	case wire.ReqUpdateAndCreateTopic:
		return c.createTopic(r)
	case wire.ReqDeleteTopicInBroker:
		c.s.deleteTopic(string(r.Get("topic")))
		return c.ok(r)
	case wire.ReqDeleteTopicInNamesrv: // no effect: DELETE_TOPIC_IN_BROKER deletes it
		return c.ok(r)
	case wire.ReqUpdateAndCreateSubscriptionGroup:
		return c.createGroup(r)
	case wire.ReqGetAllSubscriptionGroupConfig:
		return c.listGroups(r)
	case wire.ReqDeleteSubscriptionGroup:
		c.s.deleteGroup(string(r.Get("groupName")))
		return c.ok(r)
	case wire.ReqGetConsumeStats:
		return c.consumeStats(r)
	case wire.ReqQueryTopicConsumeByWho:
		return c.topicGroups(r)
	case wire.ReqGetBrokerConfig:
		return c.brokerConfig(r)
	case wire.ReqGetBrokerRuntimeInfo:
		return c.runtimeInfo(r)
	default:
		return c.refuse(r, wire.ResRequestCodeNotSupported, " request type "+strconv.Itoa(r.Code)+" not supported")
	}
}

// signed checks the signature of a request.
func (c *conn) signed(r *wire.Frame) bool {
	key := r.Get(wire.FieldAccessKey)
	if c.signer == nil || string(key) != c.signerKey {
		secret, ok := c.s.o.Secret(string(key))
		if !ok {
			return false
		}
		c.signerKey = string(key)
		c.signer = wire.NewSigner(c.signerKey, secret)
	}
	return c.signer.Verify(r)
}

// begin begins an answer to r, without fields.
func (c *conn) begin(r *wire.Frame, code int, remark string) {
	c.w.Begin(code, wire.FlagAnswer, r.Opaque, remark)
}

// refuse answers with a code and a remark. The connection stays open.
func (c *conn) refuse(r *wire.Frame, code int, remark string) error {
	c.begin(r, code, remark)
	c.w.End(0)
	return nil
}

// ok answers with success.
func (c *conn) ok(r *wire.Frame) error { return c.refuse(r, wire.ResSuccess, "") }

func (c *conn) number(r *wire.Frame, key string, n int64) error {
	c.begin(r, wire.ResSuccess, "")
	c.w.Int(key, n)
	c.w.End(0)
	return nil
}

func (c *conn) body(r *wire.Frame, body []byte) error {
	c.begin(r, wire.ResSuccess, "")
	c.w.End(len(body))
	c.w.B = append(c.w.B, body...)
	return nil
}

func (c *conn) json(r *wire.Frame, v any) error {
	b, _ := json.Marshal(v) // no value of ours fails
	return c.body(r, b)
}
