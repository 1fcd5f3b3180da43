package rocketmq

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/perfmq/perfmq/pkg/driver"
)

// maxBody is the largest body that still fits into a frame with its header.
const maxBody = maxSent - 64<<10

// idSeed is how many characters of a message's unique key are its producer's; a number follows.
const idSeed = 20

// producer is a [driver.Producer].
type producer struct {
	op      string
	client  *client
	opts    *Options
	sign    *signer
	done    driver.Done
	group   string
	topic   string
	grouped bool // all messages go to one queue
	// queues is where to send to; refreshing replaces the whole.
	queues atomic.Pointer[[]sendQueue]
	next   int

	// Only Send's goroutine uses these.
	head    []byte
	static  []byte // properties that all messages have
	id      [32]byte
	counter uint64
	zip     *compressor
	batch   *batcher      // with send=batch
	tx      *transactions // for transactional messages

	inFlight atomic.Int64
	closing  atomic.Bool
	idle     chan struct{} // told when closing and nothing is in flight
	synced   chan struct{} // with send=sync: told of each answer
	socket   *driver.Meter // waits for the connection to take more
	answers  *driver.Meter // with send=sync: waits for answers
	closed   bool
	sysFlag  uint32
	closeMu  sync.Mutex
}

// sendQueue is a queue to send to: what is the same in the header of each message for it.
type sendQueue struct {
	conn   *conn
	broker string
	prefix []byte // the frame up to the born time
	suffix []byte // the fields after the properties
}

// Producer implements [driver.Driver].
func (d *rocketDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Done) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	if err := unsupported(op, &spec); err != nil {
		return nil, err
	}
	topic, err := d.cfg.topicName(spec.Destination)
	if err != nil {
		return nil, err
	}
	opts := &d.cfg.opts
	static, err := opts.staticProperties(&spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	r, err := d.routeOf(ctx, topic)
	if err != nil {
		return nil, err
	}
	if spec.Destination.Kind == driver.Queue {
		d.noteGroup(topic, d.cfg.membershipOf(&driver.ConsumerSpec{Destination: spec.Destination}, "").group)
	}
	c, err := d.acquire(spec.Connection, "")
	if err != nil {
		return nil, err
	}
	p := &producer{
		op: "send to " + spec.Destination.String(), client: c, opts: opts, sign: newSigner(d.cfg.target.user, d.cfg.target.password),
		done: done, static: static, topic: topic, grouped: spec.Group != "", idle: make(chan struct{}, 1), synced: make(chan struct{}, 1), group: d.producerGroup(),
		socket: driver.NewMeter(), answers: driver.NewMeter(),
	}
	if err := p.open(ctx, r, &spec); err != nil {
		p.client.part(p)
		d.setAsked(p.id[:idSeed], nil)
		d.release(ctx, c)
		return nil, err
	}
	return p, nil
}

// unsupported refuses what RocketMQ cannot do.
func unsupported(op string, spec *driver.ProducerSpec) error {
	refuse := func(hint, what string) error {
		return driver.Errorf(driver.ClassUnsupported, op, hint, "RocketMQ has no %s", what)
	}
	switch {
	case spec.TTL > 0:
		return refuse("leave out --ttl; brokers keep messages for fileReservedTime", "time to live per message")
	case spec.Priority >= 0:
		return refuse("leave out --priority", "priorities")
	case spec.CommitInterval > 0:
		return refuse("for RocketMQ's own kind, one message per transaction, use -o transactional=true", "transactions of several messages")
	}
	return nil
}

func (d *rocketDriver) producerGroup() string {
	switch {
	case d.cfg.opts.ProducerGroup != "":
		return d.cfg.inNamespace(d.cfg.opts.ProducerGroup)
	case d.cfg.opts.Transactional: // check-backs go to any member of the group
		return d.cfg.inNamespace("perfmq-producers-" + randomID())
	default:
		return d.cfg.inNamespace("perfmq-producers")
	}
}

func (p *producer) open(ctx context.Context, r *route, spec *driver.ProducerSpec) error {
	if p.opts.Compress {
		p.zip, p.sysFlag = &compressor{}, sysCompressed|sysZlib
	}
	if p.opts.Transactional {
		p.tx = newTransactions(p, spec.MaxPending)
		p.sysFlag |= sysHalf
		p.static = append(p.static, primitive.PropertyTransactionPrepared+nameSeparator+"true"+propertySeparator+
			primitive.PropertyProducerGroup+nameSeparator+p.group+propertySeparator...)
	}
	if p.opts.Delay > 0 {
		if err := p.delayByLevel(ctx, r, spec); err != nil {
			return err
		}
	}
	var seed [idSeed / 2]byte
	_, _ = rand.Read(seed[:])
	hex.Encode(p.id[:idSeed], seed[:])
	if p.tx != nil {
		p.client.d.setAsked(p.id[:idSeed], p.tx)
	}
	p.client.join(p)
	var queues []sendQueue
	for _, b := range r.brokers {
		if b.write == 0 {
			continue
		}
		c, err := p.client.connect(ctx, b.addr)
		if err != nil {
			return err
		}
		if err := p.client.beat(ctx, c); err != nil {
			return err
		}
		queues = p.appendQueues(queues, c, b)
	}
	if len(queues) == 0 {
		return driver.Errorf(driver.ClassAuth, p.op, "look at the topic's perm (mqadmin updateTopicPerm)", "no queue of topic %s may be written", p.topic)
	}
	if spec.Group != "" { // a group is one queue, chosen as other clients would
		i := int(fold(spec.Group) % uint32(len(queues)))
		queues = queues[i : i+1]
	} else { // producers that start together should not march in step
		p.next = int(fold(spec.Name) % uint32(len(queues)))
	}
	p.queues.Store(&queues)
	if p.opts.Send == sendBatch {
		p.batch = newBatcher(p, spec.MaxPending)
	}
	return nil
}

// appendQueues appends a broker's queues.
func (p *producer) appendQueues(list []sendQueue, c *conn, b routeBroker) []sendQueue {
	for i := range b.write {
		list = append(list, p.sendQueue(c, b.name, i))
	}
	return list
}

// sendQueue prepares the header of sends to a queue: SendMessageRequestHeaderV2, the fields in the order of their keys.
func (p *producer) sendQueue(c *conn, broker string, queue int) sendQueue {
	code, batch, flag := uint16(reqSend), "false", uint32(0)
	if p.opts.Send == sendBatch {
		code, batch = reqSendBatch, "true"
	}
	if p.opts.Send == sendOneWay {
		flag = flagOneWay
	}
	q := sendQueue{conn: c, broker: broker}
	b := p.sign.begin(beginFrame(nil, code, flag))
	b = appendField(b, "a", p.group)
	b = appendField(b, "b", p.topic)
	b = appendField(b, "c", systemTopic)
	b = appendField(b, "d", strconv.Itoa(defaultQueues))
	b = appendField(b, "e", strconv.Itoa(queue))
	q.prefix = appendField(b, "f", strconv.Itoa(int(p.sysFlag)))
	b = appendField(nil, "j", "0")   // deliveries so far
	b = appendField(b, "k", "false") // unit mode
	b = appendField(b, "m", batch)   // batch
	q.suffix = appendField(b, "n", broker)
	return q
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	if len(m.Body) == 0 {
		return driver.Errorf(driver.ClassUnsupported, p.op, "give --message-size 1 or more", "RocketMQ does not take empty bodies")
	}
	if len(m.Body) > maxBody {
		return driver.Errorf(driver.ClassTooLarge, p.op, "send smaller messages; brokers take 4 MiB unless told otherwise",
			"a body of %d bytes does not fit into a frame", len(m.Body))
	}
	if p.batch != nil {
		return p.batch.add(ctx, m)
	}
	q, err := p.queue()
	if err != nil {
		return err
	}
	body := m.Body
	if p.zip != nil {
		body = p.zip.compress(body)
	}
	p.header(q, m, body)
	if p.opts.Send == sendSync {
		select {
		case <-p.synced: // of a Send that did not wait to the end
		default:
		}
	}
	p.inFlight.Add(1)
	if p.opts.Send == sendOneWay {
		err = q.conn.submitOneWay(patience{ctx, p.socket}, p.head, body, p, uint32(m.Slot))
	} else {
		err = q.conn.submit(patience{ctx, p.socket}, p.head, body, p.opts.SendTimeout, p, uint32(m.Slot))
	}
	if err != nil {
		p.inFlight.Add(-1)
		return wrap(p.op, err)
	}
	if p.opts.Send == sendSync {
		p.answers.Begin()
		select {
		case <-p.synced:
		case <-ctx.Done(): // Done will follow
		}
		p.answers.End()
	}
	return nil
}

// Waits implements [driver.Waiter]. Of several brokers, the connection to the first stands for all.
func (p *producer) Waits() driver.Waits {
	w := (*p.queues.Load())[0].conn.waits()
	w.Socket, w.Answer = p.socket.Wait(), p.answers.Wait()
	return w
}

// queue returns the next queue whose broker is there.
func (p *producer) queue() (*sendQueue, error) {
	list := *p.queues.Load()
	for range list {
		if p.next >= len(list) {
			p.next = 0
		}
		q := &list[p.next]
		p.next++
		if !q.conn.isDead() {
			return q, nil
		}
	}
	return nil, wrap(p.op, list[0].conn.failure())
}

// header builds the header of a single message in p.head.
func (p *producer) header(q *sendQueue, m *driver.Message, body []byte) {
	b := append(p.head[:0], q.prefix...)
	b, at := openField(b, "g")
	b = strconv.AppendInt(b, m.Time/1000, 10) // the born time is in milliseconds
	closeField(b, at)
	b = appendField(b, "h", "0") // flag
	b, at = openField(b, "i")
	b = p.properties(b, m)
	closeField(b, at)
	b = append(b, q.suffix...)
	b = p.sign.sign(b, body)
	endFrame(b, len(body))
	p.head = b
}

// properties appends the properties of a message.
func (p *producer) properties(b []byte, m *driver.Message) []byte {
	b = append(b, p.static...)
	b = appendNumber(b, driver.TimeProperty, m.Time)
	if m.ID != (driver.ID{}) {
		b = append(m.ID.Append(append(b, driver.IDProperty+nameSeparator...)), propertySeparator...)
	}
	if p.tx != nil {
		b = append(b, propPlan+nameSeparator...)
		b = append(b, p.tx.plan(m.Slot)...)
		b = append(b, propertySeparator...)
	}
	// The unique key, without which brokers and tools cannot name the message.
	b = append(b, primitive.PropertyUniqueClientMessageIdKeyIndex+nameSeparator...)
	p.counter++
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], p.counter)
	hex.Encode(p.id[idSeed:], n[2:])
	b = append(b, p.id[:]...)
	return append(b, propertySeparator...)
}

// answer takes the answer to a single message.
func (p *producer) answer(slot uint32, r *reply) {
	o := p.outcome(r)
	if p.tx != nil && o.State == driver.Accepted {
		o.Withheld = p.tx.half(slot, r)
	}
	p.done(driver.Slot(slot), o)
	if p.opts.Send == sendSync {
		select {
		case p.synced <- struct{}{}:
		default: // its Send has given up waiting
		}
	}
	p.settled(1)
}

func (p *producer) outcome(r *reply) driver.Outcome {
	if r.err == nil && r.code == codeSuccess {
		return driver.Outcome{}
	}
	return outcome(p.op, r)
}

// settled counts sends that have ended.
func (p *producer) settled(n int64) {
	if p.inFlight.Add(-n) == 0 && p.closing.Load() {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Counters implements [driver.Reporter].
func (p *producer) Counters() []driver.Counter {
	switch {
	case p.tx != nil:
		return p.tx.counters()
	case p.batch != nil:
		return []driver.Counter{
			{Name: "batch-requests", Help: "requests of several messages that have ended", Value: p.batch.requests.Load()},
			{Name: "batch-requests-failed", Help: "part of them that the broker did not accept", Value: p.batch.failed.Load()},
		}
	default:
		return nil
	}
}
