package amqp

import (
	"encoding/binary"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// maxTxnBytes bounds an uncommitted transaction.
const maxTxnBytes = 64 << 20

// txn is a transaction: its sends and settlements take effect at the commit. It is the reader's.
type txn struct {
	owner        *inLink
	sends        []*store.Message
	to           []*store.Destination // of each of sends
	acks         []txnAck
	bytes        int
	held         int64 // bytes on the connection's account
	rollbackOnly bool  // a bound was exceeded
}

// txnAck is a settlement to be applied at the commit.
type txnAck struct {
	s       *session
	n       uint64 // position of the delivery, while it is unsettled
	one     delivered
	verdict wire.State
	settled bool // by the receiver: no longer among the session's deliveries
}

// coordinate handles a message to the coordinator (Transactions, section 4.5).
func (l *inLink) coordinate(n *node) error {
	c := l.s.c
	p, err := wire.ParseBody(n.content.body)
	switch {
	case n.content.bodyKind != wire.DescValue:
		return fail(wire.CondDecode, "a message to the coordinator that is no value")
	case err != nil:
		return failDecode(err)
	case p.Kind == wire.DescDeclare:
		if len(c.txns) >= 1024 {
			l.reject(fail(wire.CondResourceLimit, "too many transactions at once"))
			return nil
		}
		c.txnCount++
		name := binary.BigEndian.AppendUint64(nil, c.txnCount)
		c.txns[string(name)] = &txn{owner: l}
		l.answer((&wire.State{Kind: wire.DescDeclared, TxnID: name}).Append(nil))
	case p.Kind == wire.DescDischarge:
		var d wire.Discharge
		if err := d.Decode(&p.Fields); err != nil {
			return failDecode(err)
		}
		t := c.txns[string(d.TxnID)]
		if t == nil {
			l.reject(fail(wire.CondUnknownTxn, "there is no such transaction"))
			return nil
		}
		delete(c.txns, string(d.TxnID))
		if d.Fail {
			t.rollback(c)
			l.answer([]byte(wire.Accepted))
			return nil
		}
		switch withheld, f := t.commit(c); {
		case f != nil:
			t.rollback(c)
			l.reject(f)
		case !withheld:
			l.answer([]byte(wire.Accepted))
		}
	default:
		return fail(wire.CondDecode, "neither declare nor discharge")
	}
	return nil
}

// sendInTxn keeps a message until the commit of its transaction.
func (l *inLink) sendInTxn(id []byte, dest *store.Destination, m *store.Message, size int) error {
	t := l.s.c.txns[string(id)]
	if t == nil {
		return failSession(wire.CondUnknownTxn, "there is no such transaction")
	}
	count := int64(size) + store.MessageSize
	switch t.bytes += int(count); {
	case t.rollbackOnly:
	case t.bytes > maxTxnBytes || !l.s.c.account.Take(count):
		t.setRollbackOnly(l.s.c)
	default:
		t.held += count
		t.sends, t.to = append(t.sends, m), append(t.to, dest)
	}
	l.answer((&wire.State{Kind: wire.DescAccepted, Transactional: true, TxnID: id}).Append(nil))
	return nil
}

func (t *txn) setRollbackOnly(c *conn) {
	t.rollbackOnly = true
	t.free(c)
}

// free frees the messages.
func (t *txn) free(c *conn) {
	c.account.Give(t.held)
	t.sends, t.to, t.held = nil, nil, 0
}

// acknowledge keeps a settlement until the commit; the connection's lock is held.
func (t *txn) acknowledge(s *session, n uint64, one delivered, o *wire.State, settled bool) {
	if !o.Terminal() {
		return
	}
	if settled {
		s.unsettled.Remove(n)
	} else if t.bytes += 64; t.bytes > maxTxnBytes {
		t.setRollbackOnly(s.c)
		return
	}
	t.acks = append(t.acks, txnAck{s, n, one, *o, settled})
}

// commit applies the whole transaction or, with a failure, nothing of it. withheld means that the fault withholds the
// confirmation.
func (t *txn) commit(c *conn) (withheld bool, refused *failure) {
	if t.rollbackOnly {
		return false, failCommit(wire.CondResourceLimit,
			"the transaction has more than %d bytes, or than the broker has memory for", maxTxnBytes)
	}
	if full := c.srv.store.RefuseCommit(t.to); full != nil {
		return false, failCommit(wire.CondResourceLimit, "%s", full.WhyFull())
	}
	for i, m := range t.sends {
		if t.to[i].Commit(m) == store.Withheld {
			withheld = true
		}
	}
	t.free(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range t.acks {
		if !a.settled {
			if a.s.unsettled.Get(a.n).link != a.one.link {
				continue // the link has ended with its deliveries
			}
			a.s.unsettled.Remove(a.n)
			number := uint32(a.n) //nolint:gosec // serial
			d := wire.Disposition{
				Role: wire.RoleSender, First: number, Last: number, Settled: true, State: []byte(wire.Accepted),
			}
			c.out = d.AppendFrame(c.out, a.s.channel)
		}
		a.one.settle(&a.verdict)
	}
	c.wakeWriter()
	return withheld, nil
}

// rollback returns deliveries that the receiver settled in the transaction. Unsettled ones stay with the receiver.
func (t *txn) rollback(c *conn) {
	for _, a := range t.acks {
		if a.settled {
			a.one.link.consumer.Release(a.one.id, true)
		}
	}
	t.acks = nil
	t.free(c)
}

// endCoordinator rolls back the link's transactions.
func (l *inLink) endCoordinator() {
	for id, t := range l.s.c.txns {
		if t.owner == l {
			delete(l.s.c.txns, id)
			t.rollback(l.s.c)
		}
	}
}
