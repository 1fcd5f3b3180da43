package rocketmq

import (
	"encoding/json"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// handlers answer requests; an error ends the connection. The second part is of a name server, and administration.
//
//nolint:gochecknoglobals // a table that never changes
var handlers = map[int]func(*conn, *wire.Frame) error{
	wire.ReqSendMessage:            (*conn).send,
	wire.ReqSendMessageV2:          (*conn).send,
	wire.ReqSendBatchMessage:       (*conn).send,
	wire.ReqPullMessage:            (*conn).pull,
	wire.ReqHeartBeat:              (*conn).heartbeat,
	wire.ReqUnregisterClient:       (*conn).unregister,
	wire.ReqConsumerSendMsgBack:    (*conn).sendBack,
	wire.ReqEndTransaction:         (*conn).endTransaction,
	wire.ReqGetConsumerListByGroup: (*conn).consumerList,
	wire.ReqLockBatchMQ:            (*conn).lockQueues,
	wire.ReqUnlockBatchMQ:          (*conn).lockQueues,
	wire.ReqCheckClientConfig:      (*conn).checkClient,
	wire.ReqQueryConsumerOffset:    (*conn).queryOffset,
	wire.ReqUpdateConsumerOffset:   (*conn).updateOffset,
	wire.ReqGetMaxOffset:           (*conn).limitOffset,
	wire.ReqGetMinOffset:           (*conn).limitOffset,

	wire.ReqGetRouteInfoByTopic:              (*conn).route,
	wire.ReqGetBrokerClusterInfo:             (*conn).clusterInfo,
	wire.ReqUpdateAndCreateTopic:             (*conn).createTopic,
	wire.ReqDeleteTopicInBroker:              (*conn).deleteTopic,
	wire.ReqDeleteTopicInNamesrv:             (*conn).ok, // DELETE_TOPIC_IN_BROKER deletes it
	wire.ReqUpdateAndCreateSubscriptionGroup: (*conn).createGroup,
	wire.ReqGetAllSubscriptionGroupConfig:    (*conn).listGroups,
	wire.ReqDeleteSubscriptionGroup:          (*conn).deleteGroup,
	wire.ReqGetConsumeStats:                  (*conn).consumeStats,
	wire.ReqQueryTopicConsumeByWho:           (*conn).topicGroups,
	wire.ReqGetBrokerConfig:                  (*conn).brokerConfig,
	wire.ReqGetBrokerRuntimeInfo:             (*conn).runtimeInfo,
}

// dispatch handles a request. An error ends the connection.
func (c *conn) dispatch(r *wire.Frame) error {
	o := &c.s.o
	if c.signer != nil && (string(r.Get(wire.FieldAccessKey)) != o.AccessKey || !c.signer.Verify(r)) {
		return c.refuse(r, wire.ResNoPermission,
			"AclException: Check signature failed for accessKey="+string(r.Get(wire.FieldAccessKey)))
	}
	if handle := handlers[r.Code]; handle != nil {
		return handle(c, r)
	}
	return c.refuse(r, wire.ResRequestCodeNotSupported, " request type "+strconv.Itoa(r.Code)+" not supported")
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

// readJSON reads the body of a request, or answers the request and returns false.
func (c *conn) readJSON(r *wire.Frame, v any) bool {
	err := wire.UnmarshalJSON(r.Body, v)
	if err != nil {
		_ = c.refuse(r, wire.ResSystemError, "the body cannot be read: "+err.Error())
	}
	return err == nil
}

func (c *conn) refuseTopic(r *wire.Frame, name []byte) error {
	return c.refuse(r, wire.ResTopicNotExist, "topic["+string(name)+"] not exist, apply first please!")
}

// refuseGroup answers that a group's name is illegal, or that there are too many groups.
func (c *conn) refuseGroup(r *wire.Frame, name string) error {
	return c.refuse(r, wire.ResSystemError, "the consumer group cannot be created: "+name)
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
