package mem

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// transaction holds the messages of a producer until their commit.
type transaction struct {
	items []item
	slots []driver.Slot
	began time.Time // of the commit; zero before it
}

// sendInTransaction adds a message to the open transaction, and ends the transaction if it is full.
func (p *producer) sendInTransaction(slot driver.Slot, it *item) {
	count(&p.dest.stats.Arrived, 1)
	p.mu.Lock()
	if p.tx == nil {
		p.tx = &transaction{}
	}
	p.tx.items = append(p.tx.items, *it)
	p.tx.slots = append(p.tx.slots, slot)
	full := len(p.tx.slots) >= p.spec.CommitInterval
	p.mu.Unlock()
	if full {
		p.commit()
	} else {
		p.schedule() // the connection may have been lost meanwhile
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
	if err := p.passes(ctx, p.op); err != nil {
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
	if tx == nil {
		return // ended with its connection
	}
	tx.began = time.Now()
	end, refused, disconnect := pending{tx: tx}, false, false
	f := p.broker.faults.Load()
	if f != nil {
		refused, end.due = f.refuses(p.broker.now())
	}
	p.dest.mu.Lock()
	switch {
	case refused:
		end.outcome = refusal(driver.Rejected, driver.ClassOther, "told to refuse the commit")
	case f != nil && !p.dest.room(len(tx.items), f.Limit):
		end.outcome = refusal(driver.Rejected, driver.ClassFull, "the queue is full")
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
	p.pending.insert(p.pending.len(), end)
	p.mu.Unlock()
	p.schedule()
	if disconnect {
		p.broker.Disconnect()
	}
}

// endTransaction reports the messages of a transaction, and its commit if one was requested.
func (p *producer) endTransaction(end *pending) {
	tx, o := end.tx, end.outcome
	p.dest.stats.ended(o.State, len(tx.slots))
	p.done.DoneAll(tx.slots, o)
	if !tx.began.IsZero() {
		p.dest.stats.committed(p.spec.Commits, tx.began, o.State == driver.Accepted)
	}
}

// committed counts and reports the end of a transaction.
func (s *Stats) committed(report driver.Commits, began time.Time, confirmed bool) {
	if confirmed {
		count(&s.Commits, 1)
	} else {
		count(&s.CommitsRefused, 1)
	}
	if report != nil {
		report(time.Since(began), confirmed)
	}
}
