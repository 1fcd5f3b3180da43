package amqp

import (
	"encoding/binary"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// txn is a transaction: its sends and settlements take effect at the commit. It is the reader's.
type txn struct {
	store.Transaction
	owner *inLink
}

// coordinate handles a message to the coordinator (Transactions, section 4.5).
func (l *inLink) coordinate(n *message) error {
	c := l.s.c
	p, err := wire.ParseBody(n.body)
	switch {
	case n.bodyKind != wire.DescValue:
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
		c.txns[string(name)] = &txn{Transaction: c.account.Begin(), owner: l}
		l.answer((&wire.State{Kind: wire.DescDeclared, TxnID: name}).Append(nil))
	case p.Kind == wire.DescDischarge:
		var d wire.Discharge
		if err := d.Decode(&p.Fields); err != nil {
			return failDecode(err)
		}
		t := c.txns[string(d.TxnID)]
		if t == nil {
			l.reject(failTransaction())
			return nil
		}
		delete(c.txns, string(d.TxnID))
		if d.Fail {
			t.Return()
			l.answer([]byte(wire.Accepted))
			return nil
		}
		switch withheld, f := t.commit(); {
		case f != nil:
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
func (l *inLink) sendInTxn(id []byte, m *store.Message) error {
	t := l.s.c.txns[string(id)]
	if t == nil {
		return failTransaction()
	}
	t.Send(l.dest, m) // beyond a bound, the commit fails
	l.answer((&wire.State{Kind: wire.DescAccepted, Transactional: true, TxnID: id}).Append(nil))
	return nil
}

// commit applies the whole transaction or, with a failure, nothing of it. withheld means that the fault withholds the
// confirmation.
func (t *txn) commit() (withheld bool, refused *wire.Error) {
	if t.Failed {
		return false, failCommit(wire.CondResourceLimit, "%v", store.ErrLargeTransaction)
	}
	withheld, full := t.Commit()
	if full != nil {
		return false, failCommit(wire.CondResourceLimit, "%s", full.WhyFull())
	}
	return withheld, nil
}

// endCoordinator rolls back the link's transactions.
func (l *inLink) endCoordinator() {
	for id, t := range l.s.c.txns {
		if t.owner == l {
			delete(l.s.c.txns, id)
			t.Return()
		}
	}
}
