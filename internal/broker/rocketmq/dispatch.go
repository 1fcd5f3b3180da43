package rocketmq

import "strconv"

// dispatch handles a request. An error ends the connection.
func (c *conn) dispatch(r *request) error {
	if c.s.o.Secret != nil && !c.signed(r) {
		c.s.badAccesses.Add(1)
		c.w.simple(r, codeNoPermission, "AclException: Check signature failed for accessKey="+string(r.get("AccessKey")))
		return nil
	}
	switch r.code {
	case reqSendV2, reqSendBatch, reqSend:
		return c.send(r)
	case reqPull, reqLitePull:
		return c.pull(r)
	case reqHeartbeat:
		return c.heartbeat(r)
	case reqUnregister:
		return c.unregister(r)
	case reqSendBack:
		return c.sendBack(r)
	case reqEndTransaction:
		return c.endTransaction(r)
	case reqConsumerList:
		return c.consumerList(r)
	case reqLockQueues:
		return c.lockQueues(r, true)
	case reqUnlockQueues:
		return c.lockQueues(r, false)
	case reqCheckClient:
		return c.checkClient(r)
	case reqQueryOffset:
		return c.queryOffset(r)
	case reqUpdateOffset:
		return c.updateOffset(r)
	case reqMaxOffset:
		return c.limitOffset(r, true)
	case reqMinOffset:
		return c.limitOffset(r, false)
	case reqSearchOffset:
		return c.searchOffset(r)
	case reqEarliestTime:
		return c.earliestTime(r)
	case reqViewMessage:
		return c.viewMessage(r)
	default:
		return c.administer(r)
	}
}

// refuse answers that it cannot be done. The connection lives on.
func (c *conn) refuse(r *request, code int, remark string) error {
	c.w.simple(r, code, remark)
	return nil
}

// administer handles what tools and name server clients ask.
func (c *conn) administer(r *request) error {
	switch r.code {
	case reqRoute:
		return c.route(r)
	case reqClusterInfo:
		return c.clusterInfo(r)
	case reqListTopics:
		return c.listTopics(r)
	case reqCreateTopic:
		return c.createTopic(r)
	case reqDeleteInBroker:
		c.s.deleteTopic(string(r.get("topic")))
		c.w.simple(r, codeSuccess, "")
		return nil
	case reqDeleteInNamesrv: // we are both: the broker has done it, or will
		c.w.simple(r, codeSuccess, "")
		return nil
	case reqCreateGroup:
		return c.createGroup(r)
	case reqListGroups:
		return c.listGroups(r)
	case reqDeleteGroup:
		c.s.deleteGroup(string(r.get("groupName")))
		c.w.simple(r, codeSuccess, "")
		return nil
	case reqTopicStats:
		return c.topicStats(r)
	case reqConsumeStats:
		return c.consumeStats(r)
	case reqTopicGroups:
		return c.topicGroups(r)
	case reqRuntimeInfo:
		return c.runtimeInfo(r)
	default:
		c.w.simple(r, codeNotSupported, " request type "+strconv.Itoa(r.code)+" not supported")
		return nil
	}
}
