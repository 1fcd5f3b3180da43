package rocketmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// maxBody is the largest body that still fits into a frame with its header.
const maxBody = wire.MaxFrame - 64<<10

// idSeed is the length of the producer's part of a message's unique key; a number follows.
const idSeed = 20

// producer is a [driver.Producer].
type producer struct {
	transport.Notice
	op      string
	d       *rocketDriver
	lease   *transport.Lease[*client]
	client  *client // client of the lease
	opts    *Options
	limit   time.Duration // for the answer to a send
	level   int           // delay level, instead of a time
	sign    *wire.Signer
	done    driver.Completions
	stages  driver.Stages
	group   string
	topic   string
	kinds   []kind                      // by variant
	brokers atomic.Pointer[sendBrokers] // with the queues to send to; nil while the producer is being opened

	// Only Send's goroutine uses these; head and next, with send=batch, the goroutine that sends a batch.
	head    []byte
	id      [32]byte
	counter uint64
	next    int           // index of the next queue
	held    *conn         // connection with a gathered message that waits for more
	batch   *batcher      // with send=batch
	tx      *Transactions // for transactional messages

	// Of requests and replies.
	replyTTL  time.Duration
	targets   map[string]*target // of replies, by topic; nil: the producer is not anonymous
	requester []byte             // the client that the reply is pushed to
	topicName []byte             // memory of targetOf
	later     driver.Connection  // for connections to brokers of replies

	inFlight atomic.Int64
	closing  atomic.Bool
	idle     chan struct{} // signalled when nothing is in flight while closing
	synced   chan struct{} // with send=sync: signalled for each answer
	socket   *driver.Meter // waits for the connection to take more
	answers  *driver.Meter // with send=sync: waits for answers
	closed   bool
	sysFlag  uint32
}

// producerGroup is the group of all producers without transactions.
const producerGroup = "perfmq-producers"

// kind is the common part of all messages of a variant.
type kind struct {
	body       []byte // encoded
	properties []byte
	group      string
	varying    []string // keys of the properties that vary
	groupAt    int      // where it is in properties
}

// sendBroker is a broker to send to, with the common part of its message headers.
type sendBroker struct {
	conn   *conn
	write  int    // number of its queues
	prefix []byte // the frame up to the queue's number
	suffix []byte // the fields after the properties
}

// sendBrokers are the brokers to send to. Their queues are numbered through, each broker's after the broker before it.
// There is no list of queues: with thousands of queues and producers it would take most memory.
type sendBrokers []*sendBroker

func (l sendBrokers) queues() (n int) {
	for _, b := range l {
		n += b.write
	}
	return n
}

// queue returns the broker of the queue with a number from 0 up to queues, and the queue's number there.
func (l sendBrokers) queue(i int) (b *sendBroker, number int) {
	for _, b = range l {
		if i < b.write {
			break
		}
		i -= b.write
	}
	return b, i
}

// Producer implements [driver.Driver].
func (d *rocketDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.To()
	opts, f := &d.cfg.Options, Factory()
	if err := Rules().CheckProducer(op, &f, &spec); err != nil {
		return nil, err
	}
	if spec.Delay > 0 && (opts.Send == sendBatch || opts.Transactional) {
		return nil, library.Unsupported(op, "leave out --delivery-delay, -o send=batch and -o transactional",
			"RocketMQ delays neither batches nor transactional messages")
	}
	p := &producer{
		op: "send to " + spec.To(), d: d, opts: opts,
		limit: cmp.Or(spec.SendTimeout, opts.SendTimeout), sign: d.newSigner(), done: done,
		topic: spec.Destination.Name, group: producerGroup, replyTTL: spec.ReplyTimeout, stages: spec.Connection.Stages,
		idle: make(chan struct{}, 1), synced: make(chan struct{}, 1),
		socket: driver.NewMeter(), answers: driver.NewMeter(),
	}
	if spec.Anonymous {
		if opts.Send == sendBatch || opts.Transactional {
			return nil, library.Unsupported(op, "leave out -o send=batch and -o transactional",
				"RocketMQ takes replies one by one")
		}
		p.targets, p.later = map[string]*target{}, spec.Connection
		p.later.Stages = nil
	}
	if opts.Transactional { // check-backs go to any member of the group
		p.group += "-" + d.id
	}
	if err := p.prepare(&spec); err != nil {
		return nil, err
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	var attached func()
	spec.Connection.Stages, attached = attaching(spec.Connection.Stages)
	r, err := d.routeOf(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	if p.lease, err = d.acquire(ctx, spec.Connection, ""); err != nil {
		return nil, err
	}
	p.client = p.lease.Conn
	if err := p.open(ctx, r, &spec); err != nil {
		p.client.part(p)
		p.lease.Release(ctx)
		return nil, err
	}
	if err := p.reachable(""); err != nil { // it ended before ended knew of the producer
		p.End(err)
	}
	attached()
	return p, nil
}

// prepare encodes the common part of the messages of each variant.
func (p *producer) prepare(spec *driver.ProducerSpec) error {
	p.kinds = make([]kind, 0, len(spec.Variants))
	for i := range spec.Variants {
		v := &spec.Variants[i]
		k := kind{body: v.Body, group: v.Group, varying: v.Varying()}
		switch {
		case len(v.Body) == 0:
			return driver.Errorf(driver.ClassUnsupported, p.op, "give --message-size 1 or more",
				"RocketMQ does not take empty bodies")
		case len(v.Body) > maxBody:
			return driver.Errorf(driver.ClassTooLarge, p.op, "send smaller messages; brokers accept 4 MiB by default",
				"a body of %d bytes does not fit into a frame", len(v.Body))
		}
		var err error
		if k.properties, err = p.properties(spec, v); err != nil {
			return err
		}
		k.groupAt = len(k.properties) - len(v.Group) - 1 // the last property
		if p.opts.Transactional {
			p.sysFlag = wire.SysPrepared
			k.properties = wire.AppendProperty(k.properties, wire.PropPrepared, "true")
			k.properties = wire.AppendProperty(k.properties, wire.PropProducerGroup, p.group)
		}
		p.kinds = append(p.kinds, k)
	}
	return nil
}

func (p *producer) open(ctx context.Context, r *route, spec *driver.ProducerSpec) error {
	var seed [idSeed / 2]byte
	_, _ = rand.Read(seed[:])
	hex.Encode(p.id[:idSeed], seed[:])
	if p.opts.Transactional {
		p.tx = p.d.open.Of(p.opts.RollbackPercent, p.opts.UnknownPercent)
	}
	p.client.join(p)
	brokers := slices.DeleteFunc(slices.Clone(r.brokers), func(b routeBroker) bool { return b.write == 0 })
	conns := make([]*conn, len(brokers))
	for i, b := range brokers {
		var err error
		if conns[i], err = p.client.connect(ctx, b.addr, &spec.Connection); err != nil {
			return err
		}
		if err := p.client.beat(ctx, conns[i]); err != nil {
			return err
		}
	}
	if len(conns) == 0 {
		return notWritable(p.op, p.topic)
	}
	if err := p.fitDelay(ctx, conns, spec); err != nil {
		return err
	}
	var list sendBrokers
	for i, b := range brokers {
		list = append(list, p.sendBroker(conns[i], b.name, b.write, p.topic, wire.ReqSendMessageV2))
	}
	// Producers that start together should not use the same queues in step.
	p.next = int(fold(spec.Name) % uint32(list.queues()))
	p.brokers.Store(&list)
	if p.opts.Send == sendBatch {
		p.batch = newBatcher(p, spec.MaxPending)
	}
	return nil
}

func notWritable(op, topic string) error {
	return driver.Errorf(driver.ClassAuth, op, "look at the topic's perm (mqadmin updateTopicPerm)",
		"no queue of topic %s may be written", topic)
}

// sendBroker prepares the header of sends to a topic of a broker: SendMessageRequestHeaderV2, with fields in the order
// of their keys.
func (p *producer) sendBroker(c *conn, name string, write int, topic string, code int) *sendBroker {
	batch, flag := "false", uint32(0)
	if p.opts.Send == sendBatch {
		code, batch = wire.ReqSendBatchMessage, "true"
	}
	if p.opts.Send == sendOneWay {
		flag = wire.FlagOneWay
	}
	b := p.sign.Begin(wire.BeginFrame(nil, code, flag, 0, ""))
	b = wire.AppendField(b, "a", p.group)
	b = wire.AppendField(b, "b", topic)
	b = wire.AppendField(b, "c", wire.DefaultTopic)
	q := &sendBroker{conn: c, write: write, prefix: wire.AppendField(b, "d", strconv.Itoa(defaultQueues))}
	b = wire.AppendField(nil, "j", "0")   // deliveries so far
	b = wire.AppendField(b, "k", "false") // unit mode
	b = wire.AppendField(b, "m", batch)   // batch
	q.suffix = wire.AppendField(b, "n", name)
	return q
}

// Waits implements [driver.Waiter]. If there are several brokers, it reports the connection to the first.
func (p *producer) Waits() driver.Waits {
	w := (*p.brokers.Load())[0].conn.waits()
	w.Socket, w.Answer = p.socket.Wait(), p.answers.Wait()
	return w
}

// Counters implements [driver.Counting].
func (p *producer) Counters() []driver.Counter {
	if p.tx == nil {
		return nil
	}
	return p.tx.Counters()
}
