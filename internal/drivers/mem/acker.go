package mem

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// startAcker makes sure that the goroutine that ends sends is running. p.mu is held.
func (p *producer) startAcker() {
	if !p.acking {
		p.acking = true
		go p.acknowledge()
	}
}

func (p *producer) end(slot driver.Slot, o driver.Outcome) {
	p.tally.add(accepted + counter(o.State))
	p.done.Done(slot, o)
}

// acknowledge ends the sends of the FIFO when they are due, and all of them when the connection is lost.
func (p *producer) acknowledge() {
	defer close(p.gone)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	connLost, connFroze := p.conn.lost, p.conn.frozen
	for {
		if p.conn.dead() {
			connLost = nil
			p.abandon()
		}
		if p.conn.state.Load() != connLive { // including a connection lost after it froze
			connFroze = nil
		}
		next, wait := p.nextDue()
		if wait == 0 {
			if next.tx != nil {
				p.endTransaction(next.tx)
			} else {
				p.end(next.slot, next.outcome)
			}
			continue
		}
		var replaced chan struct{}
		if f := p.broker.faults.Load(); f != nil {
			replaced = f.replaced
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.work:
		case <-replaced:
		case <-connLost:
		case <-connFroze:
		case <-p.stop:
			return
		}
	}
}

// nextDue removes the head if it is due; otherwise it returns how long to wait.
func (p *producer) nextDue() (next pending, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fifo.len() == 0 && p.stuck == 0 {
		signal(p.drained)
		return next, time.Hour
	}
	if p.fifo.len() == 0 || p.conn.state.Load() != connLive {
		return next, time.Hour
	}
	now := p.broker.now()
	due := max(now, p.fifo.at(0).due)
	if f := p.broker.faults.Load(); f != nil {
		due = f.afterStall(due)
	}
	if due > now {
		return next, time.Duration(due - now)
	}
	return p.fifo.pop(), 0
}

// abandon ends all pending messages as Unknown.
func (p *producer) abandon() {
	p.mu.Lock()
	slots := p.withheld
	p.withheld, p.stuck = nil, 0
	transactions := []*transaction{}
	for p.fifo.len() > 0 {
		switch next := p.fifo.pop(); next.tx {
		case nil:
			slots = append(slots, next.slot)
		default:
			transactions = append(transactions, next.tx)
		}
	}
	if p.tx != nil {
		transactions = append(transactions, p.tx)
		p.tx = nil
	}
	p.mu.Unlock()
	o := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	if p.conn.dead() {
		o.Class = driver.ClassConnectionLost
	}
	o.Err = driver.Errorf(o.Class, p.op, "", "the broker did not answer before the end")
	for _, slot := range slots {
		p.end(slot, o)
	}
	for _, tx := range transactions {
		tx.outcome = o
		p.endTransaction(tx)
	}
}
