package rocketmq

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	if p.batch != nil {
		return p.batch.add(ctx, m)
	}
	k := &p.kinds[m.Variant]
	list, next := *p.brokers.Load(), &p.next
	if p.targets != nil {
		err := p.checkReply(m)
		var t *target
		if err == nil {
			t, p.requester, err = p.targetOf(ctx, m)
		}
		if err != nil {
			p.refuse(m.Slot, err)
			return nil
		}
		list, next = t.brokers, &t.next
	}
	b, number, err := p.queue(list, next, cmp.Or(m.Group, k.group))
	if err != nil {
		return err
	}
	body := m.BodyOr(k.body)
	head := p.header(b, number, k, m, m.Time, body)
	synchronous := p.opts.Send == sendSync
	if synchronous {
		select {
		case <-p.synced: // of a Send that ended before its answer
		default:
		}
	}
	more := m.More && !synchronous
	p.hold(b.conn)
	p.inFlight.Add(1)
	e := call{to: p, arg: uint64(m.Slot), limit: p.limit}
	if p.opts.Send == sendOneWay {
		e.oneWay, e.limit = true, unlimited
	}
	if err = b.conn.submit(ctx, p.socket, head, body, more, e); err != nil {
		p.inFlight.Add(-1)
		return wrap(p.op, err)
	}
	if !more {
		p.held = nil
	}
	if synchronous {
		p.answers.Begin()
		select {
		case <-p.synced:
		case <-ctx.Done(): // Done will follow
		}
		p.answers.End()
	}
	return nil
}

// hold records that the next message on the connection may wait for more.
func (p *producer) hold(c *conn) {
	if p.held != c {
		p.flushHeld()
		p.held = c
	}
}

// flushHeld flushes the messages that wait for more.
func (p *producer) flushHeld() {
	if p.held != nil {
		p.held.Out.Flush()
		p.held = nil
	}
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(ctx context.Context) error {
	if p.batch != nil {
		p.batch.sendIf(ctx, true, anyBatch)
	}
	p.flushHeld()
	return nil
}

// queue returns the next queue of a reachable broker, or the queue of a group, chosen as other clients do.
func (p *producer) queue(list sendBrokers, next *int, group string) (b *sendBroker, number int, err error) {
	queues := list.queues()
	if group != "" {
		if b, number = list.queue(int(fold(group) % uint32(queues))); b.conn.Dead() {
			err = wrap(p.op, b.conn.Why())
		}
		return b, number, err
	}
	for range queues {
		b, number = list.queue(*next)
		*next = (*next + 1) % queues
		if !b.conn.Dead() {
			return b, number, nil
		}
	}
	return nil, 0, wrap(p.op, list[0].conn.Why())
}

// reachable returns an error if no broker is reachable for messages of a group, or without one.
func (p *producer) reachable(group string) error {
	list := *p.brokers.Load()
	if group != "" {
		_, _, err := p.queue(list, nil, group)
		return err
	}
	if slices.ContainsFunc(list, func(b *sendBroker) bool { return !b.conn.Dead() }) {
		return nil
	}
	return wrap(p.op, list[0].conn.Why())
}

// header builds the header of a request with that body: for a message of a kind, or, if k is nil, for a batch. It is
// valid until the next call.
func (p *producer) header(
	to *sendBroker, queue int, k *kind, m *driver.Message, born int64, body []byte,
) []byte {
	b := append(p.head[:0], to.prefix...)
	b = wire.AppendInt(b, "e", int64(queue))
	b = wire.AppendInt(b, "f", int64(p.sysFlag))
	b = wire.AppendInt(b, "g", born/1000) // in milliseconds
	b = wire.AppendField(b, "h", "0")     // flag
	b, at := wire.OpenField(b, "i")
	if m != nil {
		b = p.appendProperties(b, k, m)
	} else { // an empty value is not allowed: the broker would sign "null" in its place
		b = wire.AppendProperty(b, wire.PropWait, "true")
	}
	wire.CloseField(b, at)
	b = append(b, to.suffix...)
	b = p.sign.Sign(b, body)
	wire.EndFrame(b, len(body))
	p.head = b
	return b
}

// appendProperties appends the properties of a message.
func (p *producer) appendProperties(b []byte, k *kind, m *driver.Message) []byte {
	at := len(b) + k.groupAt
	b = append(b, k.properties...)
	copy(b[at:], m.Group)
	for i, value := range m.Values {
		b = wire.AppendProperty(b, k.varying[i], value)
	}
	b = wire.AppendIntProperty(b, driver.TimeProperty, m.Time)
	if m.ID != (driver.ID{}) {
		b = append(m.ID.Append(append(append(b, driver.IDProperty...), wire.NameEnd)), wire.PropertyEnd)
	}
	if p.tx != nil {
		b = wire.AppendProperty(b, PropPlan, []byte{p.tx.Plan(m.Slot, p.counter+1)})
	}
	if len(m.Correlation) > 0 {
		b = p.appendReply(b, m)
	}
	// The unique key: without it brokers and tools cannot identify the message.
	p.counter++
	appendKey(p.id[:idSeed], p.counter)
	return wire.AppendProperty(b, wire.PropUniqueKey, p.id[:])
}

// appendKey appends the number of a message to the seed of its unique key.
func appendKey(seed []byte, number uint64) []byte {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], number)
	return hex.AppendEncode(seed, n[2:])
}

// answer processes the answer to a single message.
func (p *producer) answer(arg uint64, r *reply) {
	slot, o := driver.Slot(arg), outcome(p.op, r)
	if p.tx != nil && o.State == driver.Accepted {
		o.Withheld = p.half(slot, r)
	}
	p.done.Done(slot, o)
	if p.opts.Send == sendSync {
		transport.Notify(p.synced)
	}
	p.settled(1)
}

// settled counts sends that have ended.
func (p *producer) settled(n int64) {
	if p.inFlight.Add(-n) == 0 && p.closing.Load() {
		transport.Notify(p.idle)
	}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	if p.batch != nil {
		p.batch.stop(ctx)
	}
	p.flushHeld()
	p.closing.Store(true)
	if !p.waitIdle(ctx) {
		for _, c := range p.client.all() { // including connections that are no longer in the route
			c.endCalls(errAbandoned, func(e *call) bool {
				t, ok := e.to.(*batch)
				return e.to == p || ok && t.b == p.batch
			})
		}
		p.waitIdle(context.Background()) // messages that are being reported
	}
	var err error
	if p.tx != nil {
		err = p.tx.WaitChecks(ctx, p.op, func() bool { return p.reachable("") != nil })
	}
	if !p.client.part(p) {
		p.lease.ReleaseOnly(ctx, p.stages)
		return err
	}
	p.lease.Leave(ctx, p.stages, func(ctx context.Context) {
		p.unregister(ctx)
		p.lease.Release(ctx)
	})
	return err
}

// unregister leaves the group at the brokers. If that fails, the end of the connection does it.
func (p *producer) unregister(ctx context.Context) {
	ctx, cancel := p.d.leaving(ctx)
	defer cancel()
	for _, q := range *p.brokers.Load() {
		if !q.conn.Dead() && ctx.Err() == nil {
			_ = p.client.unregister(ctx, q.conn, "producerGroup", p.group)
		}
	}
}

func (p *producer) waitIdle(ctx context.Context) bool {
	for p.inFlight.Load() > 0 {
		select {
		case <-p.idle:
		case <-ctx.Done():
			return p.inFlight.Load() == 0
		}
	}
	return true
}

// properties returns the properties common to all messages of a variant.
func (p *producer) properties(spec *driver.ProducerSpec, v *driver.Variant) ([]byte, error) {
	var b []byte
	add := func(key, value string) {
		b = wire.AppendProperty(b, key, value)
	}
	if p.opts.Tag != "" {
		add(wire.PropTags, p.opts.Tag)
	}
	if p.level > 0 {
		add(wire.PropDelayLevel, strconv.Itoa(p.level))
	} else if spec.Delay > 0 {
		add(wire.PropTimerDelayMs, strconv.FormatInt(spec.Delay.Milliseconds(), 10))
	}
	const op = "check the properties"
	varying := 0 // bytes
	for _, pair := range v.Properties {
		switch {
		case pair.Key == "" || !wire.CarriesProperty(pair.Key) || !wire.CarriesProperty(pair.Value):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "",
				"RocketMQ allows neither empty names nor the characters 1 and 2 (%q=%q)", pair.Key, pair.Value)
		case slices.Contains(Reserved(), pair.Key):
			return nil, driver.Errorf(driver.ClassUnsupported, op, "rename it",
				"the name %s is one of RocketMQ's own or of ours", pair.Key)
		}
		if pair.Varies {
			varying += len(pair.Key) + len(pair.Value) + len("\x01\x02")
		} else {
			add(pair.Key, pair.Value)
		}
	}
	if spec.Origin != (driver.ID{}) {
		add(driver.IDProperty, string(spec.Origin.Append(nil)))
	}
	if v.Group != "" {
		add(wire.PropShardingKey, v.Group)
	}
	const limit = 30_000 // their length is an int16, and brokers add some
	if len(b)+varying > limit {
		return nil, driver.Errorf(driver.ClassTooLarge, op, "", "RocketMQ takes %d bytes of properties, not %d", limit,
			len(b)+varying)
	}
	return b, nil
}

// Reserved are the names with a meaning to brokers (MessageConst.STRING_HASH_SET) or to us.
func Reserved() []string {
	return append(strings.Fields(`
		KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID
		ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY
		MAX_RECONSUME_TIMES CONSUME_START_TIME TRAN_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES
		CHECK_IMMUNITY_TIME_IN_SECONDS TTL MSG_TYPE CLUSTER TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS
		CORRELATION_ID REPLY_TO_CLIENT ARRIVE_TIME PUSH_REPLY_TIME REPLY_TO
		INSTANCE_ID POP_CK __LITE_TOPIC _SYS_MSG_PRIORITY_ __SHARDINGKEY`),
		driver.TimeProperty, driver.IDProperty, PropPlan)
}

// readProperties extracts our own properties: the time, the ID, and whether the message was left open.
func readProperties(properties []byte, ids *driver.IDReader, d *driver.Delivery) {
	d.Time, d.HasTime, d.ID, d.Deferred = 0, false, driver.ID{}, false
	for len(properties) > 0 {
		var name, value []byte
		switch name, value, properties = wire.CutProperty(properties); string(name) {
		case driver.TimeProperty:
			d.Time, d.HasTime = wire.ParseInt(value)
		case driver.IDProperty:
			d.ID = ids.Read(value)
		case PropPlan:
			d.Deferred = len(value) > 0 && value[0] == PlanOpen
		}
	}
}

// bodyOf returns the body of a message, valid until the next call.
func bodyOf(m *wire.Message, z *wire.Inflater, maxBody int) ([]byte, error) {
	if m.SysFlag&wire.SysCompressed == 0 {
		if len(m.Body) > maxBody {
			return nil, transport.TooLarge("", "a message of", len(m.Body), maxBody)
		}
		return m.Body, nil
	}
	body, err := z.Inflate(m.SysFlag, m.Body, maxBody)
	switch {
	case errors.Is(err, wire.ErrCompression):
		return nil, driver.Errorf(driver.ClassUnsupported, "", "let the producer compress with zlib, or not at all", "%w",
			err)
	case errors.Is(err, wire.ErrTooLong):
		return nil, driver.Errorf(driver.ClassTooLarge, "", transport.HintLarger,
			"a message of %d compressed bytes is more than the %d that perfmq accepts, once inflated", len(m.Body),
			maxBody)
	case err != nil:
		return nil, driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "read a message: its compressed body: %w", err)
	}
	return body, nil
}
