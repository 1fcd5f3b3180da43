package stomp

import (
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// transactions are the transactions of a producer: one being filled, and the ones whose commit has been sent.
type transactions struct {
	p        *producer
	interval int
	commits  driver.Commits
	waits    bool // a COMMIT is in the output that was not to be written at once; of the goroutine that sends

	// mu is also held while commits is called, so that Close does not return meanwhile.
	mu     sync.Mutex
	number uint64 // of the open one
	open   []driver.Slot
	header []byte // header line of the open one
	sent   []committing
	spare  [][]driver.Slot
}

// committing is a transaction whose commit has been sent and not answered.
type committing struct {
	number uint64
	at     time.Time // when it was sent
	slots  []driver.Slot
}

func newTransactions(p *producer, spec *driver.ProducerSpec) *transactions {
	t := &transactions{p: p, interval: spec.CommitInterval, commits: spec.Commits}
	if t.commits == nil {
		t.commits = func(time.Duration, bool) {}
	}
	return t
}

func (t *transactions) receipt() receipt {
	return receipt{kind: receiptOfCommit, owner: t.p.index, number: t.number}
}

// add appends m, after the BEGIN of its transaction if m is the first message, and before the COMMIT if m is the last.
// It reports whether it appended the COMMIT. The output is locked.
func (t *transactions) add(b []byte, m *driver.Message) (frames []byte, committed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		t.number++
		t.header = t.receipt().append(append(t.header[:0], "\ntransaction:"...))
		b = append(append(append(b, "BEGIN"...), t.header...), "\n\n\x00"...)
	}
	b = t.p.appendSend(b, m, t.header)
	t.open = append(t.open, m.Slot)
	if committed = len(t.open) == t.interval; committed {
		b = t.commitLocked(b)
	}
	return b, committed
}

// commit appends the commit of the open transaction, if there is one. The output is locked.
func (t *transactions) commit(b []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		return b
	}
	return t.commitLocked(b)
}

func (t *transactions) commitLocked(b []byte) []byte {
	b = append(append(b, "COMMIT"...), t.header...)
	b = append(t.receipt().append(append(b, "\nreceipt:"...)), "\n\n\x00"...)
	t.sent = append(t.sent, committing{t.number, time.Now(), t.open})
	t.open = nil
	if n := len(t.spare); n > 0 {
		t.open, t.spare = t.spare[n-1], t.spare[:n-1]
	}
	return b
}

// ended reports the messages of a transaction whose commit was answered; it returns false if there is no such commit.
func (t *transactions) ended(number uint64, o driver.Outcome) bool {
	t.mu.Lock()
	at := slices.IndexFunc(t.sent, func(c committing) bool { return c.number == number })
	if at < 0 {
		t.mu.Unlock()
		return false
	}
	c := t.sent[at]
	t.sent = slices.Delete(t.sent, at, at+1)
	t.commits(time.Since(c.at), o.State == driver.Accepted)
	t.mu.Unlock()
	t.p.end(c.slots, o)
	t.mu.Lock()
	t.spare = append(t.spare, c.slots[:0])
	t.mu.Unlock()
	return true
}

// abandon aborts the open transaction and reports its messages as failed, as they were never committed; if the
// connection was lost, as o: they are to be sent again like the others. Messages whose commit was sent are reported
// with the others in flight.
func (t *transactions) abandon(o driver.Outcome, lost bool) {
	t.mu.Lock()
	for _, c := range t.sent {
		t.commits(time.Since(c.at), false)
	}
	t.sent = nil
	list, header := t.open, slices.Clone(t.header)
	t.open = nil
	t.mu.Unlock()
	if len(list) == 0 {
		return
	}
	_ = t.p.conn.put(func(b []byte) []byte { // fails only when the connection, and so the transaction, has ended
		return append(append(append(b, "ABORT"...), header...), "\n\n\x00"...)
	})
	if !lost {
		o.State = driver.Failed
	}
	t.p.end(list, o)
}
