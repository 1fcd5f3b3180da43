package stomp

import (
	"bytes"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// maxTransactions bounds the transactions of a connection.
const maxTransactions = 1000

// transaction holds frames until COMMIT.
type transaction struct {
	store.Transaction
	acks []step
}

// step is an ACK or NACK.
type step struct {
	sub     *subscription
	id      uint64 // of the delivery
	outcome store.Outcome
}

func (c *conn) begin(f *wire.Received) error {
	name := c.text(f, "transaction")
	switch {
	case name == "":
		return missing("transaction")
	case c.txs[name] != nil:
		return refuse("invalid frame: there is a transaction %.80q already", name)
	case len(c.txs) >= maxTransactions:
		return refuse("limit reached: %d transactions", maxTransactions)
	}
	c.txs[name] = &transaction{Transaction: c.account.Begin()}
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

// sendIn adds a message to a transaction.
func (c *conn) sendIn(name []byte, d *store.Destination, m *store.Message) error {
	t, err := c.findTx(name)
	if err == nil && !t.Send(d, m) {
		err = errLargeTx()
	}
	return err
}

// settleIn adds an acknowledgement to a transaction.
func (c *conn) settleIn(name []byte, s step) error {
	t, err := c.findTx(name)
	if err != nil {
		return err
	}
	if !t.Hold(store.MessageSize) {
		return errLargeTx()
	}
	t.acks = append(t.acks, s)
	return nil
}

func errLargeTx() error { return refuse("limit reached: %s", store.ErrLargeTransaction) }

// endTx removes a transaction from the open ones.
func (c *conn) endTx(f *wire.Received) (*transaction, error) {
	t, err := c.findTx(f.Get("transaction"))
	delete(c.txs, c.text(f, "transaction"))
	return t, err
}

// abort discards a transaction. Its acknowledgements have no effect, and can be sent again. It waits for the end of a
// stall: clients abort an empty transaction to learn whether the broker is stalled.
func (c *conn) abort(f *wire.Received) error {
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	t, err := c.endTx(f)
	if err == nil {
		t.End()
	}
	return err
}

// commit applies all steps of a transaction, if there is room for all of them.
func (c *conn) commit(f *wire.Received) error {
	t, err := c.endTx(f)
	if err != nil {
		return err
	}
	defer t.End()
	full := t.WithoutRoom()
	if full != nil {
		lacksRoom, err := c.lacksRoom(full)
		if err != nil {
			return err
		}
		if !lacksRoom {
			full = nil
		}
	}
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	for i := range t.acks {
		if t.acks[i].sub.closed {
			return refuse("invalid transaction: the subscription of an acknowledgement has ended")
		}
	}
	size := int(t.Held)
	withheld, refusing := t.Commit()
	if refusing != nil {
		return refuse("%s", refusing.WhyFull())
	}
	for i := range t.acks {
		t.acks[i].settle() // no effect if the message was settled since
	}
	if !withheld {
		c.confirm(full, full != nil, f.Get("receipt"), size)
	}
	return nil
}

// settle handles ACK and NACK.
func (c *conn) settle(f *wire.Received, nack bool) error {
	name := f.Get("id")
	if name == nil {
		return missing("id")
	}
	source, serial, id, ok := parseID(name)
	s := c.subs[serial]
	if !ok || source != c.source || serial >= c.serial || s != nil && id >= s.sent.Load() {
		return refuse("invalid acknowledgement: %.80q was not delivered", name)
	}
	if s == nil {
		if f.Get("receipt") != nil || f.Get("transaction") != nil {
			return refuse("invalid acknowledgement: the subscription of %.80q has ended", name)
		}
		return nil // crossed with the end: the message was returned
	}
	step := step{sub: s, id: id}
	switch {
	case nack && string(f.Get("requeue")) == "false":
		step.outcome = store.Rejected
	case nack:
		step.outcome = store.Failed
	}
	switch tx := f.Get("transaction"); {
	case s.mode == modeAuto && nack:
		return refuse("invalid frame: NACK of a message delivered with ack:auto")
	case s.mode == modeAuto:
		return nil // settled at its delivery
	case tx != nil:
		return c.settleIn(tx, step)
	}
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	if !step.settle() && s.mode == modeIndividual {
		return refuse("invalid acknowledgement: %.80q was settled before", name)
	}
	return nil
}

// parseID parses the message-id of a delivery: CONNECTION-SUBSCRIPTION-NUMBER.
func parseID(b []byte) (source, serial, id uint64, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte{'-'})
	second, third, _ := bytes.Cut(rest, []byte{'-'})
	source, ok1 := wire.ParseNumber(first)
	serial, ok2 := wire.ParseNumber(second)
	id, ok3 := wire.ParseNumber(third)
	return source, serial, id, ok1 && ok2 && ok3
}

// settle settles the deliveries of an ACK or NACK; it returns false if they were settled before.
func (x *step) settle() bool {
	if x.sub.mode == modeClient {
		return x.sub.consumer.SettleThrough(x.id, x.outcome) > 0
	}
	return x.sub.consumer.Settle(x.id, x.outcome)
}
