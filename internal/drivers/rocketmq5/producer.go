package rocketmq5

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// The id of a message is 01, for the version, and 32 digits: 16 of the producer, and a number (MessageIdCodec).
const (
	idSeed = 2 + 16
	idSize = idSeed + 16
)

// producer is a [driver.Producer].
type producer struct {
	transport.Notice
	op     string
	d      *proxyDriver
	lease  *transport.Lease[*conn]
	client *client
	opts   *Options
	done   driver.Completions
	stages driver.Stages
	delay  int64 // microseconds; 0: none
	topic  string
	kinds  []kind // by variant
	tx     *rocketmq.Transactions

	// Only Send's goroutine uses these.
	request request
	head    []byte // of the request
	message []byte // up to the body
	id      [idSize]byte
	group   []byte
	counter uint64

	at, number, plan wire.UserPropertiesEntry // of the present message

	answered wire.SendMessageResponse // used by the reader of the connection alone

	inFlight sync.WaitGroup
	ends     sync.WaitGroup // of transactions
	closed   bool
}

// kind is the common part of all messages of a variant.
type kind struct {
	body    []byte
	message wire.Message
	common  int // of its properties: first those that vary. The time, the ID, and with transactions the plan follow
	group   string
}

// Producer implements [driver.Driver].
func (d *proxyDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.To()
	opts, f := &d.cfg.Options, Factory()
	if err := rocketmq.Rules().CheckProducer(op, &f, &spec); err != nil {
		return nil, err
	}
	p := &producer{
		op: "send to " + spec.To(), d: d, opts: opts, done: done, stages: spec.Connection.Stages,
		topic: spec.Destination.Name, delay: spec.Delay.Microseconds(),
		at: property(driver.TimeProperty, nil), number: property(driver.IDProperty, nil),
		plan: property(rocketmq.PropPlan, nil),
	}
	messages, err := p.prepare(&spec)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	if d.admin != nil {
		if err := d.admin.TypedTopic(ctx, p.topic, messages); err != nil {
			return nil, transport.Explain(op, err)
		}
	}
	if p.lease, err = d.pool.Acquire(ctx, spec.Connection); err != nil {
		return nil, err
	}
	if err = p.open(ctx, &spec); err != nil {
		if p.client != nil {
			p.client.leave(ctx)
		}
		p.lease.Release(ctx)
		return nil, transport.Explain(op, err)
	}
	return p, nil
}

// prepare encodes the common part of the messages of each variant, and returns their type.
func (p *producer) prepare(spec *driver.ProducerSpec) (messages string, err error) {
	const op = "check the messages"
	for i := range spec.Variants {
		v := &spec.Variants[i]
		k := kind{body: v.Body, group: v.Group}
		var t wire.MessageType // of those with one of its features
		for is, has := range map[wire.MessageType]bool{
			wire.MessageTypeTransaction: p.opts.Transactional, wire.MessageTypeDelay: spec.Delay > 0,
			wire.MessageTypeFifo: v.Group != "" || spec.Keys > 0,
		} {
			switch {
			case has && t != 0:
				return "", library.Unsupported(op, "give one of --delivery-delay, --group and -o transactional",
					"a message of RocketMQ 5 is of one type: delayed, of a group, or transactional")
			case has:
				t = is
			}
		}
		t = cmp.Or(t, wire.MessageTypeNormal)
		if len(v.Body) == 0 {
			return "", library.Unsupported(op, "give --message-size 1 or more", "RocketMQ does not take empty bodies")
		}
		var properties []wire.UserPropertiesEntry
		for _, key := range v.Varying() {
			properties = append(properties, property(key, nil))
		}
		for _, pair := range v.Properties {
			switch {
			case pair.Key == "" || control(pair.Key) || control(pair.Value):
				return "", driver.Errorf(driver.ClassUnsupported, op, "",
					"RocketMQ's proxy allows neither empty names nor control characters (%q=%q)", pair.Key, pair.Value)
			case slices.Contains(rocketmq.Reserved(), pair.Key):
				return "", driver.Errorf(driver.ClassUnsupported, op, "rename it",
					"the name %s is one of RocketMQ's own or of ours", pair.Key)
			case !pair.Varies:
				properties = append(properties, property(pair.Key, []byte(pair.Value)))
			}
		}
		if spec.Origin != (driver.ID{}) {
			properties = append(properties, property(driver.IDProperty, spec.Origin.Append(nil)))
		}
		k.common = len(properties)
		k.message = wire.Message{
			Topic: wire.ResourceOf(p.topic), UserProperties: properties, SystemProperties: wire.SystemProperties{
				Tag: []byte(p.opts.Tag), BodyEncoding: wire.EncodingIdentity, MessageType: t,
			},
		}
		p.kinds = append(p.kinds, k)
		if name := t.String(); messages == "" || messages == name {
			messages = name
		} else {
			messages = "MIXED"
		}
	}
	return messages, nil
}

func property(key string, value []byte) wire.UserPropertiesEntry {
	return wire.UserPropertiesEntry{Key: []byte(key), Value: value}
}

// control reports whether a text has control characters, as Java judges that.
func control(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}

func (p *producer) open(ctx context.Context, spec *driver.ProducerSpec) error {
	c := p.lease.Conn
	seed := make([]byte, (idSeed-2)/2)
	_, _ = rand.Read(seed)
	copy(p.id[:], fmt.Sprintf("01%X", seed))
	p.client = newClient(c, &spec.Connection, p.topic, "")
	p.client.settings = wire.Settings{
		ClientType: wire.ClientTypeProducer, PubSub: wire.SettingsPublishing,
		Publishing: wire.Publishing{Topics: []wire.Resource{p.client.topic}, ValidateMessageType: true},
	}
	p.client.ended = p.End
	if p.opts.Transactional {
		p.tx = p.d.open.Of(p.opts.RollbackPercent, p.opts.UnknownPercent)
		p.client.orphaned = p.checkBack
	}
	if err := p.client.open(ctx, spec.Connection.Stages); err != nil {
		return err
	}
	attaching := p.client.opened
	if _, err := p.client.queues(ctx, "written", wire.PermissionWrite, wire.PermissionReadWrite); err != nil {
		return err
	}
	limit := cmp.Or(spec.SendTimeout, p.opts.SendTimeout)
	p.request = request{
		of: p.client, call: newMethod(wire.CallSendMessage, limit), to: p, limit: limit,
		credit: driver.NewMeter(), socket: driver.NewMeter(),
	}
	spec.Connection.Stages.Ended(driver.StageAttach, attaching)
	return nil
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	k := &p.kinds[m.Variant]
	body := m.BodyOr(k.body)
	p.encode(k, m, len(body))
	r := &p.request
	r.parts = [3][]byte{p.head, p.message, body}
	r.arg, r.more = uint64(m.Slot), m.More
	p.inFlight.Add(1)
	err := p.lease.Conn.start(ctx, r)
	if err != nil {
		p.inFlight.Done()
	}
	return transport.SendError(ctx, p.op, err)
}

// encode encodes a message up to its body, and the head of the request.
func (p *producer) encode(k *kind, m *driver.Message, size int) {
	p.counter++
	n := p.counter
	for at := idSize - 1; at >= idSeed; at-- {
		p.id[at] = "0123456789ABCDEF"[n&15]
		n >>= 4
	}
	list := k.message.UserProperties[:k.common]
	for i, value := range m.Values {
		list[i].Value = value
	}
	p.at.Value = strconv.AppendInt(p.at.Value[:0], m.Time, 10)
	list = append(list, p.at)
	if m.ID != (driver.ID{}) {
		p.number.Value = m.ID.Append(p.number.Value[:0])
		list = append(list, p.number)
	}
	if p.tx != nil {
		p.plan.Value = append(p.plan.Value[:0], p.tx.Plan(m.Slot, p.counter))
		list = append(list, p.plan)
	}
	k.message.UserProperties = list
	system := &k.message.SystemProperties
	system.MessageID, system.BornTimestamp = p.id[:], wire.TimeOf(m.Time)
	if p.delay > 0 {
		system.DeliveryTimestamp = wire.TimeOf(time.Now().UnixMicro() + p.delay)
	}
	p.group = append(p.group[:0], cmp.Or(m.Group, k.group)...)
	system.MessageGroup = p.group
	p.message = wire.AppendBodyHead(k.message.Append(p.message[:0]), size)
	p.head = wire.AppendSendHead(p.head[:0], p.message, size)
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(context.Context) error {
	p.lease.Conn.Out.Flush()
	return nil
}

// answer implements [caller].
func (p *producer) answer(arg uint64, body []byte, err error) {
	slot := driver.Slot(arg)
	var stored wire.SendResultEntry
	if err == nil {
		r := &p.answered
		if err = wire.Read(body, r); err != nil {
			err = malformed("an answer to a message: %w", err)
		} else if len(r.Entries) > 0 && r.Entries[0].Status.Code != 0 {
			stored = r.Entries[0]
			err = codeError(&stored.Status)
		}
		if err == nil {
			err = codeError(&r.Status)
		}
	}
	var o driver.Outcome
	if err != nil {
		o = outcome(p.op, err)
	} else if p.tx != nil {
		o.Withheld = p.half(slot, &stored)
	}
	p.done.Done(slot, o)
	p.inFlight.Done()
}

// half is called when the broker has stored a half message: it commits the message, rolls it back or leaves it open, as
// planned. It reports whether it was rolled back.
func (p *producer) half(slot driver.Slot, stored *wire.SendResultEntry) (withheld bool) {
	plan := p.tx.Half(slot, func(number uint64) []byte {
		return fmt.Appendf(append([]byte(nil), p.id[:idSeed]...), "%016X", number)
	})
	if plan != rocketmq.PlanOpen {
		p.endTransaction(plan, wire.TransactionSourceSourceClient, stored.MessageID, stored.TransactionID)
	}
	return plan == rocketmq.PlanRollback
}

// endTransaction tells the end of a transaction, for the reader of the connection, which must not wait. If that gets
// lost, the broker checks back.
func (p *producer) endTransaction(plan byte, source wire.TransactionSource, message, transaction []byte) {
	end := &wire.EndTransactionRequest{
		Topic: p.client.topic, MessageID: bytes.Clone(message), TransactionID: bytes.Clone(transaction),
		Resolution: wire.TransactionResolutionCommit, Source: source,
	}
	if plan == rocketmq.PlanRollback {
		end.Resolution = wire.TransactionResolutionRollback
	}
	p.ends.Go(func() {
		ctx, cancel := context.WithTimeout(p.client.life, callLimit)
		defer cancel()
		_, _ = p.client.ask(ctx, "", wire.CallEndTransaction, end)
	})
}

// checkBack answers a check-back of the broker. The message may be of a producer that has gone.
func (p *producer) checkBack(c *wire.RecoverOrphanedTransactionCommand) {
	for _, property := range c.Message.UserProperties {
		if string(property.Key) == rocketmq.PropPlan && len(property.Value) == 1 {
			plan, id := property.Value[0], c.Message.SystemProperties.MessageID
			p.tx.Checked(plan, id)
			p.endTransaction(plan, wire.TransactionSourceSourceServerCheck, id, c.TransactionID)
		}
	}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) (err error) {
	if p.closed {
		return nil
	}
	p.closed = true
	p.lease.Conn.Out.Flush()
	stop := context.AfterFunc(ctx, func() {
		p.lease.Conn.endCalls(errAbandoned, func(s *stream) bool { return s.to == caller(p) })
	})
	p.inFlight.Wait() // also for an answer that the connection's reader is handling
	stop()
	if p.tx != nil {
		err = p.tx.WaitChecks(ctx, p.op, p.lease.Conn.Dead)
	}
	p.lease.Leave(ctx, p.stages, func(ctx context.Context) {
		p.ends.Wait() // each is bounded
		p.client.leave(ctx)
		p.lease.Release(ctx)
	})
	return err
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.lease.Conn.Host() }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{
		Credit: p.request.credit.Wait(), Socket: p.request.socket.Wait(),
		Reader: p.lease.Conn.Raw.Reading(),
	}
}

// Counters implements [driver.Counting].
func (p *producer) Counters() []driver.Counter {
	if p.tx == nil {
		return nil
	}
	return p.tx.Counters()
}
