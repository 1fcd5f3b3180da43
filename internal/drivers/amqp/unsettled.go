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
	p.slots = p.unsettled.takeRange(p.slots[:0], first, last)
	awaited := p.closed && p.unsettled.n == 0
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

// unsettled are the deliveries of a producer that have not ended, by their IDs, which are serial numbers. The session's
// lock guards it.
//
// The latest are in a ring. A delivery that is still open when the ring has gone around moves to a map. So the ring
// does not grow if a broker never answers one message, and a disposition of any range looks only at existing
// deliveries.
type unsettled struct {
	ring []delivery // its length is a power of two; the index is the ID modulo that
	old  map[uint32]driver.Slot
	from uint32 // the first ID that may be in the ring
	next uint32 // the ID after the last
	max  int    // largest length of the ring
	n    int    // number of deliveries
}

type delivery struct {
	slot driver.Slot
	open bool
}

const firstRing = 16

func newUnsettled(maxPending int) *unsettled {
	u := &unsettled{max: firstRing, ring: make([]delivery, 1)}
	for u.max < maxPending {
		u.max *= 2
	}
	return u
}

func (u *unsettled) find(id uint32) *delivery { return &u.ring[id&uint32(len(u.ring)-1)] }

// add adds a delivery with an ID after the last one: IDs in between belong to other links of the session.
func (u *unsettled) add(id uint32, slot driver.Slot) {
	for ; u.next != id+1; u.next++ {
		if int(u.next-u.from) == len(u.ring) {
			u.makeRoom()
		}
	}
	*u.find(id) = delivery{slot: slot, open: true}
	u.n++
}

// undo removes the last delivery. It returns false if that has ended.
func (u *unsettled) undo() bool {
	d := u.find(u.next - 1)
	if !d.open {
		return false
	}
	*d = delivery{}
	u.n--
	u.skipEnded()
	return true
}

// makeRoom enlarges the ring, or moves its oldest delivery to the map.
func (u *unsettled) makeRoom() {
	if len(u.ring) < u.max {
		larger := make([]delivery, min(u.max, max(firstRing, 2*len(u.ring))))
		for id := u.from; id != u.next; id++ {
			larger[id&uint32(len(larger)-1)] = *u.find(id)
		}
		u.ring = larger
		return
	}
	if d := u.find(u.from); d.open {
		if u.old == nil {
			u.old = map[uint32]driver.Slot{}
		}
		u.old[u.from] = d.slot
		*d = delivery{}
	}
	u.skipEnded()
}

// skipEnded moves the beginning of the ring past the deliveries that have ended.
func (u *unsettled) skipEnded() {
	for u.from != u.next && !u.find(u.from).open {
		u.from++
	}
}

// takeRange removes the deliveries first to last and appends their slots. It skips IDs that are not open. IDs are
// serial numbers, so that a range may go beyond 2^32-1. A range that ends before it begins is empty, unless it is 0 to
// 2^32-1 or the like: that means all.
func (u *unsettled) takeRange(slots []driver.Slot, first, last uint32) []driver.Slot {
	width := last - first
	whole := int32(width) < 0 //nolint:gosec // serial numbers
	if whole && last < first {
		return slots
	}
	if len(u.old) > 0 { // to begin a walk over an empty map takes longer than all else here
		for id, slot := range u.old {
			if id-first <= width {
				slots = append(slots, slot)
				delete(u.old, id)
				u.n--
			}
		}
	}
	id := u.from
	if !whole && first-u.from < u.next-u.from {
		id = first
	}
	for ; id != u.next && (whole || id-first <= width); id++ {
		if d := u.find(id); d.open && id-first <= width {
			slots = append(slots, d.slot)
			*d = delivery{}
			u.n--
		}
	}
	u.skipEnded()
	return slots
}
