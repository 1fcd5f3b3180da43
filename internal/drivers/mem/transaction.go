package mem

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// transaction holds the messages of a producer until their commit.
type transaction struct {
	items   []item
	slots   []driver.Slot
	began   time.Time // of the commit; zero before it
	outcome driver.Outcome
}

// sendInTransaction adds a message to the open transaction, and ends the transaction if it is full.
func (p *producer) sendInTransaction(slot driver.Slot, it *item) {
	p.arrive()
	p.mu.Lock()
	if p.tx == nil {
		p.tx = &transaction{}
	}
	p.tx.items = append(p.tx.items, *it)
	p.tx.slots = append(p.tx.slots, slot)
	p.startAcker() // it ends the transaction if the connection is lost
	full := len(p.tx.slots) >= p.size
	p.mu.Unlock()
	if full {
		p.commit()
	}
}

// Flush implements [driver.Flusher]: it commits a transaction that is not full.
func (p *producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	open := p.tx != nil
	p.mu.Unlock()
	if !open {
		return nil
	}
	if err := p.conn.passes(ctx, p.op); err != nil {
		return err
	}
	p.commit()
	return nil
}

// commit stores the messages of the open transaction, all or none. It does not wait for room: a full queue refuses it.
func (p *producer) commit() {
	p.mu.Lock()
	tx := p.tx
	p.tx = nil
	p.mu.Unlock()
	tx.began = time.Now()
	refused, answerAt, disconnect := false, int64(0), false
	f := p.broker.faults.Load()
	if f != nil {
		refused, answerAt = f.refuses(p.broker.now())
	}
	p.dest.mu.Lock()
	switch {
	case refused:
		tx.outcome = refusal(driver.Rejected, driver.ClassOther, "told to refuse the commit")
	case f != nil && !p.dest.roomFor(len(tx.items), f.Limit):
		tx.outcome = refusal(driver.Rejected, driver.ClassFull, "the queue is full")
	default:
		for i := range tx.items {
			v := verdict{store: true}
			if f != nil {
				v = f.judge(p.broker.now(), false)
				v.store, v.outcome = true, driver.Outcome{} // the commit's answer is for all messages
				disconnect = disconnect || v.disconnect
			}
			p.place(&tx.items[i], &v, f)
		}
	}
	p.dest.mu.Unlock()
	p.mu.Lock()
	p.fifo.push(&pending{due: answerAt, tx: tx})
	p.mu.Unlock()
	signal(p.work)
	if disconnect {
		p.broker.Disconnect()
	}
}

// endTransaction reports the messages of a transaction, and its commit if one was requested.
func (p *producer) endTransaction(tx *transaction) {
	confirmed := tx.outcome.State == driver.Accepted
	p.tally.n[accepted+counter(tx.outcome.State)].Add(uint64(len(tx.slots)))
	switch {
	case tx.began.IsZero():
	case confirmed:
		p.tally.add(committed)
	default:
		p.tally.add(commitRefused)
	}
	p.done.DoneAll(tx.slots, tx.outcome)
	if !tx.began.IsZero() {
		p.commits(time.Since(tx.began), confirmed)
	}
}
