package rocketmq

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// sendHeader is SendMessageRequestHeader.
type sendHeader struct {
	topic, properties                         []byte
	queues, queue, sysFlag, born, flag, tries int64
	maxTries                                  int64
	batch                                     bool
}

// header reads the fields of SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE, whose names are single letters, or of SEND_MESSAGE.
func (h *sendHeader) header(r *request) {
	*h = sendHeader{queue: -1, maxTries: defaultMaxTries, batch: r.code == reqSendBatch}
	for i := range r.fields {
		key, value := r.fields[i].key, r.fields[i].value
		switch string(key) {
		case "b", "topic":
			h.topic = value
		case "d", "defaultTopicQueueNums":
			h.queues, _ = parseInt(value)
		case "e", "queueId":
			h.queue, _ = parseInt(value)
		case "f", "sysFlag":
			h.sysFlag, _ = parseInt(value)
		case "g", "bornTimestamp":
			h.born, _ = parseInt(value)
		case "h", "flag":
			h.flag, _ = parseInt(value)
		case "i", "properties":
			h.properties = value
		case "j", "reconsumeTimes":
			h.tries, _ = parseInt(value)
		case "l", "maxReconsumeTimes":
			if n, ok := parseInt(value); ok {
				h.maxTries = n
			}
		case "m", "batch":
			h.batch = h.batch || string(value) == "true"
		}
	}
}

// own are the properties by which a message asks something of the broker.
type own struct {
	half      bool
	notBefore int64 // nanoseconds since the Unix epoch
	group     []byte
	unique    []byte
}

func ownProperties(properties []byte) (o own) {
	eachProperty(properties, func(name, value []byte) {
		switch string(name) {
		case propHalf:
			o.half = string(value) == "true"
		case propSharding:
			o.group = value
		case propUnique:
			o.unique = value
		case propDelayLevel:
			if n, ok := parseInt(value); ok && n > 0 {
				o.notBefore = time.Now().Add(delayOf(n)).UnixNano()
			}
		case propTimerMillis, propTimerSecs:
			unit := time.Millisecond
			if string(name) == propTimerSecs {
				unit = time.Second
			}
			const longest = 366 * 24 * time.Hour
			if n, ok := parseInt(value); ok && n > 0 {
				o.notBefore = time.Now().Add(time.Duration(min(n, int64(longest/unit))) * unit).UnixNano()
			}
		case propTimerAt:
			if n, ok := parseInt(value); ok && n > 0 && n < 1<<62/int64(time.Millisecond) {
				o.notBefore = n * int64(time.Millisecond)
			}
		}
	})
	return o
}

// send handles SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE.
func (c *conn) send(r *request) error {
	var h sendHeader
	h.header(r)
	if len(r.body) > c.s.o.MaxMessage || len(h.properties) > maxProperties {
		c.w.simple(r, codeIllegal, "the message is illegal, maybe msg body or properties length not matched. msg body length limit "+
			strconv.Itoa(c.s.o.MaxMessage)+"B, msg properties length limit 32KB.")
		return nil
	}
	t := c.topic
	if t == nil || t.gone.Load() || t.name != string(h.topic) {
		if t = c.topicOf(&h); t == nil {
			c.w.simple(r, codeNoTopic, "topic["+string(h.topic)+"] not exist, apply first please!")
			return nil
		}
		c.topic = t
	}
	if h.queue >= int64(t.write.Load()) {
		c.w.simple(r, codeError, "request queueId["+strconv.FormatInt(h.queue, 10)+"] is illegal, topic:["+t.name+"]")
		return nil
	}
	if h.queue < 0 {
		h.queue = int64(t.turn.Add(1)) % int64(max(1, t.write.Load()))
	}
	if h.batch {
		return c.sendBatch(r, t, &h)
	}
	m, o := c.message(t, &h, r.body, h.properties)
	if o.half {
		return c.sendHalf(r, t, m)
	}
	return c.answerSend(r, t, m, t.dest.Send(&m.Message), 1)
}

// topicOf finds the topic of a message or makes it. What consumers failed at too often goes to the group's dead-letter
// topic.
func (c *conn) topicOf(h *sendHeader) *topic {
	name := string(h.topic)
	if group, ok := strings.CutPrefix(name, retryPrefix); ok && h.tries > h.maxTries {
		c.s.dead.Add(1)
		h.topic, h.queue = []byte(deadPrefix+group), 0
		return c.s.makeTopic(deadPrefix+group, 1)
	}
	if name == defaultTopic {
		return nil
	}
	queues := c.s.o.Queues
	if h.queues > 0 {
		queues = int(min(h.queues, int64(queues)))
	}
	return c.s.makeTopic(name, queues)
}

// message makes a message of what was sent; the texts are copied.
func (c *conn) message(t *topic, h *sendHeader, body, properties []byte) (*message, own) {
	all := make([]byte, len(body)+len(properties))
	n := copy(all, body)
	copy(all[n:], properties)
	o := ownProperties(all[n:])
	m := &message{
		topic: t.name, queue: int(h.queue), flag: uint32(h.flag), sysFlag: uint32(h.sysFlag), born: h.born, bornHost: c.born,
		retries: int32(min(h.tries, 1<<30)), body: all[:n:n], properties: all[n:], limit: c.s.o.MaxMessage,
	}
	// Messages for one queue are in order, those of one connection for several are not.
	m.Source = 1<<63 | c.source<<queueBits | uint64(h.queue)
	m.NotBefore = o.notBefore
	if len(o.group) > 0 {
		m.Group = string(o.group)
	}
	return m.complete(), o
}

// answerSend answers a send of so many messages, of which m is the first, or does not, or only when there is room.
func (c *conn) answerSend(r *request, t *topic, m *message, v store.Verdict, messages int) error {
	oneWay := r.flag&flagOneWay != 0
	switch v {
	case store.Withheld:
		return nil
	case store.Full:
		if !oneWay {
			c.w.simple(r, codeBusy, "[PC_SYNCHRONIZED]broker busy: the topic, or who has subscribed to it, is full")
		}
		return nil
	}
	start := len(c.w.b)
	if !oneWay {
		offset := m.place.Load() - 1
		if offset < 0 { // it is delayed, or made away with by a fault: where it would have been
			_, offset = t.queue(int64(m.queue)).limits()
		}
		c.stored(r, m.queue, offset, logOffset(t.id, m.queue, offset), nil)
	}
	if t.dest.Room(nil) || c.s.limits.Full == store.Reject {
		return nil
	}
	c.s.store.CountFull(messages)
	if oneWay {
		return c.awaitRoom(t.dest)
	}
	return c.park(t.dest, start)
}

// stored appends the answer to a message that was stored.
func (c *conn) stored(r *request, queue int, offset, log int64, unique []byte) {
	w := &c.w
	w.answer(r, codeSuccess, "")
	var id [32]byte
	c.messageID(&id, log)
	w.text("msgId", string(id[:]))
	w.number("queueId", int64(queue))
	w.number("queueOffset", offset)
	if len(unique) > 0 {
		w.text("transactionId", string(unique))
	}
	w.endHeader()
	w.end()
}

// messageID writes the id by which clients name a stored message: host, port and offset in the log, in hexadecimal.
func (c *conn) messageID(id *[32]byte, log int64) {
	var b [16]byte
	copy(b[:], c.host[:])
	binary.BigEndian.PutUint64(b[8:], uint64(log))
	hex.Encode(id[:], b[:])
	for i, d := range id {
		if d >= 'a' {
			id[i] = d - 'a' + 'A'
		}
	}
}

// sendBatch handles a batch: its messages go one by one, so that faults count messages. If one is withheld so is the
// answer; one that finds the topic full ends the batch.
func (c *conn) sendBatch(r *request, t *topic, h *sendHeader) error {
	for b := r.body; len(b) > 0; { // all or nothing, as far as that can be seen
		var ok bool
		if _, b, ok = cutBatched(b); !ok {
			c.w.simple(r, codeIllegal, "the batch cannot be read")
			return nil
		}
	}
	if len(r.body) == 0 {
		c.w.simple(r, codeIllegal, "the batch is empty")
		return nil
	}
	var first *message
	verdict, messages := store.Stored, 0
	for b := r.body; len(b) > 0; messages++ {
		var part batched
		part, b, _ = cutBatched(b)
		h.flag = int64(part.flag)
		m, _ := c.message(t, h, part.body, part.properties)
		if first == nil {
			first = m
		}
		v := t.dest.Send(&m.Message)
		if v == store.Full {
			verdict = v
			c.s.store.CountFull(countBatched(b)) // they have not been tried
			break
		}
		if v == store.Withheld {
			verdict = v
		}
		if err := c.awaitStall(); err != nil {
			return err
		}
	}
	return c.answerSend(r, t, first, verdict, messages)
}

// countBatched returns how many messages are in what is left of a batch.
func countBatched(b []byte) (n int) {
	for ; len(b) > 0; n++ {
		_, b, _ = cutBatched(b)
	}
	return n
}

// defaultMaxTries is how often a message is given back before it goes to the dead-letter topic (retryMaxTimes).
const defaultMaxTries = 16

// sendBack handles CONSUMER_SEND_MSG_BACK (AbstractSendMessageProcessor): a copy comes again later, by a topic of the
// group's own. It is not sent anew, so faults do not concern it.
func (c *conn) sendBack(r *request) error {
	name := string(r.get("group"))
	g := c.s.makeGroup(name)
	e, _ := c.s.lookUp(r.number("offset", -1))
	if g == nil || e.m == nil {
		c.w.simple(r, codeError, "look message by offset failed, "+string(r.get("offset")))
		return nil
	}
	m := e.m.clone()
	c.s.givenBack.Add(1)
	level, target := r.number("delayLevel", 0), retryPrefix+name
	if level < 0 || int64(m.retries) >= r.number("maxReconsumeTimes", defaultMaxTries) {
		target, level = deadPrefix+name, -1
		c.s.dead.Add(1)
	} else if level == 0 {
		level = 3 + int64(m.retries)
	}
	t := c.s.makeTopic(target, 1)
	if t == nil {
		c.w.simple(r, codeError, "topic["+target+"] not exist")
		return nil
	}
	m.retries++
	m.queue = 0
	pairs := []string{propDelayLevel, ""}
	if property(m.properties, propRetryTopic) == nil {
		pairs = append(pairs, propRetryTopic, m.topic)
	}
	if id := r.get("originMsgId"); len(id) > 0 && property(m.properties, propOrigin) == nil {
		pairs = append(pairs, propOrigin, string(id))
	}
	m.properties = withProperties(m.properties, pairs...)
	if len(m.properties) > maxProperties {
		c.w.simple(r, codeIllegal, "the properties are too long")
		return nil
	}
	notBefore := int64(0)
	if level > 0 {
		notBefore = time.Now().Add(delayOf(level)).UnixNano()
	}
	t.put(m, notBefore)
	c.w.simple(r, codeSuccess, "")
	return nil
}
