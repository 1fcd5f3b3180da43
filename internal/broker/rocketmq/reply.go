package rocketmq

import (
	"net"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// replyTopic is the topic for replies. They are not stored in it, but pushed to the requesters; a message of another
// protocol, too.
const replyTopic = clusterName + wire.ReplySuffix

// replyMark stands between correlation ID and client in the correlation ID that other protocols see: their responders
// return nothing else.
const replyMark = "@"

// Addressing implements [store.Content]. The replies of other protocols to a request go to the topic for replies.
func (m *message) Addressing() store.Addressing {
	text := func(name string) string { return string(wire.Property(m.properties, name)) }
	a := store.Addressing{MessageID: text(wire.PropUniqueKey), CorrelationID: text(wire.PropCorrelationID)}
	if client := text(wire.PropReplyTo); client != "" && text(wire.PropMessageType) != wire.ReplyType {
		a.ReplyTo = driver.Destination{Kind: driver.Topic, Name: replyTopic}.String()
		a.CorrelationID += replyMark + client
	}
	return a
}

// appendAddressing appends the properties of a message of another protocol to topic; add appends one. An address for
// replies stands in place of a client ID, see conn.reply.
func appendAddressing(a store.Addressing, topic string, add func(name, value string)) {
	id, client := a.CorrelationID, a.ReplyTo
	if topic == replyTopic {
		id, client, _ = strings.Cut(id, replyMark)
		add(wire.PropMessageType, wire.ReplyType)
	} else if id == "" {
		id = a.MessageID
	}
	for _, p := range [][2]string{
		{wire.PropUniqueKey, a.MessageID}, {wire.PropCorrelationID, id}, {wire.PropReplyTo, client},
	} {
		if p[1] != "" {
			add(p[0], p[1])
		}
	}
	if client != "" {
		add(wire.PropCluster, clusterName)
	}
}

// reply handles SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2 (ReplyMessageProcessor).
func (c *conn) reply(r *wire.Frame) error {
	var h sendHeader
	h.header(r)
	if c.tooLong(r, &h) {
		return c.refuseLength(r)
	}
	client := string(wire.Property(h.properties, wire.PropReplyTo))
	t := c.s.makeTopic(replyTopic, 1)
	if t == nil {
		return c.refuseTopic(r, []byte(replyTopic))
	}
	to := t.dest
	if c.s.client(client) == nil { // the address of another protocol, or none
		if to = c.s.store.Find(c.s.store.Resolve(client)); to == nil || client == "" {
			return c.refuse(r, wire.ResSystemError, "push reply message fail, channel of <"+client+"> not found.")
		}
	}
	h.queue = 0
	m, _ := c.message(t, &h, r.Body, h.properties)
	switch to.Send(&m.Message) {
	case store.Withheld:
		return nil
	case store.Full:
		return c.refuse(r, wire.ResSystemBusy, busy(t))
	}
	c.begin(r, wire.ResSuccess, "")
	c.w.Text("msgId", "0")
	c.w.Int("queueId", 0)
	c.w.Int("queueOffset", 0)
	c.w.End(0)
	return nil
}

// client returns the connection with the last heartbeat of a client with producers, or nil.
func (s *Server) client(id string) *conn {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clients[id]
}

// setClient records the client of the connection; empty for none.
func (c *conn) setClient(id string) {
	if len(id) > maxClientID {
		return
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[c.clientID] == c {
		delete(s.clients, c.clientID)
	}
	if c.clientID = id; id != "" {
		s.clients[id] = c
	}
}

// pushReply sends a reply to its requester (PUSH_REPLY_MESSAGE_TO_CLIENT). Without the requester it is dropped.
func (s *Server) pushReply(m *message, at int64) {
	c := s.client(string(wire.Property(m.properties, wire.PropReplyTo)))
	sent := false
	if c != nil {
		properties := withProperties(m.properties, wire.PropPushReplyTime, strconv.FormatInt(at, 10))
		sent = c.push(func(w *wire.Writer) {
			w.Begin(wire.ReqPushReplyMessageToClient, 0, 0, "")
			w.Text("producerGroup", brokerName)
			w.Text("topic", replyTopic)
			w.Text("defaultTopic", wire.DefaultTopic)
			w.Int("defaultTopicQueueNums", 1)
			w.Int("queueId", 0)
			w.Int("sysFlag", int64(m.sysFlag))
			w.Int("bornTimestamp", m.born)
			w.Int("flag", int64(m.flag))
			w.Text("properties", string(properties))
			w.Int("reconsumeTimes", 0)
			w.Text("unitMode", "false")
			w.Text("bornHost", hostText(m.bornHost))
			w.Text("storeHost", c.addr)
			w.Int("storeTimestamp", at)
			w.End(len(m.body))
			w.B = append(w.B, m.body...)
		})
	}
	s.count(func(n *Stats) {
		if sent {
			n.Replies++
		} else {
			n.DroppedReplies++
		}
	})
}

// hostText reverses hostOf.
func hostText(h [8]byte) string {
	port := int(h[6])<<8 | int(h[7])
	return net.JoinHostPort(net.IP(h[:4]).String(), strconv.Itoa(port))
}
