package rocketmq

import (
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// sendHeader is SendMessageRequestHeader.
type sendHeader struct {
	topic, properties                  []byte
	queues, queue, sysFlag, born, flag int64
	batch                              bool
}

// header reads the fields of SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE, named by single letters, or of SEND_MESSAGE.
func (h *sendHeader) header(r *wire.Frame) {
	*h = sendHeader{queue: -1, batch: r.Code == wire.ReqSendBatchMessage}
	for b := r.Fields; len(b) > 0; {
		var key, value []byte
		switch key, value, b = wire.CutField(b); string(key) {
		case "b", "topic":
			h.topic = value
		case "d", "defaultTopicQueueNums":
			h.queues, _ = wire.ParseInt(value)
		case "e", "queueId":
			h.queue, _ = wire.ParseInt(value)
		case "f", "sysFlag":
			h.sysFlag, _ = wire.ParseInt(value)
		case "g", "bornTimestamp":
			h.born, _ = wire.ParseInt(value)
		case "h", "flag":
			h.flag, _ = wire.ParseInt(value)
		case "i", "properties":
			h.properties = value
		case "m", "batch":
			h.batch = h.batch || string(value) == "true"
		}
	}
}

// applyProperties sets the message's group and delay from its properties, and names the cluster to responders. half
// means a half message.
func (m *message) applyProperties() (half bool) {
	request := false
	for rest := m.properties; len(rest) > 0; {
		var name, value []byte
		switch name, value, rest = wire.CutProperty(rest); string(name) {
		case wire.PropPrepared:
			half = string(value) == "true"
		case wire.PropReplyTo:
			request = true
		case wire.PropShardingKey:
			m.Group = string(value)
		case wire.PropDelayLevel:
			if n, ok := wire.ParseInt(value); ok && n > 0 {
				m.NotBefore = time.Now().Add(delayOf(n)).UnixNano()
			}
		case wire.PropTimerDelayMs:
			const longest = 366 * 24 * time.Hour
			if n, ok := wire.ParseInt(value); ok && n > 0 {
				m.NotBefore = time.Now().Add(time.Duration(min(n, longest.Milliseconds())) * time.Millisecond).UnixNano()
			}
		}
	}
	if len(m.properties)+len(wire.PropCluster)+len(clusterName)+2 <= wire.MaxProperties && request {
		m.properties = withProperties(m.properties, wire.PropCluster, clusterName)
	}
	return half
}

// send handles SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE.
func (c *conn) send(r *wire.Frame) error {
	var h sendHeader
	h.header(r)
	if c.tooLong(r, &h) {
		return c.refuseLength(r)
	}
	t := c.topic
	if t == nil || t.gone.Load() || t.name != string(h.topic) {
		if t = c.topicOf(&h); t == nil {
			return c.refuseTopic(r, h.topic)
		}
		c.topic = t
	}
	if h.queue >= int64(len(*t.queues.Load())) {
		return c.refuse(r, wire.ResSystemError,
			"request queueId["+strconv.FormatInt(h.queue, 10)+"] is illegal, topic:["+t.name+"]")
	}
	if h.queue < 0 {
		h.queue = int64(t.nextQueue())
	}
	if h.batch {
		return c.sendBatch(r, t, &h)
	}
	m, half := c.message(t, &h, r.Body, h.properties)
	if half {
		return c.sendHalf(r, t, m)
	}
	return c.answerSend(r, t, m, t.dest.Send(&m.Message))
}

// tooLong reports whether a message exceeds a limit.
func (c *conn) tooLong(r *wire.Frame, h *sendHeader) bool {
	return len(r.Body) > c.s.o.MaxMessage || len(h.properties) > wire.MaxProperties
}

func (c *conn) refuseLength(r *wire.Frame) error {
	return c.refuse(r, wire.ResMessageIllegal,
		"the message is illegal, maybe msg body or properties length not matched. msg body length limit "+
			strconv.Itoa(c.s.o.MaxMessage)+"B, msg properties length limit 32KB.")
}

// topicOf finds or creates the topic of a message.
func (c *conn) topicOf(h *sendHeader) *topic {
	name := string(h.topic)
	if name == wire.DefaultTopic {
		return nil
	}
	queues := c.s.o.Queues
	if h.queues > 0 {
		queues = int(min(h.queues, int64(queues)))
	}
	return c.s.makeTopic(name, queues)
}

// message makes a message of a send request; body and properties are copied. half is as in applyProperties.
func (c *conn) message(t *topic, h *sendHeader, body, properties []byte) (m *message, half bool) {
	all := make([]byte, len(body)+len(properties))
	n := copy(all, body)
	copy(all[n:], properties)
	m = &message{
		topic: t.name, queue: int(h.queue), flag: uint32(h.flag), sysFlag: uint32(h.sysFlag), born: h.born, bornHost: c.born,
		body: all[:n:n], properties: all[n:], limit: c.s.o.MaxMessage,
	}
	// The messages of a connection are ordered within each queue.
	m.Source = 1<<63 | c.source<<queueBits | uint64(h.queue)
	return m.complete(), m.applyProperties()
}

// busy returns the remark of a SYSTEM_BUSY answer.
func busy(t *topic) string { return "[PC_SYNCHRONIZED]broker busy: " + t.dest.WhyFull() }

// answerSend answers a send; m is its first message. The answer may be withheld: forever by the fault, or until there
// is room.
func (c *conn) answerSend(r *wire.Frame, t *topic, m *message, v store.Verdict) error {
	oneWay := r.Flag&wire.FlagOneWay != 0
	switch v {
	case store.Withheld:
		return nil
	case store.Full:
		if !oneWay {
			return c.refuse(r, wire.ResSystemBusy, busy(t))
		}
		return nil
	}
	start := len(c.w.B)
	if !oneWay {
		offset := m.place.Load() - 1
		if offset < 0 { // delayed or lost: the next offset
			_, offset = t.queue(int64(m.queue)).limits()
		}
		c.stored(r, m.queue, offset, logOffset(t.id, m.queue, offset), nil)
	}
	if t.dest.Room() || c.s.store.Rejects() {
		return nil
	}
	if oneWay {
		return c.awaitRoom(t.dest)
	}
	c.gate.Withhold(t.dest, c.w.B[start:], len(c.w.B)-start)
	c.w.B = c.w.B[:start]
	if c.gate.Shut() {
		return c.awaitRoom(t.dest)
	}
	return nil
}

// messageID is the length of a message ID, in bytes.
const messageID = 32

// stored appends the answer to a stored message.
func (c *conn) stored(r *wire.Frame, queue int, offset, log int64, unique []byte) {
	w := &c.w
	c.begin(r, wire.ResSuccess, "")
	var id [messageID]byte
	w.Text("msgId", string(wire.AppendMessageID(id[:0], c.host[:], log)))
	w.Int("queueId", int64(queue))
	w.Int("queueOffset", offset)
	if len(unique) > 0 {
		w.Text("transactionId", string(unique))
	}
	w.End(0)
}

// sendBatch handles a batch: its messages are sent one by one, so that faults count messages. One withheld message
// withholds the answer; a full topic ends the batch.
func (c *conn) sendBatch(r *wire.Frame, t *topic, h *sendHeader) error {
	var parts []wire.Batched
	for b := r.Body; len(b) > 0; {
		part, rest, ok := wire.CutBatched(b)
		if !ok {
			parts = nil // a malformed batch is not stored in part
			break
		}
		parts, b = append(parts, part), rest
	}
	if len(parts) == 0 {
		return c.refuse(r, wire.ResMessageIllegal, "the batch is empty or cannot be read")
	}
	var first *message
	verdict := store.Stored
	for i, part := range parts {
		h.flag = int64(part.Flag)
		m, _ := c.message(t, h, part.Body, part.Properties)
		if first == nil {
			first = m
		}
		v := t.dest.Send(&m.Message)
		if v == store.Full {
			verdict = v
			t.dest.CountRefused(len(parts) - i - 1) // the rest, not sent
			break
		}
		if v == store.Withheld {
			verdict = v
		}
		if err := c.s.store.AwaitStall(c.done, c.flush); err != nil {
			return err
		}
	}
	return c.answerSend(r, t, first, verdict)
}

// defaultMaxTries is the number of retries before a message goes to the dead-letter topic (retryMaxTimes).
const defaultMaxTries = 16

// sendBack handles CONSUMER_SEND_MSG_BACK (AbstractSendMessageProcessor): it stores a delayed copy in the group's retry
// topic, without faults.
func (c *conn) sendBack(r *wire.Frame) error {
	name := string(r.Get("group"))
	g := c.s.makeGroup(name)
	original := c.s.messageAt(r.NumberOr("offset", -1))
	if g == nil || original == nil {
		return c.refuse(r, wire.ResSystemError, "look message by offset failed, "+string(r.Get("offset")))
	}
	m := original.clone()
	c.s.count(func(n *Stats) { n.GivenBack++ })
	level, target := r.NumberOr("delayLevel", 0), wire.RetryPrefix+name
	if level < 0 || int64(m.retries) >= r.NumberOr("maxReconsumeTimes", defaultMaxTries) {
		target, level = wire.DeadPrefix+name, -1
		c.s.count(func(n *Stats) { n.Dead++ })
	} else if level == 0 {
		level = 3 + int64(m.retries)
	}
	t := c.s.makeTopic(target, 1)
	if t == nil {
		return c.refuse(r, wire.ResSystemError, "topic["+target+"] not exist")
	}
	m.retries++
	m.queue = 0
	pairs := []string{wire.PropDelayLevel, ""}
	if wire.Property(m.properties, wire.PropRetryTopic) == nil {
		pairs = append(pairs, wire.PropRetryTopic, m.topic)
	}
	if id := r.Get("originMsgId"); len(id) > 0 && wire.Property(m.properties, wire.PropOriginID) == nil {
		pairs = append(pairs, wire.PropOriginID, string(id))
	}
	m.properties = withProperties(m.properties, pairs...)
	if len(m.properties) > wire.MaxProperties {
		return c.refuse(r, wire.ResMessageIllegal, "the properties are too long")
	}
	notBefore := int64(0)
	if level > 0 {
		notBefore = time.Now().Add(delayOf(level)).UnixNano()
	}
	t.put(m, notBefore)
	return c.ok(r)
}
