package stomp

import (
	"bytes"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// maxTransactions bounds the transactions of a connection.
const maxTransactions = 1000

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
	t := c.account.Begin()
	c.txs[name] = &t
	return nil
}

// findTx returns an open transaction.
func (c *conn) findTx(name []byte) (*store.Transaction, error) {
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

func errLargeTx() error { return refuse("limit reached: %s", store.ErrLargeTransaction) }

// endTx removes a transaction from the open ones.
func (c *conn) endTx(f *wire.Received) (*store.Transaction, error) {
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
	if t.Orphaned() {
		return refuse("invalid transaction: the subscription of an acknowledgement has ended")
	}
	size := int(t.Held)
	withheld, refusing := t.Commit()
	if refusing != nil {
		return refuse("%s", refusing.WhyFull())
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
	first, outcome := id, outcomeOf(f, nack)
	if s.mode == modeClient {
		first = 0
	}
	switch tx := f.Get("transaction"); {
	case s.mode == modeAuto && nack:
		return refuse("invalid frame: NACK of a message delivered with ack:auto")
	case s.mode == modeAuto:
		return nil // settled at its delivery
	case tx != nil:
		t, err := c.findTx(tx)
		if err == nil && !t.Settle(s.consumer, first, id, outcome) {
			err = errLargeTx()
		}
		return err
	}
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	if s.consumer.SettleRange(first, id, outcome) == 0 && s.mode == modeIndividual {
		return refuse("invalid acknowledgement: %.80q was settled before", name)
	}
	return nil
}

// outcomeOf returns the outcome of an ACK or NACK.
func outcomeOf(f *wire.Received, nack bool) store.Outcome {
	switch {
	case !nack:
		return store.Accepted
	case string(f.Get("requeue")) == "false":
		return store.Rejected
	}
	return store.Failed
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
