package load

import (
	"context"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// relay is the state of a closed loop. With one message in flight, while Run's goroutine waits for the end of that
// message, the goroutine that reports the end sends the next one: to wake another goroutine for it costs time and,
// with another thread that the runtime starts for that, a good part of the processor time of a message.
type relay struct {
	mu   sync.Mutex
	open bool            // Run's goroutine waits: mu guards the rest, and all that otherwise belongs to that goroutine
	ctx  context.Context //nolint:containedctx // Run's
	msg  driver.Message
	n    uint64 // of the next message
	kind bool   // the variant and the group of the next message are chosen
}

// hasNext reports whether there is another message to be sent.
func (p *Producer) hasNext() bool {
	r := &p.relay
	return !stopped(r.ctx) && r.n < p.limit
}

// chooseOnce chooses the variant and the group of the next message.
func (p *Producer) chooseOnce() {
	if r := &p.relay; !r.kind {
		p.choose(&r.msg, r.n)
		r.kind = true
	}
}

// advanceRelay counts the message that was sent.
func (p *Producer) advanceRelay() {
	p.relay.n += uint64(p.load.Total)
	p.relay.kind = false
}

// awaitRelayed waits for a place from now on, while others send if the loop relays, and returns when there is one; ok
// is false when ctx ended.
func (p *Producer) awaitRelayed(now time.Duration, relays bool) (then time.Duration, ok bool) {
	p.rec.Blocked()
	p.rec.Wait(stats.WaitSlot, now)
	p.openRelay(relays)
	ok = p.slots.awaitPlace(p.relay.ctx)
	p.openRelay(false)
	if !ok {
		return 0, false
	}
	then = p.clock.Now()
	p.rec.Waited(then)
	return then, true
}

// openRelay lets other goroutines send the next message, or no longer.
func (p *Producer) openRelay(open bool) {
	p.relay.mu.Lock()
	p.relay.open = open
	p.relay.mu.Unlock()
}

// relayNext sends the next message of a relayed loop, unless that would have to wait. It returns whether Run's
// goroutine is to wait on.
func (p *Producer) relayNext() bool {
	r := &p.relay
	if !r.mu.TryLock() { // Run's goroutine is awake
		return false
	}
	defer r.mu.Unlock()
	if !r.open {
		return false
	}
	last := r.n+uint64(p.load.Total) >= p.limit // Run does not wait for its end
	if last || !p.hasNext() {
		return false
	}
	index, ok := p.slots.takePlace()
	if !ok {
		return false
	}
	now := p.clock.Now()
	p.chooseOnce()
	phase := p.prepare(&r.msg, index, now, now)
	p.markInFlight(&r.msg, index)
	if !p.trySender.TrySend(&r.msg) {
		if p.takeBack(r.msg.Slot) {
			if p.cfg.Ledger != nil {
				p.cfg.Ledger.Unsent()
			}
			p.rec.TakenBack(phase)
		}
		return false
	}
	p.markHanded()
	p.rec.Handed(phase, 0)
	if p.cfg.Trace != nil {
		p.trace(&p.slots.places[index], result.TraceSent, now)
	}
	p.advanceRelay()
	p.rec.Waited(now)
	p.rec.Blocked()
	p.rec.Wait(stats.WaitSlot, p.clock.Now())
	return p.slots.startWaiting()
}
