package stomp

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// timeHeader is the header that carries the time of sending, as decimal text: headers of STOMP have no types.
const timeHeader = driver.TimeProperty

// producer is a [driver.Producer].
type producer struct {
	transport.Notice
	lease   *transport.Lease[*connection]
	conn    *connection
	op      string
	done    driver.Completions
	index   uint64     // in conn.producers
	heads   [][]byte   // of SEND frames by variant, up to the value of the time
	bodies  [][]byte   // by variant
	groups  []int      // where the groups are in heads
	varying [][]string // keys of the properties that vary, by variant
	ttl     time.Duration
	// confirm is false when a message is complete once it has been written.
	confirm bool
	tx      *sending // nil without transactions

	to      driver.Destination
	taken   bool // of the connection's reader: the broker has confirmed a message to the destination
	sends   *transport.InFlight
	written []driver.Slot // of Written

	stages driver.Stages
	socket *driver.Meter // waits for the connection to take more
	closed bool
}

// Producer implements [driver.Driver].
func (d *stompDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.To()
	if spec.CommitInterval > 0 && spec.MaxPending < spec.CommitInterval {
		return nil, driver.Errorf(driver.ClassOther, op, "raise --max-pending to at least --commit-interval",
			"a transaction of %d messages never fills with %d in flight",
			spec.CommitInterval, spec.MaxPending)
	}
	if spec.CommitInterval > 0 && !d.cfg.Options.Receipt {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "leave out -o receipt=false or --commit-interval",
			"transactions are confirmed by the receipt of their commit")
	}
	l, err := d.acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	p := &producer{
		lease: l, conn: l.Conn, op: "send to " + spec.To(), to: spec.Destination, done: done,
		socket: driver.NewMeter(), stages: spec.Connection.Stages,
		confirm: d.cfg.Options.Receipt && spec.CommitInterval == 0,
		sends:   transport.NewInFlight(spec.MaxPending, done),
	}
	if _, p.taken = d.took.Load(p.to); spec.Anonymous {
		p.taken = true // an error is about one address
	}
	if n := spec.CommitInterval; n > 0 {
		p.tx = &sending{p: p, interval: n, transactions: newTransactions(receiptOfCommit, spec.Commits)}
	}
	if err = p.prepare(&spec); err == nil {
		if p.index, err = enlist(p.conn, &p.conn.producers, p); p.tx != nil {
			p.tx.receipt.owner = p.index
		}
	}
	if err != nil {
		err = transport.Explain(op, err)
		l.Release(ctx)
		return nil, err
	}
	return p, nil
}

// prepare encodes the common part of the frames.
func (p *producer) prepare(spec *driver.ProducerSpec) error {
	d, opts := p.conn.dialect, &p.conn.driver.cfg.Options
	if d.expiresAbsolutely() {
		p.ttl = spec.TTL
	}
	common, err := d.send(spec, opts)
	if err != nil {
		return err
	}
	if spec.Origin != (driver.ID{}) {
		common = append(common, driver.Property{Key: driver.IDProperty, Value: string(spec.Origin.Append(nil))})
	}
	prefix, err := appendChecked([]byte("SEND\n"), common)
	if err != nil {
		return err
	}
	for i := range spec.Variants {
		variant := &spec.Variants[i]
		own, err := d.sendVariant(spec, variant, opts)
		if err != nil {
			return err
		}
		head, err := appendChecked(slices.Clip(prefix), own)
		if err != nil {
			return err
		}
		for _, h := range variant.Properties {
			switch {
			case slices.Contains(reservedHeaders(), h.Key),
				(spec.Requests || spec.Anonymous) && (h.Key == headerReplyTo || h.Key == headerCorrelation):
				return driver.Errorf(driver.ClassUnsupported, "", "choose another name",
					"the property %q is a header of STOMP's own", h.Key)
			case h.Key == "" || !wire.Carries(h.Key) || !wire.Carries(h.Value):
				return errCannotCarry("the property "+h.Key, h.Value)
			}
			if !h.Varies {
				head = wire.AppendHeader(head, h.Key, h.Value)
			}
		}
		p.varying = append(p.varying, variant.Varying())
		switch {
		case !variant.Text:
			head = wire.AppendHeader(head, "content-length", strconv.Itoa(len(variant.Body)))
		case bytes.IndexByte(variant.Body, 0) >= 0:
			return protocol.STOMPTextWithNUL("")
		}
		p.groups = append(p.groups, bytes.Index(head, []byte("\nJMSXGroupID:"))+len("\nJMSXGroupID:"))
		p.heads, p.bodies = append(p.heads, append(head, timeHeader+":"...)), append(p.bodies, variant.Body)
	}
	return nil
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	p.sends.Begin(m.Slot)
	out := p.conn.Out
	b, err := out.Lock(ctx, p.socket)
	if err != nil {
		if p.sends.Undo(m.Slot) {
			return transport.SendError(ctx, p.op, err)
		}
		return nil // the end of the connection has reported it
	}
	more := m.More
	if p.tx != nil {
		var committed bool
		had := p.tx.waits
		b, committed = p.tx.add(b, m)
		// Frames of an open transaction can wait, but not a COMMIT before them.
		p.tx.waits = more && (committed || p.tx.waits)
		more = more || !committed && !had
	} else {
		b = p.appendSend(b, m, nil)
		if !p.confirm {
			out.Confirm(p, m.Slot)
		}
	}
	out.Unlock(b, more)
	return nil
}

// TrySend implements [driver.TrySender]. It leaves messages that end with a transaction, or while they are written, to
// Send.
func (p *producer) TrySend(m *driver.Message) bool {
	if !p.confirm {
		return false
	}
	p.sends.Begin(m.Slot)
	b, ok := p.conn.Out.TryLock()
	if !ok {
		return !p.sends.Undo(m.Slot) // otherwise the end of the connection has reported it
	}
	p.conn.Out.Unlock(p.appendSend(b, m, nil), m.More)
	return true
}

// took notes that the broker has confirmed a message.
func (p *producer) took() {
	if !p.taken {
		p.taken = true
		p.conn.driver.took.Store(p.to, true)
	}
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.conn.Host() }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Reader: p.conn.Raw.Reading(), Socket: p.socket.Wait()}
}

// appendSend appends the SEND frame of m. transaction is the header line that adds it to a transaction.
func (p *producer) appendSend(b []byte, m *driver.Message, transaction []byte) []byte {
	at := len(b) + p.groups[m.Variant]
	b = append(b, p.heads[m.Variant]...)
	copy(b[at:], m.Group)
	b = strconv.AppendInt(b, m.Time, 10)
	for i, value := range m.Values {
		b = append(wire.AppendEscaped(append(b, '\n'), p.varying[m.Variant][i]), ':')
		b = wire.AppendEscaped(b, value)
	}
	if m.ID != (driver.ID{}) {
		b = m.ID.Append(append(b, "\n"+driver.IDProperty+":"...)) // no part of it needs escaping
	}
	if p.ttl > 0 {
		b = append(b, "\nexpires:"...)
		b = strconv.AppendInt(b, time.Now().Add(p.ttl).UnixMilli(), 10)
	}
	if p.confirm {
		b = append(b, "\nreceipt:"...)
		b = receipt{kind: receiptOfSend, owner: p.index, slot: m.Slot}.append(b)
	}
	b = append(b, transaction...)
	if len(m.Correlation) > 0 {
		b = appendReply(b, m)
	}
	b = append(b, "\n\n"...)
	return append(append(b, m.BodyOr(p.bodies[m.Variant])...), 0)
}

// The headers of requests and replies. Brokers map them to those of JMS.
const (
	headerReplyTo     = "reply-to"
	headerCorrelation = "correlation-id"
)

// appendReply appends the header lines of a request or reply.
func appendReply(b []byte, m *driver.Message) []byte {
	b = wire.AppendEscaped(append(b, "\n"+headerCorrelation+":"...), m.Correlation)
	if m.ReplyTo != "" {
		b = wire.AppendEscaped(append(b, "\n"+headerReplyTo+":"...), m.ReplyTo)
	}
	if len(m.To) > 0 {
		b = wire.AppendEscaped(append(b, "\ndestination:"...), m.To)
	}
	return b
}

// Written implements [transport.Writer]: without receipts a message ends when it is passed to the operating system.
func (p *producer) Written(slots []driver.Slot) {
	p.written = append(p.written[:0], slots...)
	p.sends.End(p.written, driver.Outcome{})
}

// abandon reports all messages in flight; lost reports whether the connection was lost.
func (p *producer) abandon(o driver.Outcome, lost bool) {
	if p.tx != nil {
		p.tx.abandon(o, lost)
	}
	p.sends.EndAll(o)
}

// Flush implements [driver.Flusher]: it commits a transaction that is not full.
func (p *producer) Flush(ctx context.Context) error {
	out := p.conn.Out
	if p.tx != nil && !p.closed {
		b, err := out.Lock(ctx, p.socket)
		if err != nil {
			return transport.SendError(ctx, p.op, err)
		}
		p.tx.mu.Lock()
		b = p.tx.commitOpen(b)
		p.tx.mu.Unlock()
		out.Unlock(b, false)
	}
	out.Flush()
	return nil
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	_ = p.Flush(ctx) // messages that it could not commit are reported below
	p.closed = true
	if !p.sends.Await(ctx) {
		p.abandon(driver.Outcome{
			State: driver.Unknown, Class: driver.ClassTimeout,
			Err: transport.NoAnswer(p.op, "-o heart-beat"),
		}, false)
		p.sends.Await(context.Background()) // outcomes that other goroutines are reporting
	}
	delist(p.conn, &p.conn.producers, p.index)
	p.lease.ReleaseOnly(ctx, p.stages)
	return nil
}
