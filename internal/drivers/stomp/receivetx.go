package stomp

import (
	"context"
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// idleCommit is how long a transaction that is not full waits for another message before it is committed.
const idleCommit = 100 * time.Millisecond

// receiving are the transactions in which a consumer receives: one that is being filled with acknowledgements, and
// those whose commit has been sent. The next one does not wait for the answer to the one before.
type receiving struct {
	k       *consumer
	size    int
	commits driver.Commits

	// Of Run.
	number uint64 // of the open one
	n      int    // acknowledgements in it
	header []byte // its header line
	timer  *time.Timer

	sent     []committing  // without slots; guarded by k.mu, which is also held while commits is called
	answered chan struct{} // sent has shrunk
}

func newReceiving(k *consumer, spec *driver.ConsumerSpec) *receiving {
	t := &receiving{
		k: k, size: spec.TransactionSize, commits: spec.Commits, answered: make(chan struct{}, 1),
		timer: time.NewTimer(idleCommit),
	}
	t.timer.Stop()
	if t.commits == nil {
		t.commits = func(time.Duration, bool) {}
	}
	return t
}

// add acknowledges a message in the transaction, and commits that if it is full.
func (t *receiving) add(ack []byte) {
	out := t.k.conn.out
	if t.n == 0 {
		t.number++
		t.header = t.receipt().append(append(t.header[:0], "\ntransaction:"...))
		_ = out.Put(t.appendBegin) // an error is one of the connection, which Run reports
	}
	t.k.putIn(wire.ACK, ack, t.header)
	if t.n++; t.n == t.size {
		t.commit()
	}
}

func (t *receiving) receipt() receipt {
	return receipt{kind: receiptOfReceive, owner: t.k.id, number: t.number}
}

func (t *receiving) appendBegin(b []byte) []byte {
	return append(append(append(b, "BEGIN"...), t.header...), "\n\n\x00"...)
}

func (t *receiving) appendCommit(b []byte) []byte {
	b = append(append(b, "COMMIT"...), t.header...)
	return append(t.receipt().append(append(b, "\nreceipt:"...)), "\n\n\x00"...)
}

// commit commits the open transaction.
func (t *receiving) commit() {
	t.n = 0
	t.k.mu.Lock()
	t.sent = append(t.sent, committing{number: t.number, at: time.Now()})
	t.k.mu.Unlock()
	_ = t.k.conn.put(t.appendCommit) // an error is one of the connection, which Run reports
}

// end commits the delivered messages, and waits for the answers.
func (t *receiving) end(ctx context.Context) {
	if t.n > 0 {
		t.commit()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.k.conn.driver.cfg.ConnectTimeout)
	defer cancel()
	for t.open() && ctx.Err() == nil && !t.k.conn.Dead() {
		select {
		case <-t.answered:
		case <-ctx.Done():
		case <-t.k.conn.Over():
		}
	}
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	for _, c := range t.sent {
		t.commits(time.Since(c.at), false)
	}
	t.sent = nil
}

// open reports whether a commit has no answer yet.
func (t *receiving) open() bool {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	return len(t.sent) > 0
}

// committed takes the answer to a commit; it returns false if nothing waits for it. The messages of a transaction
// that the broker did not commit come again, so that there is no going on as if nothing had happened.
func (k *consumer) committed(number uint64, err error) bool {
	t := k.tx
	if t == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(t.sent, func(c committing) bool { return c.number == number })
	if at < 0 {
		return false
	}
	t.commits(time.Since(t.sent[at].at), err == nil)
	t.sent = slices.Delete(t.sent, at, at+1)
	if err != nil && k.fault == nil {
		k.fault = err
		notify(k.arrived)
	}
	notify(t.answered)
	return true
}
