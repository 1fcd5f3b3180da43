// Package rawamqp loads a broker over AMQP 1.0 at as little cost as a client can have, so that what is measured is the
// broker and not its client. It has no use beside that: one queue, one size of messages, no recovery.
//
// # What it saves, and what not
//
// Each message is a transfer of its own, unsettled, not durable, with a body of its own bytes; each outcome is awaited, and must
// be "accepted", once; each message is received and accepted. What is saved is all around: frames are made once, only
// their numbers change; as many go into one write as may be in flight; a receiver accepts all that it has read with one
// disposition of a range, as Transport, section 2.7.6, has it, when there is nothing more to read.
package rawamqp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Load is what is to be done.
type Load struct {
	Queue   string
	Size    int // of bodies, in bytes; 1 or more
	Pending int // messages sent and not confirmed, at most; 1 or more
	Credit  int // messages sent ahead to the receiver, at most; 2 or more
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

	answers  chan struct{} // one token: accepted, allowed or window have changed
	arrivals chan struct{} // one token: received has changed
	done     atomic.Bool   // what is read is of no interest any more
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
	if size := len(message(l.Size)) + frameHead; err == nil && size > int(p.out.maxFrame) {
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

// Close ends both connections in an orderly way, and fails if the broker does not.
func (p *Pair) Close() error { return errors.Join(p.out.part(), p.in.part()) }

// Run sends until the time is over, and waits until all that was sent is confirmed and received. It fails when the
// context ends before, and when a message is not accepted, is confirmed twice, or is shorter than what was sent. Whether
// the broker had more to deliver than was sent, its own counters tell. It is to be called once.
func (p *Pair) Run(ctx context.Context, d time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var readers sync.WaitGroup
	end := func() {
		p.done.Store(true)
		past := time.Unix(1, 0)
		_, _ = p.out.SetReadDeadline(past), p.in.SetReadDeadline(past) // they fail only on what is closed
		readers.Wait()
		_, _ = p.out.SetReadDeadline(time.Time{}), p.in.SetReadDeadline(time.Time{})
	}
	defer end()
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

// message is what is sent: a header that says not durable, and a body.
func message(size int) []byte {
	b := described(sectionHeader, boolean(false))
	return append(append(b, 0x00, 0x53, sectionData), binaryOf(string(make([]byte, size)))...)
}

// send sends until the moment, and waits until all is confirmed.
func (p *Pair) send(ctx context.Context, until time.Time) error {
	one := frame(frameAMQP,
		described(opTransfer, number(0), number(0), binaryOf("\x00\x00\x00\x00"), number(0), boolean(false)), message(p.load.Size))
	const ( // behind the head, the descriptor, size and count, and the handle
		idAt  = frameHead + 12 + 5 + 1
		tagAt = idAt + 4 + 5
	)
	var frames []byte
	for range batch {
		frames = append(frames, one...)
	}
	for sent := int64(0); ; {
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
		n = min(n, batch)
		for i := range n {
			f := frames[int(i)*len(one):]
			binary.BigEndian.PutUint32(f[idAt:], uint32(sent+i))  //nolint:gosec // serial
			binary.BigEndian.PutUint32(f[tagAt:], uint32(sent+i)) //nolint:gosec // serial
		}
		sent += n
		p.sent.Store(sent)
		if _, err := p.out.Write(frames[:int(n)*len(one)]); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
}

// follow reads what the broker says of the messages sent.
func (p *Pair) follow() error {
	early := make([]bool, p.load.Pending) // answered before one that was sent earlier; by number modulo Pending
	for {
		descriptor, in, _, err := p.out.performative()
		if err != nil {
			return fmt.Errorf("wait for confirmations: %w", err)
		}
		switch descriptor {
		case opFlow:
			p.credit(&in)
		case opDisposition:
			if err := p.confirm(&in, early); err != nil {
				return err
			}
		}
		if in.bad {
			return errors.New("wait for confirmations: a malformed frame")
		}
		notify(p.answers)
	}
}

// credit reads a flow.
func (p *Pair) credit(in *list) {
	next, _ := in.number()
	window, _ := in.number()
	p.window.Store(int64(next + window)) //nolint:gosec // uints
	in.next()                            // its own next number
	in.next()                            // its own window
	in.next()                            // handle
	count, _ := in.number()
	if credit, ok := in.number(); ok {
		p.allowed.Store(int64(count + credit)) //nolint:gosec // uints
	}
}

// confirm reads a disposition. All of its messages must be in flight.
func (p *Pair) confirm(in *list, early []bool) error {
	in.next() // role
	first, ok := in.number()
	last, more := in.number()
	if !more {
		last = first
	}
	settled := in.boolean()
	state, _ := in.described()
	if !ok || !settled || state != stateAccepted {
		return fmt.Errorf("messages %d to %d were not accepted: state %#x, settled %v", first, last, state, settled)
	}
	done, sent := p.accepted.Load(), p.sent.Load()
	for n := int64(first); n <= int64(last); n++ { //nolint:gosec // uints
		slot := &early[n%int64(len(early))]
		if n < done || n >= sent || *slot {
			return fmt.Errorf("message %d was confirmed though it was not in flight", n)
		}
		*slot = true
	}
	for done < sent && early[done%int64(len(early))] {
		early[done%int64(len(early))] = false
		done++
	}
	p.accepted.Store(done)
	return nil
}

// receive takes messages and accepts them.
func (p *Pair) receive() error {
	flow := described(opFlow, number(0), number(1<<30), number(0), number(1<<30), number(0), number(0), number(uint32(p.load.Credit))) //nolint:gosec // an option
	accept := described(opDisposition, boolean(true), number(0), number(0), boolean(true), described(stateAccepted))
	const (
		nextAt  = frameHead + 12 + 1
		countAt = nextAt + 5*5
		firstAt = frameHead + 12 + 2
		lastAt  = firstAt + 5
	)
	flow, accept = frame(frameAMQP, flow), frame(frameAMQP, accept)
	if _, err := p.in.Write(flow); err != nil {
		return fmt.Errorf("give credit: %w", err)
	}
	var out []byte
	var got, settled, credited uint32
	for {
		descriptor, in, body, err := p.in.performative()
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if descriptor != opTransfer {
			continue
		}
		in.next()                                                                       // handle
		if id, ok := in.number(); !ok || uint32(id) != got || len(body) < p.load.Size { //nolint:gosec // an uint
			return fmt.Errorf("receive: delivery %d of %d bytes where %d of %d was due", id, len(body), got, p.load.Size)
		}
		got++
		if p.in.r.Buffered() > 0 && got-settled < uint32(p.load.Credit)/2 { //nolint:gosec // an option
			continue
		}
		binary.BigEndian.PutUint32(accept[firstAt:], settled)
		binary.BigEndian.PutUint32(accept[lastAt:], got-1)
		out = append(out[:0], accept...)
		settled = got
		if got-credited >= uint32(p.load.Credit)/2 { //nolint:gosec // an option
			binary.BigEndian.PutUint32(flow[nextAt:], got)
			binary.BigEndian.PutUint32(flow[countAt:], got)
			out = append(out, flow...)
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
