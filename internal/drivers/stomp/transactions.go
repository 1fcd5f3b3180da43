package stomp

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// transactions are the transactions of a producer or consumer: the open one, and those with a COMMIT in flight. The
// next one does not wait for the answer to the one before.
type transactions struct {
	receipt receipt // of the commit of the open transaction
	prefix  string  // of the header, with a name that no other connection uses: Artemis 2.19 knows one list of names
	header  []byte  // the header line that adds a frame to it
	commits driver.Commits
	sent    []committing // guarded by a lock of the owner
}

// committing is a transaction with a COMMIT in flight.
type committing struct {
	number uint64
	at     time.Time     // when it was sent
	slots  []driver.Slot // of the messages that were sent in it
}

func newTransactions(kind byte, commits driver.Commits) transactions {
	if commits == nil {
		commits = func(time.Duration, bool) {}
	}
	prefix := "\ntransaction:" + rand.Text()[:10] + "-"
	return transactions{receipt: receipt{kind: kind}, prefix: prefix, commits: commits}
}

// begin appends the BEGIN of the next transaction.
func (t *transactions) begin(b []byte) []byte {
	t.receipt.number++
	t.header = t.receipt.append(append(t.header[:0], t.prefix...))
	return append(append(append(b, "BEGIN"...), t.header...), "\n\n\x00"...)
}

// commit records that the COMMIT of the open transaction, with the messages of slots, is being sent.
func (t *transactions) commit(slots []driver.Slot) {
	t.sent = append(t.sent, committing{t.receipt.number, time.Now(), slots})
}

// appendCommit appends the COMMIT.
func (t *transactions) appendCommit(b []byte) []byte {
	b = append(append(append(b, "COMMIT"...), t.header...), "\nreceipt:"...)
	return append(t.receipt.append(b), "\n\n\x00"...)
}

// answered processes the answer to a commit; ok is false if no commit waits for it.
func (t *transactions) answered(number uint64, confirmed bool) (slots []driver.Slot, ok bool) {
	at := slices.IndexFunc(t.sent, func(c committing) bool { return c.number == number })
	if at < 0 {
		return nil, false
	}
	c := t.sent[at]
	t.sent = slices.Delete(t.sent, at, at+1)
	t.commits(time.Since(c.at), confirmed)
	return c.slots, true
}

// giveUp reports the commits without an answer.
func (t *transactions) giveUp() {
	for _, c := range t.sent {
		t.commits(time.Since(c.at), false)
	}
	t.sent = nil
}

// sending are the transactions of a producer.
type sending struct {
	p        *producer
	interval int
	waits    bool // a gathered COMMIT was not to be written at once; of the goroutine that sends

	// mu is also held while commits is called, so that Close does not return meanwhile.
	mu sync.Mutex
	transactions
	open  []driver.Slot // of the messages in the open transaction
	spare [][]driver.Slot
}

// add appends m, after the BEGIN of its transaction if m is the first message, and before the COMMIT if m is the last.
// It reports whether it appended the COMMIT. The output is locked.
func (t *sending) add(b []byte, m *driver.Message) (frames []byte, committed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		b = t.begin(b)
	}
	b = t.p.appendSend(b, m, t.header)
	t.open = append(t.open, m.Slot)
	if len(t.open) < t.interval {
		return b, false
	}
	return t.commitOpen(b), true
}

// commitOpen appends the commit of the open transaction, if there is one. It is called with the lock.
func (t *sending) commitOpen(b []byte) []byte {
	if len(t.open) == 0 {
		return b
	}
	b = t.appendCommit(b)
	t.commit(t.open)
	t.open = nil
	if n := len(t.spare); n > 0 {
		t.open, t.spare = t.spare[n-1], t.spare[:n-1]
	}
	return b
}

// ended reports the messages of a transaction after the answer to its commit; it returns false if there is no such
// commit.
func (t *sending) ended(number uint64, o driver.Outcome) bool {
	t.mu.Lock()
	slots, ok := t.answered(number, o.State == driver.Accepted)
	t.mu.Unlock()
	if ok {
		t.p.sends.End(slots, o)
		t.mu.Lock()
		t.spare = append(t.spare, slots[:0])
		t.mu.Unlock()
	}
	return ok
}

// abandon aborts the open transaction and reports its messages as failed, since they were never committed; if the
// connection was lost, as o, since they must be sent again like the others. Messages of a transaction with a COMMIT in
// flight are reported with the others in flight.
func (t *sending) abandon(o driver.Outcome, lost bool) {
	t.mu.Lock()
	t.giveUp()
	list, header := t.open, slices.Clone(t.header)
	t.open = nil
	t.mu.Unlock()
	if len(list) == 0 {
		return
	}
	_ = t.p.conn.Put(func(b []byte) []byte { // fails only when the connection, and so the transaction, has ended
		return append(append(append(b, "ABORT"...), header...), "\n\n\x00"...)
	})
	if !lost {
		o.State = driver.Failed
	}
	t.p.sends.End(list, o)
}

// idleCommit is the time that a transaction that is not full waits for another message before it is committed.
const idleCommit = 100 * time.Millisecond

// receiving are the transactions in which a consumer receives. Run owns them, except the commits in flight: the
// consumer's lock guards these, and is held while commits is called.
type receiving struct {
	transactions
	k       *consumer
	size    int
	n       int // acknowledgements in the open transaction
	timer   *time.Timer
	changed chan struct{} // an answer to a commit has come
}

func newReceiving(k *consumer, spec *driver.ConsumerSpec) *receiving {
	t := &receiving{
		transactions: newTransactions(receiptOfReceive, spec.Commits), k: k, size: spec.TransactionSize,
		changed: make(chan struct{}, 1), timer: time.NewTimer(idleCommit),
	}
	t.timer.Stop()
	return t
}

// add acknowledges a message in the transaction, and commits the transaction if it is full.
func (t *receiving) add(ack []byte) {
	if t.n == 0 {
		_ = t.k.conn.Out.Put(t.begin) // it fails with the connection, which Run reports
	}
	t.k.put(wire.ACK, ack, t.header)
	if t.n++; t.n == t.size {
		t.commitOpen()
	}
}

// commitOpen commits the open transaction.
func (t *receiving) commitOpen() {
	t.n = 0
	t.k.mu.Lock()
	t.commit(nil)
	t.k.mu.Unlock()
	_ = t.k.conn.Put(t.appendCommit)
}

// end commits the delivered messages, and waits for the answers.
func (t *receiving) end(ctx context.Context) {
	if t.n > 0 {
		t.commitOpen()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.k.conn.driver.cfg.ConnectTimeout)
	defer cancel()
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	for len(t.sent) > 0 && ctx.Err() == nil && !t.k.conn.Dead() {
		t.k.mu.Unlock()
		select {
		case <-t.changed:
		case <-ctx.Done():
		case <-t.k.conn.Over():
		}
		t.k.mu.Lock()
	}
	t.giveUp()
}

// committed processes the answer to a commit; it returns false if no commit waits for it. The messages of a transaction
// that the broker did not commit come again, so that Run must not continue.
func (k *consumer) committed(number uint64, err error) bool {
	t := k.tx
	if t == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := t.answered(number, err == nil); !ok {
		return false
	}
	if err != nil {
		k.failLocked(err)
	}
	transport.Notify(t.changed)
	return true
}
