//go:build unix

package hostile

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Codes of requests and answers (RequestCode, ResponseCode).
const (
	rocketPull        = 11
	rocketQueryOffset = 14
	rocketSaveOffset  = 15
	rocketCreateTopic = 17
	rocketMaxOffset   = 30
	rocketMinOffset   = 31
	rocketHeartbeat   = 34
	rocketUnregister  = 35
	rocketMembers     = 38
	rocketLock        = 41
	rocketRoute       = 105
	rocketCluster     = 106
	rocketSend        = 310
	rocketSendBatch   = 320
	rocketGetGroup    = 352

	rocketCheckTransaction = 39
	rocketMembersChanged   = 40

	rocketSuccess  = 0
	rocketNoTopic  = 17
	rocketNotFound = 19
)

// Codecs of headers.
const (
	rocketJSON   = 0
	rocketBinary = 1
)

// rocketBroker is a name server and a broker that behaves, but for what it does when one request comes. It is served
// over any number of connections.
type rocketBroker struct {
	acts []rocketAct

	mu     sync.Mutex
	client string          // of the last heartbeat
	pulled map[string]bool // queues whose messages were sent
}

// rocketPeer is one connection to it.
type rocketPeer struct {
	*wire
	*rocketBroker
}

// rocketAct is what is done when a request comes.
type rocketAct struct {
	code int
	do   func(*rocketPeer, *rocketRequest)
}

// rocketRequest is a request of the driver.
type rocketRequest struct {
	code   int
	opaque uint32
	fields map[string]string
	body   []byte
}

// rocketAt returns what serves connections: a broker that behaves until the request comes, and then does as told.
func rocketAt(code int, do func(*rocketPeer, *rocketRequest), more ...rocketAct) func(*wire) {
	b := &rocketBroker{acts: append(more, rocketAct{code, do}), pulled: map[string]bool{}}
	return func(w *wire) {
		p := &rocketPeer{wire: w, rocketBroker: b}
		for {
			q, err := p.next()
			if err != nil {
				return
			}
			p.act(q)
		}
	}
}

func (p *rocketPeer) act(q *rocketRequest) {
	for _, a := range p.acts {
		if a.code == q.code {
			a.do(p, q)
			return
		}
	}
	p.behave(q)
}

// next reads a request, whose header is binary.
func (p *rocketPeer) next() (*rocketRequest, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.r, b); err != nil {
		return nil, err
	}
	head := int(binary.BigEndian.Uint32(b) & 0xffffff)
	h, body := b[4:4+head], b[4+head:]
	q := &rocketRequest{
		code: int(binary.BigEndian.Uint16(h)), opaque: binary.BigEndian.Uint32(h[5:]), fields: map[string]string{}, body: body,
	}
	h = h[17+int(binary.BigEndian.Uint32(h[13:])):] // behind the remark
	for h = h[4:]; len(h) > 0; {
		n := int(binary.BigEndian.Uint16(h))
		key := string(h[2 : 2+n])
		h = h[2+n:]
		n = int(binary.BigEndian.Uint32(h))
		q.fields[key] = string(h[4 : 4+n])
		h = h[4+n:]
	}
	return q, nil
}

// behave does what a good broker does.
func (p *rocketPeer) behave(q *rocketRequest) {
	offset := map[string]string{"offset": "0"}
	switch q.code {
	case rocketRoute:
		p.answer(q, rocketSuccess, "", nil, p.route("b", "1", "1"))
	case rocketCluster:
		p.answer(q, rocketSuccess, "", nil, `{"brokerAddrTable":{"b":`+p.broker("b")+`},"clusterAddrTable":{"c":["b"]}}`)
	case rocketHeartbeat:
		var beat struct {
			ClientID string `json:"clientID"`
		}
		_ = json.Unmarshal(q.body, &beat)
		p.mu.Lock()
		p.client = beat.ClientID
		p.mu.Unlock()
		p.answer(q, rocketSuccess, "", nil, "")
	case rocketMembers:
		p.mu.Lock()
		id := p.client
		p.mu.Unlock()
		p.answer(q, rocketSuccess, "", nil, `{"consumerIdList":["`+id+`"]}`)
	case rocketLock:
		p.answer(q, rocketSuccess, "", nil, p.locked(q))
	case rocketQueryOffset, rocketMaxOffset, rocketMinOffset:
		p.answer(q, rocketSuccess, "", offset, "")
	case rocketSend, rocketSendBatch:
		p.confirm(q)
	case rocketPull:
		p.pull(q)
	default:
		p.answer(q, rocketSuccess, "", nil, "")
	}
}

// broker is a brokerData in JSON.
func (p *rocketPeer) broker(name string) string {
	return `{"brokerName":"` + name + `","cluster":"c","brokerAddrs":{"0":"` + p.peer.listener.Addr().String() + `"}}`
}

// route is a TopicRouteData in JSON; read and write are numbers of queues.
func (p *rocketPeer) route(name, read, write string) string {
	return `{"brokerDatas":[` + p.broker(name) + `],"queueDatas":[` + rocketQueues(name, read, write) + `]}`
}

func rocketQueues(name, read, write string) string {
	return `{"brokerName":"` + name + `","perm":6,"readQueueNums":` + read + `,"writeQueueNums":` + write + `,"topicSysFlag":0}`
}

// locked grants all that was asked for.
func (p *rocketPeer) locked(q *rocketRequest) string {
	var asked struct {
		Queues json.RawMessage `json:"mqSet"`
	}
	_ = json.Unmarshal(q.body, &asked)
	return `{"lockOKMQSet":` + string(asked.Queues) + `}`
}

// confirm answers a send.
func (p *rocketPeer) confirm(q *rocketRequest) {
	p.peer.confirmed.Add(1)
	p.answer(q, rocketSuccess, "", map[string]string{"msgId": "7F00000100002A9F0000000000000000", "queueId": "0", "queueOffset": "0"}, "")
}

// pull sends ten messages for the first pull of a queue that is not for redelivery; others get no answer.
func (p *rocketPeer) pull(q *rocketRequest) {
	if p.firstPull(q) {
		p.deliver(q, 10)
	}
}

// firstPull tells whether a pull is the first of a queue, and not of one for redelivery.
func (p *rocketPeer) firstPull(q *rocketRequest) bool {
	queue := q.fields["topic"] + q.fields["queueId"]
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.pulled[queue] && q.fields["topic"][0] != '%'
	p.pulled[queue] = true
	return first
}

// deliver answers a pull by messages.
func (p *rocketPeer) deliver(q *rocketRequest, n int) {
	var body []byte
	for i := range n {
		body = rocketMessage{offset: uint64(i), topic: q.fields["topic"], body: []byte("body")}.append(body) //nolint:gosec // small
	}
	p.peer.delivered.Add(int64(n))
	p.pulledSome(q, n, string(body))
}

func (p *rocketPeer) pulledSome(q *rocketRequest, n int, body string) {
	next := strconv.Itoa(n)
	p.answer(q, rocketSuccess, "FOUND", map[string]string{
		"nextBeginOffset": next, "minOffset": "0", "maxOffset": next, "suggestWhichBrokerId": "0",
	}, body)
}

// pulledLarge answers a pull by one message with a body of zeros.
func (p *rocketPeer) pulledLarge(q *rocketRequest, m rocketMessage, size int) {
	const bodyAt = 88 // behind its length
	b := m.append(nil)
	binary.BigEndian.PutUint32(b, uint32(len(b)+size))
	binary.BigEndian.PutUint32(b[bodyAt-4:], uint32(size))
	next := strconv.FormatUint(m.offset+1, 10)
	frame := []byte(rocketFrame(rocketSuccess, q.opaque, 1, "FOUND", map[string]string{
		"nextBeginOffset": next, "minOffset": "0", "maxOffset": next, "suggestWhichBrokerId": "0",
	}, string(b)))
	binary.BigEndian.PutUint32(frame, binary.BigEndian.Uint32(frame)+uint32(size))
	at := len(frame) - len(b) + bodyAt
	p.say(string(frame[:at]))
	chunk := zeros(min(size, 64<<10))
	for left := size; left > 0; left -= len(chunk) {
		p.say(chunk[:min(left, len(chunk))])
	}
	p.say(string(frame[at:]))
}

// rocketMessage is a message as brokers send it (MessageDecoder).
type rocketMessage struct {
	offset     uint64
	sysFlag    uint32
	topic      string
	properties string
	body       []byte
}

func (m rocketMessage) append(b []byte) []byte {
	start := len(b)
	u32, u64 := binary.BigEndian.AppendUint32, binary.BigEndian.AppendUint64
	b = u32(u32(u32(u32(u32(b, 0), 0xdaa320a7), 0), 0), 0) // size, magic, checksum, queue, flag
	b = u64(u64(b, m.offset), m.offset)
	b = u64(u64(u64(u32(b, m.sysFlag), 1), 0), 1) // born at, by whom, stored at
	b = u64(u32(u64(b, 0), 0), 0)                 // by whom, retries, half message
	b = append(u32(b, uint32(len(m.body))), m.body...)
	b = append(append(b, byte(len(m.topic))), m.topic...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(m.properties))), m.properties...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// answer answers a request in the binary codec.
func (p *rocketPeer) answer(q *rocketRequest, code int, remark string, fields map[string]string, body string) {
	p.say(rocketFrame(code, q.opaque, 1, remark, fields, body))
}

// rocketFrame is a frame with a binary header. Flag is 1 for an answer, 0 for a request and 2 for one without an answer.
func rocketFrame(code int, opaque, flag uint32, remark string, fields map[string]string, body string) string {
	h := binary.BigEndian.AppendUint16(nil, uint16(code))
	h = append(h, 0, 1, 0) // Java, some version
	h = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(h, opaque), flag)
	h = append(binary.BigEndian.AppendUint32(h, uint32(len(remark))), remark...)
	var f []byte
	for key, value := range fields {
		f = append(binary.BigEndian.AppendUint16(f, uint16(len(key))), key...)
		f = append(binary.BigEndian.AppendUint32(f, uint32(len(value))), value...)
	}
	h = append(binary.BigEndian.AppendUint32(h, uint32(len(f))), f...)
	return rocketEnvelope(rocketBinary, string(h), body)
}

// rocketJSONFrame is a frame with that header in JSON.
func rocketJSONFrame(header, body string) string { return rocketEnvelope(rocketJSON, header, body) }

func rocketEnvelope(codec byte, header, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(codec)<<24|uint32(len(header)))
	return string(b) + header + body
}

// rocketHead is the beginning of a frame that says to have that many bytes: its length, and that of the header.
func rocketHead(length uint32, codec byte, header uint32) string {
	b := binary.BigEndian.AppendUint32(nil, length)
	return string(binary.BigEndian.AppendUint32(b, uint32(codec)<<24|header&0xffffff))
}

// rocketSay is a case's act: to answer by these bytes instead.
func rocketSay(text string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, _ *rocketRequest) { p.say(text) }
}

// rocketEnd is rocketSay, and the end of the connection.
func rocketEnd(text string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, _ *rocketRequest) {
		p.say(text)
		_ = p.Close()
	}
}

// rocketEndless says something once, and then something else for ever.
func rocketEndless(head, chunk string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, _ *rocketRequest) {
		p.say(head)
		p.endless(chunk)
	}
}

// rocketRefuse answers by a code and a remark.
func rocketRefuse(code int, remark string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { p.answer(q, code, remark, nil, "") }
}

// rocketBody answers by success with a body.
func rocketBody(body string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { p.answer(q, rocketSuccess, "", nil, body) }
}

// rocketAnswerJSON answers by a header in JSON, in which %d stands for the number of the request.
func rocketAnswerJSON(header string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { p.say(rocketJSONFrame(fmt.Sprintf(header, q.opaque), "")) }
}

// rocketArray answers by success with a body that has the same n times.
func rocketArray(head, chunk string, n int, end string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { rocketBody(head+strings.Repeat(chunk, n)+end)(p, q) }
}
