package rocketmq

import (
	"context"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// The end of a transactional message is planned before it is sent and travels with it as the property [PropPlan], so
// that a check-back can be answered without remembering the message. One that is left open is committed at its
// check-back.
const (
	planCommit   = 'c'
	PlanRollback = 'r' // of the proxy's driver, too, as all exported names of this file
	PlanOpen     = 'u'
)

// PropPlan is the property with the plan of a transactional message.
const PropPlan = "perfmq-tx"

// Transactions are the plans and counts of a producer's transactional messages. The lock of OpenTransactions guards it.
type Transactions struct {
	of                *OpenTransactions
	rollback, unknown int      // percentages
	numbers           []uint64 // in the unique keys of the messages in flight, by index of the slot

	committed, rolledBack, leftOpen, checked, unexpected, late uint64
}

// OpenTransactions are the transactions of a driver's producers that were left open, by unique key. A broker asks any
// producer of the group for the outcome, also when the producer of the message has gone: the next one answers. The zero
// value is ready.
type OpenTransactions struct {
	mu    sync.Mutex
	byKey map[string]*Transactions // at most mostOpen
	gone  []*Transactions          // of producers that closed while no broker could ask; the next ones wait for them
}

// mostOpen bounds the memory for transactions that brokers never ask about: further ones are committed at once.
const mostOpen = 1 << 17

// Of returns the transactions of a producer, with the percentages to roll back and to leave open.
func (o *OpenTransactions) Of(rollback, unknown int) *Transactions {
	return &Transactions{of: o, rollback: rollback, unknown: unknown}
}

// open returns the number of transactions that were left open and not checked back yet.
func (t *Transactions) open() uint64 { return t.leftOpen - t.late }

// share reports whether the n-th of many belongs to the given percentages from low to high: exactly so many of each
// hundred, spread over it.
func share(n, low, high int) bool {
	const stride = 37 // has no divisor in common with 100
	place := n * stride % 100
	return low <= place && place < high
}

// planOf returns the plan of the message with that number, from 1 up, in its unique key.
func (t *Transactions) planOf(number uint64) byte {
	n := int((number - 1) % 100)
	switch {
	case share(n, 0, t.rollback):
		return PlanRollback
	case share(n, t.rollback, t.rollback+t.unknown):
		return PlanOpen
	default:
		return planCommit
	}
}

// Plan notes the number of the message that is sent with a slot, and returns its plan.
func (t *Transactions) Plan(slot driver.Slot, number uint64) byte {
	at := int(slot.Index())
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if at >= len(t.numbers) {
		t.numbers = append(t.numbers, make([]uint64, at+1-len(t.numbers))...)
	}
	t.numbers[at] = number
	return t.planOf(number)
}

// Half is called when the broker has stored a half message, and returns its plan. An open one is remembered by the key
// of its number.
func (t *Transactions) Half(slot driver.Slot, key func(number uint64) []byte) (plan byte) {
	o := t.of
	o.mu.Lock()
	defer o.mu.Unlock()
	number := t.numbers[slot.Index()]
	switch plan = t.planOf(number); {
	case plan == PlanRollback:
		t.rolledBack++
	case plan == PlanOpen && len(o.byKey) < mostOpen: // the broker detects that and checks back
		t.leftOpen++
		if o.byKey == nil {
			o.byKey = map[string]*Transactions{}
		}
		o.byKey[string(key(number))] = t
	default:
		t.committed++
		plan = planCommit
	}
	return plan
}

// Checked counts a check-back for the message with that plan and key. It may be of another producer.
func (t *Transactions) Checked(plan byte, key []byte) {
	o := t.of
	o.mu.Lock()
	defer o.mu.Unlock()
	t.checked++
	switch owner := o.byKey[string(key)]; {
	case plan != PlanOpen:
		t.unexpected++
	case owner != nil:
		delete(o.byKey, string(key))
		owner.late++
	}
}

// WaitChecks waits until no more check-backs are due, the brokers are away, or ctx ends. The error has the number of
// transactions that are still open then.
func (t *Transactions) WaitChecks(ctx context.Context, op string, away func() bool) error {
	o := t.of
	for {
		o.mu.Lock()
		due, away := t.open(), away()
		if away && due > 0 {
			o.gone = append(o.gone, t)
		}
		for _, other := range o.gone {
			due += other.open()
		}
		o.mu.Unlock()
		switch {
		case due == 0, away:
			return nil // check-backs cannot come from a broker that is away
		case ctx.Err() != nil:
			return driver.Errorf(driver.ClassTimeout, op,
				"raise --connect-timeout, or lower the broker's transactionTimeOut",
				"%d transactions are still open: the broker has not checked them", due)
		}
		await(ctx, 10*time.Millisecond, nil)
	}
}

// Counters returns the counters for [driver.Counting].
func (t *Transactions) Counters() []driver.Counter {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
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
