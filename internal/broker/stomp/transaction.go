package stomp

import (
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// Bounds of a connection's transactions.
const (
	maxTransactions    = 1000
	maxTransacted      = 1_000_000 // frames
	maxTransactedBytes = 256 << 20
)

// transaction holds frames until COMMIT.
type transaction struct {
	conn  *conn
	steps []step
	to    []*store.Destination // of each SEND step
	bytes int
}

// step is a SEND, ACK or NACK.
type step struct {
	to *store.Destination // of SEND
	m  *store.Message

	sub  *subscription // of ACK and NACK
	id   uint64        // of the delivery
	nack bool
	drop bool // with nack: without redelivery
}

func (c *conn) begin(f *wire.Received) error {
	name := c.text(f, "transaction")
	switch {
	case name == "":
		return refuse("invalid frame: BEGIN without transaction")
	case c.txs[name] != nil:
		return refuse("invalid frame: there is a transaction %.80q already", name)
	case len(c.txs) >= maxTransactions:
		return refuse("limit reached: more than %d transactions at a time", maxTransactions)
	}
	c.txs[name] = &transaction{conn: c}
	return nil
}

// findTx returns an open transaction.
func (c *conn) findTx(name []byte) (*transaction, error) {
	plain, _ := wire.Unescape(name)
	t := c.txs[string(plain)]
	if t == nil {
		return nil, refuse("invalid frame: no such transaction: %.80q", plain)
	}
	return t, nil
}

// add adds a step to a transaction.
func (c *conn) add(name []byte, s step, size int) error {
	t, err := c.findTx(name)
	if err != nil {
		return err
	}
	if c.txBytes += size; c.txBytes > maxTransactedBytes || len(t.steps) >= maxTransacted {
		return refuse("limit reached: a transaction takes %d frames, and all of a connection %d bytes", maxTransacted,
			maxTransactedBytes)
	}
	if !c.account.Take(int64(size) + store.MessageSize) {
		return refuse("limit reached: %s", store.ErrNoMemory)
	}
	t.steps = append(t.steps, s)
	t.bytes += size
	if s.to != nil {
		t.to = append(t.to, s.to)
	}
	return nil
}

// free frees the frames of the transaction.
func (t *transaction) free() {
	t.conn.account.Give(int64(t.bytes) + int64(len(t.steps))*store.MessageSize)
	t.steps = nil
}

// endTx removes a transaction from the open ones.
func (c *conn) endTx(f *wire.Received) (*transaction, error) {
	t, err := c.findTx(f.Get("transaction"))
	if err != nil {
		return nil, err
	}
	delete(c.txs, c.text(f, "transaction"))
	c.txBytes -= t.bytes
	return t, nil
}

// abort discards a transaction. Its acknowledgements have no effect, and can be sent again. It waits for the end of a
// stall: clients abort an empty transaction to learn whether the broker stands still.
func (c *conn) abort(f *wire.Received) error {
	if err := c.awaitStall(); err != nil {
		return err
	}
	t, err := c.endTx(f)
	if err == nil {
		t.free()
	}
	return err
}

// commit applies all steps of a transaction, if there is room for all of them.
func (c *conn) commit(f *wire.Received) error {
	t, err := c.endTx(f)
	if err != nil {
		return err
	}
	defer t.free()
	full := c.server.store.RefuseCommit(t.to)
	if full != nil {
		return refuse("%s", full.WhyFull())
	}
	for _, d := range t.to {
		lacksRoom, err := c.lacksRoom(d, 0)
		if err != nil {
			return err
		}
		if lacksRoom {
			full = d
		}
	}
	if full != nil {
		c.server.store.CountFull(len(t.to))
	}
	if err := c.awaitStall(); err != nil {
		return err
	}
	for i := range t.steps {
		if s := t.steps[i].sub; s != nil && s.closed {
			return refuse("invalid transaction: an acknowledgement in it is of a subscription that has ended")
		}
	}
	if t.apply() {
		c.confirm(full, full != nil, f.Get("receipt"), t.bytes)
	}
	return nil
}

// apply applies all steps. It returns false if the fault withholds the confirmation.
func (t *transaction) apply() (confirm bool) {
	confirm = true
	for i := range t.steps {
		s := &t.steps[i]
		if s.to == nil {
			s.settle() // no effect if the message was settled since
			continue
		}
		if s.to.Commit(s.m) == store.Withheld {
			confirm = false
		}
	}
	return confirm
}
