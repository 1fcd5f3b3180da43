package amqp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// producer is a [driver.Producer]: a sending link in a session of its own.
//
// A message is encoded once per variant; a send copies it into the connection's buffer and fills in its delivery ID and
// tag, time and ID. It never exceeds the credit of the link and the window of the session. Deliveries are in unsettled
// until the broker's disposition, which may cover a whole range.
type producer struct {
	sender
	transport.Notice
	op      string
	lease   *transport.Lease[*connection]
	done    driver.Completions
	kinds   []*wire.Template // by variant
	origin  []byte           // the ID of messages without their own; nil if there is none
	settled bool             // at-most-once
	tx      *transactions    // nil without transactions
	stages  driver.Stages
	idText  [driver.MaxIDText]byte
	scratch []byte // a message of several frames
	replies

	// Guarded by session.mu.
	unsettled transport.Tracker[delivery]
	closed    bool // Close waits for the last messages to end, or has done so

	ending sync.Mutex // one goroutine at a time reports ends, with slots
	slots  []driver.Slot
}

// Producer implements [driver.Driver].
func (d *amqpDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	lease, err := d.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	p := &producer{
		sender: newSender(driver.NewMeter(), driver.NewMeter()),
		op:     "send to " + spec.To(), lease: lease, done: done,
		settled: d.cfg.Options.Settle == settleAtMostOnce, stages: spec.Connection.Stages,
	}
	began := time.Now()
	p.owner = p
	if spec.CommitInterval > 0 {
		p.tx = &transactions{p: p, size: spec.CommitInterval, commits: spec.Commits, answers: driver.NewMeter()}
	}
	if err := p.open(ctx, &spec); err != nil {
		p.quit(ctx)
		return nil, transport.Explain("open a producer on "+spec.To(), err)
	}
	p.stages.Ended(driver.StageAttach, began)
	return p, nil
}

func (p *producer) open(ctx context.Context, spec *driver.ProducerSpec) (err error) {
	c, opts := p.lease.Conn, &p.lease.Conn.driver.cfg.Options
	if p.tx != nil && p.settled {
		return driver.Errorf(driver.ClassUnsupported, "", "leave out -o settle=at-most-once or --commit-interval",
			"transactions are confirmed by their commit")
	}
	if err := c.prepareSend(ctx, spec, opts); err != nil {
		return err
	}
	if err := c.authorize(ctx, c.address(spec.Destination)); err != nil {
		return err
	}
	if err := p.encodeVariants(spec, c.to(spec.Destination)); err != nil {
		return err
	}
	if p.s, err = c.beginSession(ctx, false); err != nil {
		return err
	}
	p.requests = spec.Requests
	attach := wire.Attach{
		Name: spec.Name, Role: wire.RoleSender, InitialDeliveryCount: wire.Some[uint32](0),
		Source: wire.Terminus{Kind: wire.DescSource, Address: wire.Some(spec.Name)},
		Target: wire.Terminus{
			Kind: wire.DescTarget, Address: wire.Some(c.address(spec.Destination)), Durable: c.durability(),
			Capabilities: []string{spec.Destination.Kind.String()},
		},
	}
	if spec.Anonymous {
		attach.Target = wire.Terminus{Kind: wire.DescTarget}
	}
	if p.settled {
		attach.SenderSettleMode = wire.SenderSettled
	}
	if err := p.s.attach(ctx, &p.link, &attach); err != nil {
		return err
	}
	if mode := p.peer.SenderSettleMode; mode != attach.SenderSettleMode && mode != wire.SenderMixed {
		return disagrees(opts)
	}
	if p.tx != nil {
		return p.tx.begin(ctx, spec.Name)
	}
	return nil
}

func disagrees(o *Options) error {
	return driver.Errorf(driver.ClassUnsupported, "", "use the other value of -o settle",
		"the broker does not agree to settle=%s", o.Settle)
}

// encodeVariants encodes the messages, with that property to, or none if it is nil.
func (p *producer) encodeVariants(spec *driver.ProducerSpec, to []byte) error {
	if spec.Origin != (driver.ID{}) {
		p.origin = spec.Origin.Append(nil)
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		if v.Text && !utf8.Valid(v.Body) {
			return protocol.AMQPTextNotUTF8("")
		}
		content := wire.Content{
			Header:     wire.Header{Durable: spec.Persistent},
			Properties: wire.Properties{To: to},
			TimeKey:    driver.TimeProperty, IDKey: driver.IDProperty, Varying: v.Varying(), Body: v.Body, Text: v.Text,
		}
		if v.Priority >= 0 {
			content.Header.Priority = wire.Some(uint8(min(v.Priority, 9))) //nolint:gosec // 0 to 9
		}
		if ms := spec.TTL.Milliseconds(); spec.TTL > 0 {
			content.Header.TTL = wire.Some(uint32(min(max(ms, 1), 1<<32-1))) //nolint:gosec // in range
		}
		if spec.Delay > 0 {
			content.Annotations = []wire.Property{{Key: "x-opt-delivery-delay", Value: spec.Delay.Milliseconds()}}
		}
		if v.FilterValue != "" {
			value := wire.Property{Key: "x-stream-filter-value", Value: v.FilterValue}
			content.Annotations = append(content.Annotations, value)
		}
		if p.groups = append(p.groups, []byte(v.Group)); v.Group != "" {
			content.Properties.GroupID = []byte(v.Group)
		}
		for _, p := range v.Properties {
			if !p.Varies {
				content.Application = append(content.Application, wire.Property{Key: p.Key, Value: p.Value})
			}
		}
		t, err := wire.NewTemplate(&content)
		if err != nil {
			return &driver.Error{Class: driver.ClassUnsupported, Hint: "choose other --property values", Err: err}
		}
		p.kinds = append(p.kinds, t)
	}
	return nil
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.lease.Conn.Host() }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	w := driver.Waits{Credit: p.creditWait.Wait(), Socket: p.socket.Wait(), Reader: p.lease.Conn.Raw.Reading()}
	if p.tx != nil {
		w.Answer = p.tx.answers.Wait()
	}
	return w
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	if p.tx != nil && ctx.Err() == nil {
		_ = p.tx.flush(ctx) // messages without a commit end as unknown
	}
	p.lease.Conn.Out.Flush()
	for ended := false; p.pending() && !ended; {
		select {
		case <-p.granted:
		case <-p.lease.Conn.Over():
			ended = true
		case <-ctx.Done():
			ended = true
		}
	}
	p.lease.Leave(ctx, p.stages, p.quit)
	return nil
}

// pending reports whether some messages have not ended. From now on a signal follows when the last one has.
func (p *producer) pending() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.closed = true
	return p.unsettled.Len() > 0
}

// quit ends the remaining deliveries, the session and the link, and releases the connection.
func (p *producer) quit(ctx context.Context) {
	if c := p.lease.Conn; p.s != nil {
		err := transport.Explain(p.op, c.Why())
		if err == nil {
			err = transport.NoAnswer(p.op, "-o idle-timeout")
		}
		p.finish(0, math.MaxUint32, unknown(err))
		if c.detaches() && ctx.Err() == nil {
			_ = p.s.detach(ctx, &p.link) // the end of the session does it as well
		}
		p.s.close(ctx)
	}
	p.lease.Release(ctx)
}

// sender is the sending end of a link: it sends no delivery beyond the link's credit, and no frame beyond the window of
// the session. Only one goroutine at a time sends.
type sender struct {
	link
	creditWait *driver.Meter // waits for credit or a window
	socket     *driver.Meter // waits for the connection to take more
	granted    chan struct{} // there may be credit and a window
	stopped    chan struct{} // closed when nothing more can be sent
	why        error         // the reason for stopped; guarded by session.mu until stopped is closed
	tag        [4]byte
}

func newSender(creditWait, socket *driver.Meter) sender {
	return sender{creditWait: creditWait, socket: socket, granted: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// wake implements owner.
func (l *sender) wake() { transport.Notify(l.granted) }

// stop ends sending. Only the first reason counts.
func (l *sender) stop(why error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.halt(why)
}

// halt is stop with the session's lock held.
func (l *sender) halt(why error) {
	if l.why == nil {
		l.why = why
		close(l.stopped)
	}
}

// maySend reports whether a frame may be sent; first: it begins a delivery. The session's lock is held.
func (l *sender) maySend(first bool) bool {
	return l.why == nil && l.s.room > 0 && (!first || l.credit > 0)
}

// lock waits until a frame may be sent; first: it begins a delivery. It returns the buffer to append to, with the locks
// of output and session: unlock has to follow.
func (l *sender) lock(ctx context.Context, first bool) ([]byte, error) {
	out, s := l.s.c.Out, l.s
	for {
		b, err := out.Lock(ctx, l.socket)
		s.mu.Lock()
		if err == nil && l.maySend(first) {
			return b, nil
		}
		why := l.why
		s.mu.Unlock()
		if err == nil {
			out.Unlock(b, false) // earlier messages need not wait for this one
		}
		switch {
		case why != nil:
			return nil, why
		case err != nil && ctx.Err() != nil:
			return nil, err
		}
		err = nil // if the connection has ended, the reader knows the reason
		l.creditWait.Begin()
		select {
		case <-l.granted:
		case <-l.stopped:
		case <-ctx.Done():
			err = fmt.Errorf("the broker granted no credit to send: %w", ctx.Err())
		}
		l.creditWait.End()
		if err != nil {
			return nil, err
		}
	}
}

func (l *sender) unlock(b []byte, more bool) {
	l.s.mu.Unlock()
	l.s.c.Out.Unlock(b, more)
}

// beginDelivery returns the head of the next delivery, valid until the next call.
func (l *sender) beginDelivery(settled bool, state []byte) wire.Transfer {
	id := l.s.nextID
	l.s.nextID++
	l.deliveryCount++
	l.credit--
	binary.BigEndian.PutUint32(l.tag[:], id)
	return wire.Transfer{
		Handle: l.handle, DeliveryID: wire.Some(id), DeliveryTag: l.tag[:], MessageFormat: wire.Some[uint32](0),
		Settled: settled, State: state,
	}
}

// endFrame ends the frame that begins at b[at].
func (l *sender) endFrame(b []byte, at int) {
	wire.EndFrame(b, at)
	l.s.nextOut++
	l.s.room--
}

// request sends a message of one frame, once there is credit for it; sent receives its delivery ID before it leaves.
// With more, another frame or a flush follows at once.
func (l *sender) request(ctx context.Context, message []byte, settled, more bool, sent func(id uint32)) error {
	b, err := l.lock(ctx, true)
	if err != nil {
		return err
	}
	head := l.beginDelivery(settled, nil)
	sent(head.DeliveryID.V)
	at := len(b)
	b = append(head.AppendHead(b, l.s.channel), message...)
	l.endFrame(b, at)
	l.unlock(b, more)
	return nil
}
