package stomp

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
