// Package rawamqp loads a broker over AMQP 1.0 at as little cost as a client can have, so that a benchmark measures
// the broker and not its client. It has no use beside that: one queue, one size of messages, no recovery.
//
// # Savings
//
// Each message is a transfer of its own, unsettled, not durable, with a body of its own bytes; each outcome is
// awaited, and must be "accepted", once; each message is received and accepted. The savings are elsewhere: frames
// are made once, only their numbers change; as many go into one write as may be in flight; a receiver accepts all
// that it has read with one disposition of a range, as Transport, section 2.7.6, has it, when there is nothing more
// to read.
package rawamqp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// Load describes a load.
type Load struct {
	Queue   string
	Size    int // of bodies, in bytes; 1 or more
	Pending int // messages sent and not confirmed, at most; 1 or more
	Credit  int // messages sent ahead to the receiver, at most; 2 or more
	Rate    int // messages per second, evenly spaced, each written alone; 0 is as fast as possible
}

// batch is how many messages are written at once, at most.
const batch = 64

// Pair is a sender and a receiver on one queue, on a connection each.
type Pair struct {
	load    Load
	out, in *conn

	// Counts of messages. Numbers of deliveries begin at 0 on both sides.
	sent     atomic.Int64
	accepted atomic.Int64 // all up to this one
	received atomic.Int64 // and accepted by us
	allowed  atomic.Int64 // messages that the broker has given credit for
	window   atomic.Int64 // transfers that the broker's session takes

	// With a rate: when the run began, and how long after it was due each message was confirmed, by the reader of the
	// confirmations.
	clock     *load.Clock
	responses []time.Duration
	wait      *load.Waiter // the sender's

	answers  chan struct{} // one token: accepted, allowed or window have changed
	arrivals chan struct{} // one token: received has changed
	done     atomic.Bool   // reads are of no interest any more
}

// Open connects sender and receiver. The context bounds the opening only. The broker must let nameless users in.
func Open(ctx context.Context, addr string, l Load) (*Pair, error) {
	if l.Size < 1 || l.Pending < 1 || l.Credit < 2 {
		return nil, fmt.Errorf("no such load: %+v", l)
	}
	p := &Pair{load: l, answers: make(chan struct{}, 1), arrivals: make(chan struct{}, 1)}
	var err error
	if p.in, err = dial(ctx, addr); err != nil {
		return nil, err
	}
	if p.out, err = dial(ctx, addr); err != nil {
		return nil, errors.Join(err, p.in.Close())
	}
	p.window.Store(p.out.window)
	err = errors.Join(p.in.attach(l.Queue, true), p.out.attach(l.Queue, false))
	if size := len(frameOf(l.Size)); err == nil && size > int(p.out.maxFrame) {
		err = fmt.Errorf("a message takes %d bytes, a frame no more than %d", size, p.out.maxFrame)
	}
	if err != nil {
		return nil, errors.Join(err, p.in.Close(), p.out.Close())
	}
	return p, nil
}

// Accepted returns how many messages the broker has confirmed so far, Received how many were received and accepted.
func (p *Pair) Accepted() int64 { return p.accepted.Load() }

// Received is described at Accepted.
func (p *Pair) Received() int64 { return p.received.Load() }

// Responses returns how long after it was due each message was confirmed, in their order, if the load has a rate. Run
// must have returned.
func (p *Pair) Responses() []time.Duration { return p.responses }

// due is when message n is to leave.
func (p *Pair) due(n int64) time.Duration {
	return time.Duration(n * int64(time.Second) / int64(p.load.Rate))
}

// Close ends both connections in an orderly way, and fails if the broker does not.
func (p *Pair) Close() error { return errors.Join(p.out.part(), p.in.part()) }

// Run sends until the time is over, and waits until all that was sent is confirmed and received. It fails when the
// context ends before, and when a message is not accepted, is confirmed twice, or is shorter than the sent one.
// Whether the broker had more to deliver than was sent, its own counters tell. It is to be called once.
func (p *Pair) Run(ctx context.Context, d time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var readers sync.WaitGroup
	end := func() {
		p.done.Store(true)
		past := time.Unix(1, 0)
		_, _ = p.out.SetReadDeadline(past), p.in.SetReadDeadline(past) // they fail only on a closed connection
		readers.Wait()
		_, _ = p.out.SetReadDeadline(time.Time{}), p.in.SetReadDeadline(time.Time{})
	}
	defer end()
	if p.load.Rate > 0 {
		p.clock, p.responses = load.NewClock(), make([]time.Duration, 0, int64(p.load.Rate)*int64(d/time.Second+1))
	}
	for _, read := range []func() error{p.follow, p.receive} {
		readers.Go(func() {
			if err := read(); err != nil && !p.done.Load() {
				fail(err)
			}
		})
	}
	stop := context.AfterFunc(ctx, func() { _ = p.out.SetWriteDeadline(time.Unix(1, 0)) }) // likewise
	defer stop()
	if err := p.send(ctx, time.Now().Add(d)); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	for p.received.Load() < p.sent.Load() {
		select {
		case <-p.arrivals:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if got, want := p.received.Load(), p.sent.Load(); got != want {
		return fmt.Errorf("%d messages were sent, %d received", want, got)
	}
	return nil
}

// frameOf returns the frame to send: a transfer of a message with a header that says not durable, and a body.
func frameOf(size int) []byte {
	t := wire.Transfer{DeliveryID: wire.Some[uint32](0), DeliveryTag: make([]byte, 4), MessageFormat: wire.Some[uint32](0)}
	b := t.AppendHead(nil, 0)
	b = (&wire.Header{}).AppendSection(b)
	b = wire.AppendData(b, make([]byte, size))
	wire.EndFrame(b, 0)
	return b
}

// send sends until the moment, and waits until all is confirmed.
func (p *Pair) send(ctx context.Context, until time.Time) error {
	one := frameOf(p.load.Size)
	var frames []byte
	for range batch {
		frames = append(frames, one...)
	}
	if p.load.Rate > 0 {
		wait := load.NewWaiter(ctx, p.clock, true)
		defer wait.Close()
		p.wait = wait
	}
	for sent := int64(0); ; {
		if p.load.Rate > 0 && time.Now().Before(until) {
			p.wait.Until(p.due(sent))
		}
		n := min(p.accepted.Load()+int64(p.load.Pending), p.allowed.Load(), p.window.Load()) - sent
		over := !time.Now().Before(until)
		switch {
		case over && p.accepted.Load() == sent:
			return nil
		case over || n <= 0:
			select {
			case <-p.answers:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		if n = min(n, batch); p.load.Rate > 0 {
			n = 1
		}
		for i := range n {
			f := frames[int(i)*len(one):]
			binary.BigEndian.PutUint32(f[wire.TransferDeliveryIDAt:], uint32(sent+i)) //nolint:gosec // serial
			binary.BigEndian.PutUint32(f[wire.TransferTagAt:], uint32(sent+i))        //nolint:gosec // serial
		}
		sent += n
		p.sent.Store(sent)
		if _, err := p.out.Write(frames[:int(n)*len(one)]); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
}

// follow reads the broker's flows and dispositions on the sender's connection.
func (p *Pair) follow() error {
	early := make([]bool, p.load.Pending) // answered before one that was sent earlier; by number modulo Pending
	for {
		b, err := p.out.next()
		switch {
		case err != nil:
		case b.Kind == wire.DescFlow:
			err = p.credit(&b.Fields)
		case b.Kind == wire.DescDisposition:
			err = p.confirm(&b.Fields, early)
		}
		if err != nil {
			return fmt.Errorf("wait for confirmations: %w", err)
		}
		notify(p.answers)
	}
}

// credit reads a flow.
func (p *Pair) credit(f *wire.Decoder) error {
	var w wire.Flow
	if err := w.Decode(f); err != nil {
		return err
	}
	p.window.Store(int64(w.NextIncomingID.V) + int64(w.IncomingWindow))
	if w.LinkCredit.OK {
		p.allowed.Store(int64(w.DeliveryCount.V) + int64(w.LinkCredit.V))
	}
	return nil
}

// confirm reads a disposition. All of its messages must be in flight.
func (p *Pair) confirm(f *wire.Decoder, early []bool) error {
	var d wire.Disposition
	if err := d.Decode(f); err != nil {
		return err
	}
	state, err := wire.ParseState(d.State)
	if err != nil {
		return err
	}
	if !d.Settled || state.Kind != wire.DescAccepted {
		return fmt.Errorf("messages %d to %d were not accepted: state %#x, settled %v", d.First, d.Last, uint64(state.Kind),
			d.Settled)
	}
	done, sent := p.accepted.Load(), p.sent.Load()
	for n := int64(d.First); n <= int64(d.Last); n++ {
		slot := &early[n%int64(len(early))]
		if n < done || n >= sent || *slot {
			return fmt.Errorf("message %d was confirmed though it was not in flight", n)
		}
		*slot = true
	}
	for done < sent && early[done%int64(len(early))] {
		early[done%int64(len(early))] = false
		if p.load.Rate > 0 {
			p.responses = append(p.responses, p.clock.Now()-p.due(done))
		}
		done++
	}
	p.accepted.Store(done)
	return nil
}

// receive takes messages and accepts them.
func (p *Pair) receive() error {
	credit := uint32(p.load.Credit) //nolint:gosec // an option
	flow := wire.Flow{
		NextIncomingID: wire.Some[uint32](0), IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30, Handle: wire.Some[uint32](0),
		DeliveryCount: wire.Some[uint32](0), LinkCredit: wire.Some(credit),
	}
	if _, err := p.in.Write(flow.AppendFrame(nil, 0)); err != nil {
		return fmt.Errorf("give credit: %w", err)
	}
	var out []byte
	var t wire.Transfer
	var got, settled, credited uint32
	for {
		b, err := p.in.next()
		if err == nil && b.Kind == wire.DescTransfer {
			err = t.Decode(&b.Fields)
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if b.Kind != wire.DescTransfer {
			continue
		}
		if t.DeliveryID != wire.Some(got) || len(b.Payload) < p.load.Size {
			return fmt.Errorf("receive: delivery %d of %d bytes where %d of %d was due", t.DeliveryID.V, len(b.Payload), got,
				p.load.Size)
		}
		got++
		if p.in.r.Buffered() > 0 && got-settled < credit/2 {
			continue
		}
		out = wire.AppendAccepted(out[:0], 0, settled, got-1, true)
		settled = got
		if got-credited >= credit/2 {
			flow.NextIncomingID, flow.DeliveryCount = wire.Some(got), wire.Some(got)
			out = flow.AppendFrame(out, 0)
			credited = got
		}
		if _, err := p.in.Write(out); err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		p.received.Store(int64(got))
		notify(p.arrivals)
	}
}

// notify leaves a token in a channel of one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
