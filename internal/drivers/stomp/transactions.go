package stomp

import (
	"sync"

	"github.com/perfmq/perfmq/pkg/driver"
)

// transactions are the transactions of a producer: one that is being filled, and those whose commit has been sent.
type transactions struct {
	p        *producer
	interval int

	mu     sync.Mutex
	number uint64 // of the open one
	open   []sent
	header string            // header line of the open one
	ending map[uint64][]sent // commit sent, not answered
	spare  [][]sent
}

type sent struct {
	slot driver.Slot
	seq  uint64
}

func newTransactions(p *producer, interval int) *transactions {
	return &transactions{p: p, interval: interval, ending: map[uint64][]sent{}}
}

// add appends m, what begins its transaction if it is the first, and the commit if it is the last. The outbox is
// locked.
func (t *transactions) add(b []byte, m *driver.Message, seq uint64) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		t.number++
		name := receipt{kind: receiptOfCommit, owner: t.p.index, seq: t.number}.String()
		t.header = "\ntransaction:" + name
		b = append(append(append(b, "BEGIN\ntransaction:"...), name...), "\n\n\x00"...)
	}
	b = t.p.appendSend(b, m, t.header)
	t.open = append(t.open, sent{m.Slot, seq})
	if len(t.open) == t.interval {
		b = t.commitLocked(b)
	}
	return b
}

// commit appends the commit of the open transaction, if there is one. The outbox is locked.
func (t *transactions) commit(b []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		return b
	}
	return t.commitLocked(b)
}

func (t *transactions) commitLocked(b []byte) []byte {
	r := receipt{kind: receiptOfCommit, owner: t.p.index, seq: t.number}
	b = append(append(b, "COMMIT"...), t.header...)
	b = append(r.append(append(b, "\nreceipt:"...)), "\n\n\x00"...)
	t.ending[t.number] = t.open
	t.open = nil
	if n := len(t.spare); n > 0 {
		t.open, t.spare = t.spare[n-1], t.spare[:n-1]
	}
	return b
}

// ended reports the messages of a transaction whose commit was answered; it returns false if there is no such commit.
func (t *transactions) ended(number uint64, o driver.Outcome) bool {
	t.mu.Lock()
	list, ok := t.ending[number]
	delete(t.ending, number)
	t.mu.Unlock()
	if !ok {
		return false
	}
	for _, s := range list {
		t.p.complete(s.slot, s.seq, o)
	}
	t.mu.Lock()
	t.spare = append(t.spare, list[:0])
	t.mu.Unlock()
	return true
}

// abandon aborts the open transaction and reports its messages as failed: they were never committed. Those whose commit
// was sent are reported as part of all that is in flight.
func (t *transactions) abandon(o driver.Outcome) {
	t.mu.Lock()
	list, header := t.open, t.header
	t.open = nil
	t.mu.Unlock()
	if len(list) == 0 {
		return
	}
	_ = t.p.conn.out.put(func(b []byte) []byte { // fails only when the connection, and so the transaction, has ended
		return append(append(append(b, "ABORT"...), header...), "\n\n\x00"...)
	})
	for _, s := range list {
		t.p.complete(s.slot, s.seq, driver.Outcome{State: driver.Failed, Class: o.Class, Err: o.Err})
	}
}
