package rocketmq

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
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

// transactions ends the half messages of a producer and answers the brokers' check-backs.
type transactions struct {
	p     *producer
	seeds []string // starts of the unique keys: the producer's, and those of producers whose heir it is
	sent  int      // messages planned so far

	mu     sync.Mutex
	plans  []byte // by index of the slot: the plan of the message in flight
	checks memory
	due    int           // messages left open that have not ended yet
	idle   chan struct{} // signalled when due falls to 0

	halves, committed, rolledBack, leftOpen, checked, unexpected, duplicated, foreign, late atomic.Uint64
}

func newTransactions(p *producer) *transactions {
	return &transactions{
		p: p, idle: make(chan struct{}, 1), checks: memory{young: map[string]int{}},
	}
}

// memory counts check-backs of messages by unique key. It drops the oldest.
type memory struct{ young, old map[string]int }

// next returns the number of earlier check-backs of a message.
func (m *memory) next(id []byte) int {
	const most = 1 << 16 // of each generation
	n, ok := m.young[string(id)]
	if !ok {
		n = m.old[string(id)]
	}
	if !ok && len(m.young) >= most {
		m.young, m.old = map[string]int{}, m.young
	}
	m.young[string(id)] = n + 1
	return n
}

// orphans are the transactions of producers that were closed when their brokers were gone. Brokers that come back still
// ask for their outcome: the next producer of the driver, which is in the same group, answers.
type orphans struct {
	mu   sync.Mutex
	list []*transactions
}

// ask lets brokers ask for the outcomes of the producer's half messages, and of those of the orphans.
func (t *transactions) ask() {
	o := &t.p.d.orphans
	o.mu.Lock()
	list := o.list
	o.list = nil
	o.mu.Unlock()
	t.seeds = []string{string(t.p.id[:idSeed])}
	for _, old := range list {
		t.seeds = append(t.seeds, old.seeds...)
	}
	for _, seed := range t.seeds {
		t.p.d.asked.Store(seed, t)
	}
	for _, old := range list { // its last answers have been given, or are the heir's
		old.mu.Lock()
		due, checks := old.due, old.checks
		old.due, old.checks = 0, memory{young: map[string]int{}}
		old.mu.Unlock()
		t.mu.Lock()
		t.due += due
		maps.Copy(t.checks.young, checks.old)
		maps.Copy(t.checks.young, checks.young)
		t.mu.Unlock()
	}
}

// end ends that when the producer closes. If no broker is there to ask any more, the transactions become orphans.
func (t *transactions) end() {
	if t.p.reachable(nil) != nil {
		o := &t.p.d.orphans
		o.mu.Lock()
		o.list = append(o.list, t)
		o.mu.Unlock()
		return
	}
	for _, seed := range t.seeds {
		t.p.d.asked.Delete(seed)
	}
}

// share reports whether the n-th of many belongs to the given percentages from low to high: exactly so many of each
// hundred, spread over it.
func share(n, low, high int) bool {
	const stride = 37 // has no divisor in common with 100
	place := n * stride % 100
	return low <= place && place < high
}

// plan returns the plan of the next message.
func (t *transactions) plan(slot driver.Slot) byte {
	o := t.p.opts
	plan := byte(planCommit)
	switch {
	case share(t.sent, 0, o.RollbackPercent):
		plan = planRollback
	case share(t.sent, o.RollbackPercent, o.RollbackPercent+o.UnknownPercent):
		plan = planOpen
	}
	t.sent++
	at := int(slot.Index())
	t.mu.Lock()
	defer t.mu.Unlock()
	if at >= len(t.plans) {
		t.plans = append(t.plans, make([]byte, at+1-len(t.plans))...)
	}
	t.plans[at] = plan
	return plan
}

// half is called when the broker has stored a half message: it commits the message, rolls it back or leaves it open, as
// planned. It reports whether it was rolled back.
func (t *transactions) half(slot driver.Slot, r *reply) (withheld bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	plan := t.plans[slot.Index()]
	withheld = plan == planRollback
	t.halves.Add(1)
	switch plan {
	case planCommit:
		t.committed.Add(1)
	case planRollback:
		t.rolledBack.Add(1)
	default:
		t.leftOpen.Add(1)
		t.due++
		return withheld // the broker detects that and checks back
	}
	msgID := r.Get("msgId")
	offset, ok := wire.ParseMessageID(msgID)
	if !ok {
		return withheld // the broker will check back
	}
	t.sendEnd(r, storedTable, flagOf(plan), offset, msgID)
	return withheld
}

// The fields with the offset in the table of half messages: in the answer to a half message, and in a check-back.
const (
	storedTable  = "queueOffset"
	checkedTable = "tranStateTableOffset"
)

// sendEnd answers r, which is about a half message, with the end of its transaction; t.mu is held. It never waits,
// because it runs in the connection's reader, which flushes when there is nothing more to read. If the answer is lost,
// the broker checks back.
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

// checkTransaction answers a check-back of a broker.
func (c *client) checkTransaction(r *reply) {
	var m wire.Message
	if _, err := m.Cut(r.Body); err != nil {
		return // the broker will check back again
	}
	id := wire.Property(m.Properties, wire.PropUniqueKey)
	if len(id) < idSeed {
		return // the message is not ours
	}
	if t, ours := c.d.asked.Load(string(id[:idSeed])); ours {
		t.(*transactions).check(r, &m, id, true)
		return
	}
	// A member of the group in another process may have sent it: the broker asks any member.
	var t *transactions
	c.mu.Lock()
	for _, p := range c.producers[string(wire.Property(m.Properties, wire.PropProducerGroup))] {
		t = p.tx // all of a driver have one, or none has
	}
	c.mu.Unlock()
	if t != nil {
		t.check(r, &m, id, false)
	}
}

// check answers a check-back. The message is our own or from another process.
func (t *transactions) check(r *reply, m *wire.Message, id []byte, own bool) {
	plan := wire.Property(m.Properties, propPlan)
	commitLog, ok := r.Number("commitLogOffset")
	if len(plan) == 0 || !ok {
		return // the message is not ours
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checked.Add(1)
	again := t.checks.next(id) > 0
	switch {
	case !own:
		t.foreign.Add(1)
	case plan[0] != planOpen:
		t.unexpected.Add(1)
	case again:
		t.duplicated.Add(1)
	default:
		t.due--
		transport.Notify(t.idle)
		t.late.Add(1)
	}
	t.sendEnd(r, checkedTable, flagOf(plan[0]), commitLog, id)
}

func flagOf(plan byte) int {
	if plan == planRollback {
		return wire.SysRollback
	}
	return wire.SysCommit
}

// waitChecks waits until no more check-backs are due, as long as the option check-wait and ctx allow. The error has the
// number of transactions that are still open then.
func (t *transactions) waitChecks(ctx context.Context) error {
	if t.p.opts.CheckWait == 0 {
		return nil
	}
	timer := time.NewTimer(t.p.opts.CheckWait)
	defer timer.Stop()
	for {
		due := t.stillOpen()
		if due == 0 || t.p.reachable(nil) != nil {
			return nil
		}
		over := driver.Errorf(driver.ClassTimeout, t.p.op,
			"raise -o check-wait and --connect-timeout, which bounds all closing, or lower the "+
				"broker's transactionTimeOut and transactionCheckInterval",
			"%d transactions are still open: the broker has not checked them", due)
		select {
		case <-t.idle:
		case <-timer.C:
			return over
		case <-ctx.Done():
			return over
		}
	}
}

// stillOpen returns the number of transactions that wait for a check-back.
func (t *transactions) stillOpen() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.due, 0)
}

func (t *transactions) counters() []driver.Counter {
	return []driver.Counter{
		{Name: "tx-half", Help: "half messages that the broker stored", Value: t.halves.Load()},
		{Name: "tx-committed", Help: "transactions committed at once", Value: t.committed.Load()},
		{Name: "tx-rolled-back", Help: "transactions rolled back at once", Value: t.rolledBack.Load()},
		{Name: "tx-left-open", Help: "transactions left open, for the broker to check back", Value: t.leftOpen.Load()},
		{Name: "tx-checks", Help: "check-backs of the broker", Value: t.checked.Load()},
		{Name: "tx-committed-late", Help: "transactions committed at a check-back", Value: t.late.Load()},
		{
			Name: "tx-open",
			Help: "transactions still open: not checked back yet, or left open then; their messages are in the broker, but " +
				"not delivered", Value: uint64(t.stillOpen()),
		},
		{
			Name: "tx-unexpected-checks",
			Help: "check-backs of transactions that had been ended at once, but which the broker had not noted in time; if " +
				"committed, these are delivered twice", Value: t.unexpected.Load(),
		},
		{
			Name: "tx-duplicated-checks", Help: "check-backs of transactions that had been ended at an earlier one",
			Value: t.duplicated.Load(),
		},
		{
			Name: "tx-foreign-checks", Help: "check-backs of transactions of other processes in the same producer group",
			Value: t.foreign.Load(),
		},
	}
}
