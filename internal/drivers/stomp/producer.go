package stomp

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// timeHeader is the header that carries the time of sending, as decimal text: headers of STOMP have no types.
const timeHeader = driver.TimeProperty

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
	// claimed marks a slot whose Done is being called.
	claimed = 1 << 63
)

// slot holds the number of the send in flight in it, with the mark claimed while its Done is being called; 0 when the
// slot is free. Whoever changes the number to claimed reports the send: exactly one does.
type slot struct{ state atomic.Uint64 }

type slotChunk [chunkSize]slot

// producer is a [driver.Producer].
type producer struct {
	conn   *connection
	op     string
	done   driver.Done
	index  uint64 // in conn.producers
	prefix []byte // of a SEND frame: what is the same for all messages
	ttl    time.Duration
	// confirm is false when a message is complete once it has been written.
	confirm bool
	tx      *transactions // nil without

	taken  bool   // of the connection's reader: the broker has confirmed a message
	seq    uint64 // of the last send
	chunks []atomic.Pointer[slotChunk]

	socket  *driver.Meter // waits for the connection to take more
	closing atomic.Bool
	settled chan struct{} // something has ended while closing
	closed  bool
}

// Producer implements [driver.Driver].
func (d *stompDriver) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Done) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	if spec.CommitInterval > 0 && spec.MaxPending < spec.CommitInterval {
		return nil, driver.Errorf(driver.ClassOther, op, "raise --max-pending to at least --commit-interval",
			"a transaction of %d messages never fills with %d in flight: they complete at its commit",
			spec.CommitInterval, spec.MaxPending)
	}
	if spec.CommitInterval > 0 && !d.cfg.opts.Receipt {
		return nil, driver.Errorf(driver.ClassUnsupported, op, "leave out -o receipt=false or --commit-interval",
			"transactions are confirmed by the receipt of their commit")
	}
	conn, err := d.acquire(ctx, spec.Connection)
	if err != nil {
		return nil, err
	}
	p := &producer{
		conn: conn, op: "send to " + spec.Destination.String(), done: done, socket: driver.NewMeter(),
		confirm: d.cfg.opts.Receipt && spec.CommitInterval == 0,
		chunks:  make([]atomic.Pointer[slotChunk], (max(spec.MaxPending, 1)+chunkSize-1)>>chunkBits),
		settled: make(chan struct{}, 1),
	}
	err = p.prepare(spec)
	if err == nil {
		err = conn.addProducer(p)
	}
	if err != nil {
		conn.release(ctx)
		return nil, conn.explain(op, err)
	}
	if spec.CommitInterval > 0 {
		p.tx = newTransactions(p, spec.CommitInterval)
	}
	return p, nil
}

// prepare writes the part of the frames that does not change.
func (p *producer) prepare(spec driver.ProducerSpec) error {
	headers, err := p.conn.dialect.send(spec, &p.conn.driver.cfg.opts, p.conn.server)
	if err != nil {
		return err
	}
	if p.conn.dialect.expiresAbsolutely() {
		p.ttl = spec.TTL
	}
	v := p.conn.version
	reserved := map[string]bool{}
	for _, key := range reservedHeaders() {
		reserved[key] = true
	}
	for _, h := range spec.Properties {
		switch {
		case reserved[h.Key]:
			return driver.Errorf(driver.ClassUnsupported, "", "choose another name",
				"the property %q is a header of STOMP's own", h.Key)
		case !v.carriesKey(h.Key) || !v.keeps(h.Value):
			return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters and blanks around it",
				"STOMP %s cannot carry the property %q = %q", v, h.Key, h.Value)
		}
	}
	for _, h := range headers {
		if !v.keeps(h.Value) {
			return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters and blanks around it",
				"STOMP %s cannot carry %q as %s", v, h.Value, h.Key)
		}
	}
	p.prefix = append(p.prefix, "SEND\n"...)
	for _, h := range append(headers, spec.Properties...) {
		p.prefix = v.appendHeader(p.prefix, h.Key, h.Value)
	}
	if spec.Origin != (driver.ID{}) {
		p.prefix = v.appendHeader(p.prefix, driver.IDProperty, string(spec.Origin.Append(nil)))
	}
	return nil
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := ctx.Err(); err != nil {
		return driver.Errorf(driver.ClassTimeout, p.op, "", "not sent: %w", err)
	}
	s := p.slot(m.Slot)
	p.seq++
	out := p.conn.out
	s.state.Store(p.seq)
	if err := out.lock(ctx, p.socket); err != nil {
		if s.state.CompareAndSwap(p.seq, 0) {
			return p.sendError(ctx, err)
		}
		return nil // it has been reported as part of the connection's end
	}
	if p.tx != nil {
		out.buf = p.tx.add(out.buf, m, p.seq)
	} else {
		out.buf = p.appendSend(out.buf, m, "")
		if !p.confirm {
			out.handed = append(out.handed, handed{p, m.Slot, p.seq})
		}
	}
	out.unlock()
	return nil
}

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	w := p.conn.waits()
	w.Socket = p.socket.Wait()
	return w
}

func (p *producer) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return driver.Errorf(driver.ClassTimeout, p.op,
			"the broker holds senders back: look for a full address, a full disk, an alarm (RabbitMQ) or a blocked producer on its console",
			"the broker did not read what was sent before: %w", err)
	}
	return p.conn.explain(p.op, err)
}

// appendSend appends the SEND frame of m. Transaction is the header line that puts it into a transaction.
func (p *producer) appendSend(b []byte, m *driver.Message, transaction string) []byte {
	b = append(b, p.prefix...)
	b = append(b, timeHeader+":"...)
	b = strconv.AppendInt(b, m.Time, 10)
	if m.ID != (driver.ID{}) {
		b = m.ID.Append(append(b, "\n"+driver.IDProperty+":"...)) // nothing in it needs escaping
	}
	if p.ttl > 0 {
		b = append(b, "\nexpires:"...)
		b = strconv.AppendInt(b, time.Now().Add(p.ttl).UnixMilli(), 10)
	}
	if p.confirm {
		b = append(b, "\nreceipt:"...)
		b = receipt{receiptOfSend, p.index, uint64(m.Slot), p.seq}.append(b)
	}
	b = append(b, transaction...)
	b = append(b, "\ncontent-length:"...)
	b = strconv.AppendInt(b, int64(len(m.Body)), 10)
	b = append(b, "\n\n"...)
	return append(append(b, m.Body...), 0)
}

// slot returns the slot of that number. Only Send makes slots.
func (p *producer) slot(id driver.Slot) *slot {
	chunk := p.chunks[id>>chunkBits].Load()
	if chunk == nil {
		chunk = new(slotChunk)
		p.chunks[id>>chunkBits].Store(chunk)
	}
	return &chunk[id%chunkSize]
}

// complete reports the end of that send, unless it has been reported or never was; then it returns false.
func (p *producer) complete(id driver.Slot, seq uint64, o driver.Outcome) bool {
	if uint64(id)>>chunkBits >= uint64(len(p.chunks)) {
		return false
	}
	chunk := p.chunks[id>>chunkBits].Load()
	if chunk == nil || seq == 0 {
		return false
	}
	s := &chunk[id%chunkSize]
	if !s.state.CompareAndSwap(seq, seq|claimed) {
		return false
	}
	p.done(id, o)
	s.state.CompareAndSwap(seq|claimed, 0) // unless the slot has been used again already
	if p.closing.Load() {
		notify(p.settled)
	}
	return true
}

// answered takes a RECEIPT, or with an outcome other than accepted an ERROR that names the receipt. It returns false if
// nothing waits for it.
func (p *producer) answered(r receipt, o driver.Outcome) bool {
	switch r.kind {
	case receiptOfSend:
		if r.slot < uint64(len(p.chunks))<<chunkBits {
			return p.complete(driver.Slot(r.slot), r.seq, o) //nolint:gosec // below the number of slots
		}
	case receiptOfCommit:
		if p.tx != nil {
			return p.tx.ended(r.seq, o)
		}
	}
	return false
}

// abandon reports all that is in flight.
func (p *producer) abandon(o driver.Outcome) {
	if p.tx != nil {
		p.tx.abandon(o)
	}
	for i := range p.chunks {
		chunk := p.chunks[i].Load()
		if chunk == nil {
			continue
		}
		for j := range chunk {
			if seq := chunk[j].state.Load(); seq&claimed == 0 {
				p.complete(driver.Slot(i<<chunkBits+j), seq, o) //nolint:gosec // below the number of slots
			}
		}
	}
}

// Flush implements [driver.Flusher]: it commits a transaction that is not full.
func (p *producer) Flush(ctx context.Context) error {
	if p.tx == nil || p.closed {
		return nil
	}
	if err := p.conn.out.lock(ctx, p.socket); err != nil {
		return p.sendError(ctx, err)
	}
	p.conn.out.buf = p.tx.commit(p.conn.out.buf)
	p.conn.out.unlock()
	return nil
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	if p.closed {
		return nil
	}
	_ = p.Flush(ctx) // what it could not commit is reported below
	p.closed = true
	p.closing.Store(true)
	if !p.awaitSettled(ctx.Done()) {
		p.abandon(driver.Outcome{
			State: driver.Unknown, Class: driver.ClassTimeout,
			Err: driver.Errorf(driver.ClassTimeout, p.op, "is the broker overloaded, or does it hold senders back? Look for a full address, an alarm (RabbitMQ: memory, disk) or a blocked producer; see --drain-timeout",
				"the broker had not answered when the producer closed"),
		})
		p.awaitSettled(nil) // a Done that is being called
	}
	p.conn.removeProducer(p)
	p.conn.release(ctx)
	return nil
}

// awaitSettled waits until nothing is in flight; it returns false when giveUp comes first.
func (p *producer) awaitSettled(giveUp <-chan struct{}) bool {
	for i := 0; i < len(p.chunks)<<chunkBits; {
		chunk := p.chunks[i>>chunkBits].Load()
		if chunk == nil {
			i = (i>>chunkBits + 1) << chunkBits
			continue
		}
		if chunk[i%chunkSize].state.Load() == 0 {
			i++
			continue
		}
		select {
		case <-p.settled:
		case <-giveUp:
			return false
		}
	}
	return true
}
