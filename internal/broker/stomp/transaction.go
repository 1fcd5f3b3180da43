package stomp

import (
	"slices"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// The bounds of a connection's transactions.
const (
	maxTransactions    = 1000
	maxTransacted      = 1_000_000 // frames
	maxTransactedBytes = 256 << 20
)

// transaction holds frames until it is committed.
type transaction struct {
	conn  *conn
	steps []step
	sends int                  // of them
	to    []*store.Destination // of these, each once
	bytes int
}

// step is a SEND, ACK or NACK.
type step struct {
	to *store.Destination // of a SEND
	m  *store.Message

	sub  *subscription // of the others
	id   uint64        // of the delivery
	nack bool
	drop bool // with nack: it is not to come again
}

// held is how many bytes count against the broker's memory.
func (t *transaction) held() int64 { return int64(t.bytes) + int64(len(t.steps))*store.MessageSize }

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

// find returns the transaction that a frame names.
func (c *conn) find(name []byte) (*transaction, error) {
	plain, _ := c.version.Unescape(name)
	t := c.txs[string(plain)]
	if t == nil {
		return nil, refuse("invalid frame: no such transaction: %.80q", plain)
	}
	return t, nil
}

// add puts a step into the transaction that a frame names.
func (c *conn) add(name []byte, s step, size int) error {
	t, err := c.find(name)
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
		t.sends++
		if !slices.Contains(t.to, s.to) {
			t.to = append(t.to, s.to)
		}
	}
	return nil
}

// forget lets go of the frames that the transaction holds.
func (t *transaction) forget() {
	t.conn.account.Give(t.held())
	t.steps = nil
}

// take ends a transaction for its client.
func (c *conn) take(f *wire.Received) (*transaction, error) {
	t, err := c.find(f.Get("transaction"))
	if err != nil {
		return nil, err
	}
	delete(c.txs, c.text(f, "transaction"))
	c.txBytes -= t.bytes
	return t, nil
}

// abort forgets a transaction. Messages acknowledged in it count as not acknowledged, and can be again. It waits for the
// end of a stall: clients abort a transaction of nothing to learn whether the broker stands still.
func (c *conn) abort(f *wire.Received) error {
	if err := c.awaitStall(); err != nil {
		return err
	}
	t, err := c.take(f)
	if err == nil {
		t.forget()
	}
	return err
}

// commit does all steps of a transaction, if there is room for all of them.
func (c *conn) commit(f *wire.Received) error {
	t, err := c.take(f)
	if err != nil {
		return err
	}
	defer t.forget()
	var last *store.Destination // of those that are full
	for _, d := range t.to {
		if c.rejects() && !d.Room(nil) {
			c.server.store.CountFull(t.sends)
			return refuse("%s is full", d.Address())
		}
		full, err := c.lacksRoom(d, 0)
		if err != nil {
			return err
		}
		if full {
			last = d
		}
	}
	if last != nil {
		c.server.store.CountFull(t.sends)
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
		c.confirm(last, last != nil, f.Get("receipt"), t.bytes)
	}
	return nil
}

// apply does all steps. It returns false if it is not to be confirmed.
func (t *transaction) apply() (confirm bool) {
	confirm = true
	for i := range t.steps {
		s := &t.steps[i]
		if s.to == nil {
			s.settle() // a message that was settled otherwise since stays so
			continue
		}
		if s.to.Gone() { // deleted meanwhile: made anew
			s.to = t.conn.server.store.Destination(s.to.Address())
		}
		if s.to.Commit(s.m) == store.Withheld {
			confirm = false
		}
	}
	return confirm
}
