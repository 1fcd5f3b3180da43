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

	rmq "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// rocketBroker is a name server and a broker that behaves, except for its reaction to some requests. It is served
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

// rocketAct is the reaction to a request.
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

// rocketAt returns a function that serves connections: a broker that calls do for the request, and else behaves.
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

// next reads a request with a binary header.
func (p *rocketPeer) next() (*rocketRequest, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 64<<20 { // the first bytes of another protocol: perfmq asks what the port speaks
		return nil, fmt.Errorf("a request of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(p.r, b); err != nil {
		return nil, err
	}
	var f rmq.Frame
	if err := f.Parse(b); err != nil {
		return nil, err
	}
	q := &rocketRequest{code: f.Code, opaque: f.Opaque, fields: map[string]string{}, body: f.Body}
	for rest := f.Fields; len(rest) > 0; {
		var key, value []byte
		key, value, rest = rmq.CutField(rest)
		q.fields[string(key)] = string(value)
	}
	return q, nil
}

// behave reacts as a correct broker does.
func (p *rocketPeer) behave(q *rocketRequest) {
	offset := map[string]string{"offset": "0"}
	switch q.code {
	case rmq.ReqGetRouteInfoByTopic:
		p.answer(q, rmq.ResSuccess, "", nil, p.route("b", "1", "1"))
	case rmq.ReqGetBrokerClusterInfo:
		p.answer(q, rmq.ResSuccess, "", nil, `{"brokerAddrTable":{"b":`+p.broker("b")+`},"clusterAddrTable":{"c":["b"]}}`)
	case rmq.ReqHeartBeat:
		var beat struct {
			ClientID string `json:"clientID"`
		}
		_ = json.Unmarshal(q.body, &beat)
		p.mu.Lock()
		p.client = beat.ClientID
		p.mu.Unlock()
		p.answer(q, rmq.ResSuccess, "", nil, "")
	case rmq.ReqGetConsumerListByGroup:
		p.mu.Lock()
		id := p.client
		p.mu.Unlock()
		p.answer(q, rmq.ResSuccess, "", nil, `{"consumerIdList":["`+id+`"]}`)
	case rmq.ReqLockBatchMQ:
		p.answer(q, rmq.ResSuccess, "", nil, p.locked(q))
	case rmq.ReqQueryConsumerOffset, rmq.ReqGetMaxOffset, rmq.ReqGetMinOffset:
		p.answer(q, rmq.ResSuccess, "", offset, "")
	case rmq.ReqSendMessageV2, rmq.ReqSendBatchMessage:
		p.confirm(q)
	case rmq.ReqPullMessage:
		p.pull(q)
	default:
		p.answer(q, rmq.ResSuccess, "", nil, "")
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

// locked grants all requested locks.
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
	p.answer(q, rmq.ResSuccess, "", map[string]string{"msgId": "7F00000100002A9F0000000000000000", "queueId": "0", "queueOffset": "0"}, "")
}

// pull sends ten messages for the first pull of a queue that is not for redelivery; others get no answer.
func (p *rocketPeer) pull(q *rocketRequest) {
	if p.firstPull(q) {
		p.deliver(q, 10)
	}
}

// firstPull reports whether a pull is the first of a queue, and not one for redelivery.
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
	p.answer(q, rmq.ResSuccess, "FOUND", map[string]string{
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
	frame := []byte(rocketFrame(rmq.ResSuccess, q.opaque, 1, "FOUND", map[string]string{
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
	host := make([]byte, 8)
	head := rmq.MessageHead{
		QueueOffset: int64(m.offset), LogOffset: int64(m.offset), SysFlag: m.sysFlag, Born: 1, BornHost: host, Stored: 1, StoreHost: host, //nolint:gosec // small
	}
	return rmq.AppendMessage(b, &head, m.body, m.topic, []byte(m.properties))
}

// answer answers a request in the binary codec.
func (p *rocketPeer) answer(q *rocketRequest, code int, remark string, fields map[string]string, body string) {
	p.say(rocketFrame(code, q.opaque, 1, remark, fields, body))
}

// rocketFrame is a frame with a binary header. Flag is 1 for an answer, 0 for a request and 2 for one without an
// answer.
func rocketFrame(code int, opaque, flag uint32, remark string, fields map[string]string, body string) string {
	b := rmq.BeginFrame(nil, code, flag, opaque, remark)
	for key, value := range fields {
		b = rmq.AppendField(b, key, value)
	}
	rmq.EndFrame(b, len(body))
	return string(b) + body
}

// rocketJSONFrame is a frame with that header in JSON.
func rocketJSONFrame(header, body string) string { return rocketEnvelope(rmq.JSON, header, body) }

func rocketEnvelope(codec byte, header, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(codec)<<24|uint32(len(header)))
	return string(b) + header + body
}

// rocketHead is the beginning of a frame: its claimed length, and the header's.
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

// rocketEndless says something once, and then repeats something else without end.
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
	return func(p *rocketPeer, q *rocketRequest) { p.answer(q, rmq.ResSuccess, "", nil, body) }
}

// rocketAnswerJSON answers by a header in JSON, in which %d stands for the number of the request.
func rocketAnswerJSON(header string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { p.say(rocketJSONFrame(fmt.Sprintf(header, q.opaque), "")) }
}

// rocketArray answers by success with a body that has the same n times.
func rocketArray(head, chunk string, n int, end string) func(*rocketPeer, *rocketRequest) {
	return func(p *rocketPeer, q *rocketRequest) { rocketBody(head+strings.Repeat(chunk, n)+end)(p, q) }
}
