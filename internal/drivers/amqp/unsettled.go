package amqp

import (
	"errors"
	"math"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// settle implements owner: it processes the broker's outcome of a range of deliveries. In a transaction a message is
// not accepted before the commit.
func (p *producer) settle(first, last uint32, state wire.State) {
	if p.settled || p.tx != nil && state.Kind == wire.DescAccepted {
		return
	}
	p.finish(first, last, p.lease.Conn.outcome(p.op, &state))
}

// finish reports the outcome of the deliveries of a range that have not ended before.
func (p *producer) finish(first, last uint32, o driver.Outcome) {
	p.ending.Lock()
	defer p.ending.Unlock()
	p.s.mu.Lock()
	p.report(first, last, o)
}

// report is finish with both locks held; it releases the session's lock.
func (p *producer) report(first, last uint32, o driver.Outcome) {
	p.slots = p.slots[:0]
	p.unsettled.EachSerial(first, last, func(pos uint64) {
		p.slots = append(p.slots, p.unsettled.Remove(pos).slot)
	})
	awaited := p.closed && p.unsettled.Len() == 0
	p.s.mu.Unlock()
	if len(p.slots) > 0 {
		p.done.DoneAll(p.slots, o)
	}
	if awaited {
		p.wake()
	}
}

// abandon implements owner: all unsettled messages end, because no disposition will come. No message is sent, or
// aborted, meanwhile.
func (p *producer) abandon(why error) {
	why = transport.Explain(p.op, why)
	p.ending.Lock()
	defer p.ending.Unlock()
	p.s.mu.Lock()
	p.halt(why)
	p.report(0, math.MaxUint32, unknown(why))
	if !errors.Is(why, transport.ErrClosed) {
		p.End(why)
	}
}

// delivery is one that has not ended, in [producer.unsettled]. The low 32 bits of its position are its ID.
type delivery struct {
	slot driver.Slot
	open bool
}

// addUnsettled adds a delivery. IDs between the last one and this one belong to other links of the session. The
// session's lock is held.
func (p *producer) addUnsettled(id uint32, slot driver.Slot) {
	u := &p.unsettled
	for uint32(u.Next) != id { //nolint:gosec // serial
		u.Add(delivery{open: true})
		u.Remove(u.Next - 1)
	}
	u.Add(delivery{slot: slot, open: true})
}
