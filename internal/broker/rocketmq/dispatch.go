package rocketmq

import (
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// dispatch handles a request. An error ends the connection.
func (c *conn) dispatch(r *wire.Frame) error {
	if c.s.o.Secret != nil && !c.signed(r) {
		c.s.badAccesses.Add(1)
		c.w.simple(r, wire.ResNoPermission, "AclException: Check signature failed for accessKey="+string(r.Get("AccessKey")))
		return nil
	}
	switch r.Code {
	case wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqSendMessage:
		return c.send(r)
	case wire.ReqPullMessage, wire.ReqLitePullMessage:
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
	case wire.ReqSearchOffsetByTimestamp:
		return c.searchOffset(r)
	default:
		return c.administer(r)
	}
}

// signed tells whether a request is signed with the secret of its access key.
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

// refuse answers that it cannot be done. The connection lives on.
func (c *conn) refuse(r *wire.Frame, code int, remark string) error {
	c.w.simple(r, code, remark)
	return nil
}

// administer handles requests of tools and of name server clients.
func (c *conn) administer(r *wire.Frame) error {
	switch r.Code {
	case wire.ReqGetRouteInfoByTopic:
		return c.route(r)
	case wire.ReqGetBrokerClusterInfo:
		return c.clusterInfo(r)
	case wire.ReqGetAllTopicListFromNameServer:
		return c.listTopics(r)
	case wire.ReqUpdateAndCreateTopic:
		return c.createTopic(r)
	case wire.ReqDeleteTopicInBroker:
		c.s.deleteTopic(string(r.Get("topic")))
		c.w.simple(r, wire.ResSuccess, "")
		return nil
	case wire.ReqDeleteTopicInNamesrv: // we are both: the broker has done it, or will
		c.w.simple(r, wire.ResSuccess, "")
		return nil
	case wire.ReqUpdateAndCreateSubscriptionGroup:
		return c.createGroup(r)
	case wire.ReqGetAllSubscriptionGroupConfig:
		return c.listGroups(r)
	case wire.ReqDeleteSubscriptionGroup:
		c.s.deleteGroup(string(r.Get("groupName")))
		c.w.simple(r, wire.ResSuccess, "")
		return nil
	case wire.ReqGetConsumeStats:
		return c.consumeStats(r)
	case wire.ReqQueryTopicConsumeByWho:
		return c.topicGroups(r)
	case wire.ReqGetBrokerConfig:
		return c.config(r)
	case wire.ReqGetBrokerRuntimeInfo:
		return c.runtimeInfo(r)
	default:
		c.w.simple(r, wire.ResRequestCodeNotSupported, " request type "+strconv.Itoa(r.Code)+" not supported")
		return nil
	}
}
