package rocketmq

import (
	"context"
	"strconv"
	"sync"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The end of a transactional message is planned before it is sent and travels with it as a property, so that a
// check-back can be answered without remembering the message. One that is left open is committed at its check-back.
const (
	planCommit   = 'c'
	planRollback = 'r'
	planOpen     = 'u'
)

// transactions ends the half messages of a producer and answers the brokers' check-backs. The lock of openTransactions
// guards it.
type transactions struct {
	p       *producer
	numbers []uint64 // in the unique keys of the messages in flight, by index of the slot

	committed, rolledBack, leftOpen, checked, unexpected, late uint64
}

// openTransactions are the transactions of a driver's producers that were left open, by unique key. A broker asks any
// producer of the group for the outcome, also when the producer of the message has gone: the next one answers.
type openTransactions struct {
	mu    sync.Mutex
	byKey map[string]*transactions // at most mostOpen
	gone  []*transactions          // of producers that closed while no broker could ask; the next ones wait for them
}

// mostOpen bounds the memory for transactions that brokers never ask about: further ones are committed at once.
const mostOpen = 1 << 17

// open returns the number of transactions that were left open and not checked back yet.
func (t *transactions) open() uint64 { return t.leftOpen - t.late }

// share reports whether the n-th of many belongs to the given percentages from low to high: exactly so many of each
// hundred, spread over it.
func share(n, low, high int) bool {
	const stride = 37 // has no divisor in common with 100
	place := n * stride % 100
	return low <= place && place < high
}

// planOf returns the plan of the message with that number, from 1 up, in its unique key.
func (o *Options) planOf(number uint64) byte {
	n := int((number - 1) % 100)
	switch {
	case share(n, 0, o.RollbackPercent):
		return planRollback
	case share(n, o.RollbackPercent, o.RollbackPercent+o.UnknownPercent):
		return planOpen
	default:
		return planCommit
	}
}

// plan notes the number of the message that is sent with a slot, and returns its plan.
func (t *transactions) plan(slot driver.Slot, number uint64) byte {
	at := int(slot.Index())
	o := &t.p.d.open
	o.mu.Lock()
	defer o.mu.Unlock()
	if at >= len(t.numbers) {
		t.numbers = append(t.numbers, make([]uint64, at+1-len(t.numbers))...)
	}
	t.numbers[at] = number
	return t.p.opts.planOf(number)
}

// half is called when the broker has stored a half message: it commits the message, rolls it back or leaves it open, as
// planned. It reports whether it was rolled back.
func (t *transactions) half(slot driver.Slot, r *reply) (withheld bool) {
	o := &t.p.d.open
	o.mu.Lock()
	defer o.mu.Unlock()
	number := t.numbers[slot.Index()]
	plan := t.p.opts.planOf(number)
	switch {
	case plan == planRollback:
		t.rolledBack++
	case plan == planOpen && len(o.byKey) < mostOpen: // the broker detects that and checks back
		t.leftOpen++
		o.byKey[string(appendKey(t.p.id[:idSeed:idSeed], number))] = t
		return false
	default:
		t.committed++
	}
	msgID := r.Get("msgId")
	if offset, ok := wire.ParseMessageID(msgID); ok { // otherwise the broker checks back
		t.sendEnd(r, storedTable, flagOf(plan), offset, msgID)
	}
	return plan == planRollback
}

// The fields with the offset in the table of half messages: in the answer to a half message, and in a check-back.
const (
	storedTable  = "queueOffset"
	checkedTable = "tranStateTableOffset"
)

// sendEnd answers r, which is about a half message, with the end of its transaction. It never waits, because it runs in
// the connection's reader, which flushes when there is nothing more to read. If the answer is lost, the broker
// checks back.
func (t *transactions) sendEnd(r *reply, table string, flag int, commitLog int64, msgID []byte) {
	_ = r.from.tell(wire.ReqEndTransaction, wire.FlagOneWay, func(b []byte) []byte { // EndTransactionRequestHeader
		b = wire.AppendInt(b, "commitLogOffset", commitLog)
		b = wire.AppendInt(b, "commitOrRollback", int64(flag))
		b = wire.AppendField(b, "fromTransactionCheck", strconv.FormatBool(table == checkedTable))
		b = appendGiven(b, "msgId", msgID)
		b = wire.AppendField(b, "producerGroup", t.p.group)
		b = appendGiven(b, "tranStateTableOffset", r.Get(table))
		return appendGiven(b, "transactionId", r.Get("transactionId"))
	}, nil, call{})
}

// checkTransaction answers a check-back of a broker. The message may be of a producer that has gone.
func (c *client) checkTransaction(r *reply) {
	var m wire.Message
	if _, err := m.Cut(r.Body); err != nil {
		return // the broker will check back again
	}
	plan, id := wire.Property(m.Properties, propPlan), wire.Property(m.Properties, wire.PropUniqueKey)
	commitLog, ok := r.Number("commitLogOffset")
	producers, _ := c.members()
	if len(plan) == 0 || !ok || len(producers) == 0 || producers[0].tx == nil {
		return // the message is not ours
	}
	t := producers[0].tx
	o := &c.d.open
	o.mu.Lock()
	defer o.mu.Unlock()
	t.checked++
	switch owner := o.byKey[string(id)]; {
	case plan[0] != planOpen:
		t.unexpected++
	case owner != nil:
		delete(o.byKey, string(id))
		owner.late++
	}
	t.sendEnd(r, checkedTable, flagOf(plan[0]), commitLog, id)
}

func flagOf(plan byte) int {
	if plan == planRollback {
		return wire.SysRollback
	}
	return wire.SysCommit
}

// waitChecks waits until no more check-backs are due, or ctx ends. The error has the number of transactions that are
// still open then.
func (t *transactions) waitChecks(ctx context.Context) error {
	o := &t.p.d.open
	for {
		o.mu.Lock()
		due, away := t.open(), t.p.reachable("") != nil
		if away && due > 0 {
			o.gone = append(o.gone, t)
		}
		for _, other := range o.gone {
			due += other.open()
		}
		o.mu.Unlock()
		switch {
		case due == 0, away:
			return nil //nolint:nilerr // check-backs cannot come from a broker that is away
		case ctx.Err() != nil:
			return driver.Errorf(driver.ClassTimeout, t.p.op,
				"raise --connect-timeout, or lower the broker's transactionTimeOut",
				"%d transactions are still open: the broker has not checked them", due)
		}
		await(ctx, 10*time.Millisecond, nil)
	}
}

func (t *transactions) counters() []driver.Counter {
	o := &t.p.d.open
	o.mu.Lock()
	defer o.mu.Unlock()
	return []driver.Counter{
		{Name: "tx-committed", Help: "transactions committed at once", Value: t.committed},
		{Name: "tx-rolled-back", Help: "transactions rolled back at once", Value: t.rolledBack},
		{Name: "tx-left-open", Help: "transactions left open for check-backs", Value: t.leftOpen},
		{Name: "tx-checks", Help: "check-backs of the broker", Value: t.checked},
		{Name: "tx-committed-late", Help: "transactions committed at a check-back", Value: t.late},
		{Name: "tx-open", Help: "transactions still open: not delivered yet", Value: t.open()},
		{Name: "tx-unexpected-checks", Help: "check-backs after the end: delivered twice", Value: t.unexpected},
	}
}
