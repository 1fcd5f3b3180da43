package goamqp

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/pkg/driver"
)

// frameOverhead is what a message may grow by beside its body: the head of its frame, and numbers that get longer.
const frameOverhead = 256

// handoverGrace is how long Send waits, after its context has ended, for a message that the library already has: it
// may be stuck behind a full session window or a full TCP buffer.
const handoverGrace = 250 * time.Millisecond

// producer is a [driver.Producer] on a session of its own.
type producer struct {
	op      string
	conn    *connection
	session *amqp.Session
	link    *amqp.Sender
	done    driver.Completions
	settled bool              // at-most-once
	how     *amqp.SendOptions // of Send, which sends settled messages
	maxBody int               // 0 for no limit but the broker's

	kinds []kind // by variant

	// Of the one handover that is under way.
	msg      *amqp.Message
	time     int64
	id       string // on idText: changes with it
	idText   [driver.MaxIDText]byte
	handover handover
	phase    atomic.Int32 // who ends it: the slot or Send
	handed   chan error   // from the slot to Send
	overdue  bool         // Send has left before the slot answered

	slots   []*slot // by driver.Slot; nil until first used
	running sync.WaitGroup
	waits   context.Context // ends the waiting for dispositions
	giveUp  context.CancelFunc
	closed  bool
}

// kind is a prepared message.
type kind struct {
	msg      amqp.Message
	plain    map[string]any // application properties without an ID
	numbered map[string]any // and with one
}

// Phases of a handover.
const (
	phaseOpen     = iota
	phaseAnswered // the slot's goroutine answers Send
	phaseLeft     // Send has returned nil; the slot's goroutine reports by Done alone
)

// slot is one message in flight.
type slot struct {
	id    driver.Slot
	tag   [4]byte
	start chan struct{}
}

// Producer implements [driver.Driver].
func (d *amqpDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	if spec.CommitInterval > 0 {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "leave out --commit-interval",
			"transactions are not supported over AMQP")
	}
	conn, err := d.acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	if err = conn.checkProducer(op, &spec, &d.cfg.opts); err == nil {
		err = conn.prepareSend(ctx, op, &spec, &d.cfg.opts)
	}
	if err != nil {
		conn.leave(ctx, nil)
		return nil, err
	}
	p := &producer{
		op: "send to " + spec.Destination.String(), conn: conn, done: done,
		settled: d.cfg.opts.Settle == settleAtMostOnce, handed: make(chan error, 1),
	}
	if err := p.open(ctx, spec); err != nil {
		err = conn.explain(op, err)
		conn.leave(ctx, p.session)
		return nil, err
	}
	p.prepare(spec)
	p.waits, p.giveUp = context.WithCancel(context.Background())
	return p, nil
}

func (p *producer) open(ctx context.Context, spec driver.ProducerSpec) (err error) {
	if p.session, err = p.conn.newSession(ctx); err != nil {
		return err
	}
	mode := amqp.SenderSettleModeUnsettled
	if p.settled {
		mode = amqp.SenderSettleModeSettled
	}
	opts := &amqp.SenderOptions{
		Name:               spec.Name,
		SettlementMode:     &mode,
		TargetCapabilities: []string{spec.Destination.Kind.String()},
		TargetDurability:   p.conn.durability(),
	}
	open := func() (*amqp.Sender, error) {
		return p.session.NewSender(ctx, p.conn.address(spec.Destination), opts)
	}
	if p.link, err = attach(p.conn.dialect, open); p.conn.disagrees(ctx, err) {
		// The peer leaves it to the sender, message by message: the same, said otherwise.
		opts.SettlementMode, p.how = nil, &amqp.SendOptions{Settled: true}
		if p.session, err = p.conn.anotherSession(ctx, p.session); err == nil {
			p.link, err = attach(p.conn.dialect, open)
		}
	}
	return err
}

// prepare makes the messages of which each send changes the time and the ID only.
func (p *producer) prepare(spec driver.ProducerSpec) {
	for i := range spec.Variants {
		p.kinds = append(p.kinds, p.kind(&spec, &spec.Variants[i]))
	}
	if p.settled && !p.conn.splitsSettled() {
		p.setID(&driver.ID{Run: math.MaxInt64, Producer: math.MaxInt64, Number: math.MaxInt64, Sum: math.MaxInt64})
		empty := p.kinds[0].msg
		empty.Data, empty.ApplicationProperties = nil, p.kinds[0].numbered
		text, _ := empty.MarshalBinary() // an error comes again when a message is sent
		p.maxBody = max(1, p.conn.driver.cfg.opts.MaxFrameSize-len(text)-frameOverhead)
	}
}

func (p *producer) kind(spec *driver.ProducerSpec, v *driver.Variant) kind {
	header := &amqp.MessageHeader{Durable: spec.Persistent, Priority: 4, TTL: spec.TTL}
	if v.Priority >= 0 {
		header.Priority = uint8(min(v.Priority, 9)) //nolint:gosec // 0 to 9
	}
	k := kind{plain: map[string]any{}, numbered: map[string]any{}}
	for _, prop := range v.Properties {
		k.plain[prop.Key], k.numbered[prop.Key] = prop.Value, prop.Value
	}
	if spec.Origin != (driver.ID{}) {
		k.plain[driver.IDProperty] = string(spec.Origin.Append(nil))
	}
	// The library encodes the values that these point to, as long and string, so that none is boxed per message.
	k.plain[driver.TimeProperty], k.numbered[driver.TimeProperty] = &p.time, &p.time
	k.numbered[driver.IDProperty] = &p.id
	k.msg = amqp.Message{Header: header, Data: [][]byte{v.Body}}
	if v.Group != "" {
		k.msg.Properties = &amqp.MessageProperties{GroupID: &v.Group}
	}
	return k
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	kind := &p.kinds[m.Variant]
	if size := len(kind.msg.Data[0]); p.maxBody > 0 && size > p.maxBody {
		return driver.Errorf(driver.ClassTooLarge, p.op, "raise -o max-frame-size, or leave out -o settle=at-most-once",
			"%s takes settled messages only in one frame: this one has %d bytes, %d would do",
			p.conn.title(), size, p.maxBody)
	}
	if p.overdue {
		select {
		case err := <-p.handed:
			_ = err // reported by Done
			p.overdue = false
		case <-ctx.Done():
			return p.noLeave(ctx)
		}
	}
	p.time, p.msg = m.Time, &kind.msg
	p.msg.ApplicationProperties = kind.plain
	if m.ID != (driver.ID{}) {
		p.setID(&m.ID)
		p.msg.ApplicationProperties = kind.numbered
	}
	s := p.slot(m.Slot)
	p.msg.DeliveryTag = s.tag[:]
	p.handover.begin(ctx.Done())
	p.phase.Store(phaseOpen)
	s.start <- struct{}{}
	select {
	case err := <-p.handed:
		return p.sendError(ctx, err)
	case <-ctx.Done():
		return p.hurry(ctx)
	}
}

// setID makes id the ID of the message that is handed over next, without allocating: the library reads the string while it
// encodes the message, and the next one comes after that.
func (p *producer) setID(id *driver.ID) {
	text := id.Append(p.idText[:0])
	p.id = unsafe.String(&text[0], len(text))
}

// hurry ends a Send whose context has ended. A message that waits for credit is given back by the library at once; one
// that it has taken already is left to its slot's goroutine.
func (p *producer) hurry(ctx context.Context) error {
	timer := time.NewTimer(handoverGrace)
	defer timer.Stop()
	select {
	case err := <-p.handed:
		return p.sendError(ctx, err)
	case <-timer.C:
	}
	if p.phase.CompareAndSwap(phaseOpen, phaseLeft) {
		p.overdue = true
		return nil
	}
	return p.sendError(ctx, <-p.handed)
}

func (p *producer) sendError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if isCreditError(err) && ctx.Err() != nil {
		return p.noLeave(ctx)
	}
	return p.conn.explain(p.op, err)
}

func (p *producer) noLeave(ctx context.Context) error {
	return driver.Errorf(driver.ClassTimeout, p.op,
		"the broker holds senders back: look for a full address, a full disk, an alarm (RabbitMQ) or a blocked producer on its console",
		"the broker gave no leave to send (no credit): %w", ctx.Err())
}

// slot returns the slot, with its goroutine running.
func (p *producer) slot(id driver.Slot) *slot {
	index := id.Index()
	for int(index) >= len(p.slots) {
		p.slots = append(p.slots, nil)
	}
	s := p.slots[index]
	if s == nil {
		s = &slot{start: make(chan struct{}, 1)}
		binary.BigEndian.PutUint32(s.tag[:], index)
		p.slots[index] = s
		p.running.Go(func() {
			for range s.start {
				p.transfer(s)
			}
		})
	}
	s.id = id
	return s
}

// transfer sends the prepared message, lets Send return, and reports how it ended.
func (p *producer) transfer(s *slot) {
	var receipt amqp.SendReceipt
	var err error
	if p.settled {
		err = p.link.Send(&p.handover, p.msg, p.how)
	} else {
		receipt, err = p.link.SendWithReceipt(&p.handover, p.msg, nil)
	}
	left := err == nil || !isCreditError(err) && !isTooLarge(err) && !p.handover.recall()
	var answer error
	if !left {
		answer = err
	}
	toSend := p.phase.CompareAndSwap(phaseOpen, phaseAnswered)
	p.handed <- answer
	switch {
	case !left && toSend: // Send returns the error
	case !left:
		p.done.Done(s.id, driver.Outcome{State: driver.Failed, Class: driver.ClassTimeout, Err: p.conn.explain(p.op, err)})
	case err != nil:
		p.done.Done(s.id, p.lost(err))
	case p.settled:
		if err := p.conn.net.barrier(); err != nil {
			p.done.Done(s.id, p.lost(err))
			return
		}
		p.done.Done(s.id, driver.Outcome{})
	default:
		p.done.Done(s.id, p.outcome(p.disposition(&receipt)))
	}
}

// disposition waits for the broker's answer.
func (p *producer) disposition(receipt *amqp.SendReceipt) (amqp.DeliveryState, error) {
	state, err := receipt.Wait(p.waits)
	// When the answer and the end of the link are both there the library picks either; the answer is what counts. It
	// picks evenly, so asking again ten times finds an answer that is there with all but certainty.
	for i := 0; err != nil && i < 10; i++ {
		if state, again := receipt.Wait(p.waits); again == nil {
			return state, nil
		}
	}
	return state, err
}

// lost is the outcome of a message that has left, or may have, and will not be answered.
func (p *producer) lost(err error) driver.Outcome {
	if errors.Is(err, context.Canceled) {
		return driver.Outcome{
			State: driver.Unknown, Class: driver.ClassTimeout,
			Err: driver.Errorf(driver.ClassTimeout, p.op, "is the broker overloaded, or does it hold senders back? Look for a full address, an alarm (RabbitMQ: memory, disk) or a blocked producer; see --drain-timeout",
				"the broker had not answered when the producer closed"),
		}
	}
	e := p.conn.explain(p.op, err)
	return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(e), Err: e}
}

// outcome translates the broker's answer (AMQP 1.0, Messaging, section 3.4).
func (p *producer) outcome(state amqp.DeliveryState, err error) driver.Outcome {
	if err != nil {
		return p.lost(err)
	}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return driver.Outcome{}
	case *amqp.StateRejected:
		if state.Error == nil {
			return driver.Outcome{
				State: driver.Rejected, Class: driver.ClassOther,
				Err: driver.Errorf(driver.ClassOther, "", lookAtBroker, "the broker rejected the message without saying why"),
			}
		}
		e := p.conn.explain(p.op, state.Error)
		return driver.Outcome{State: driver.Rejected, Class: driver.ClassOf(e), Err: e}
	case *amqp.StateReleased:
		return driver.Outcome{State: driver.Released, Class: driver.ClassOther}
	case *amqp.StateModified:
		return driver.Outcome{State: driver.Modified, Class: driver.ClassOther}
	default:
		return driver.Outcome{
			State: driver.Unknown, Class: driver.ClassProtocol,
			Err: driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "the broker settled the message without saying what became of it"),
		}
	}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	p.closed = true
	for _, s := range p.slots {
		if s != nil {
			close(s.start)
		}
	}
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		p.running.Wait()
	}()
	select {
	case <-settled:
	case <-ctx.Done():
		p.giveUp()
		p.conn.abandon(settled)
	}
	p.giveUp()
	p.conn.leave(ctx, p.session)
	return nil
}
