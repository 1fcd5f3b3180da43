package rocketmq

import (
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// half is called when the broker has stored a half message: it commits the message, rolls it back or leaves it open, as
// planned. It reports whether it was rolled back.
func (p *producer) half(slot driver.Slot, r *reply) (withheld bool) {
	plan := p.tx.Half(slot, func(number uint64) []byte { return appendKey(p.id[:idSeed:idSeed], number) })
	if plan == PlanOpen {
		return false
	}
	msgID := r.Get("msgId")
	if offset, ok := wire.ParseMessageID(msgID); ok { // otherwise the broker checks back
		p.sendEnd(r, storedTable, flagOf(plan), offset, msgID)
	}
	return plan == PlanRollback
}

// The fields with the offset in the table of half messages: in the answer to a half message, and in a check-back.
const (
	storedTable  = "queueOffset"
	checkedTable = "tranStateTableOffset"
)

// sendEnd answers r, which is about a half message, with the end of its transaction. It never waits, because it runs in
// the connection's reader, which flushes when there is nothing more to read. If the answer is lost, the broker
// checks back.
func (p *producer) sendEnd(r *reply, table string, flag int, commitLog int64, msgID []byte) {
	_ = r.from.tell(wire.ReqEndTransaction, wire.FlagOneWay, func(b []byte) []byte { // EndTransactionRequestHeader
		b = wire.AppendInt(b, "commitLogOffset", commitLog)
		b = wire.AppendInt(b, "commitOrRollback", int64(flag))
		b = wire.AppendField(b, "fromTransactionCheck", strconv.FormatBool(table == checkedTable))
		b = appendGiven(b, "msgId", msgID)
		b = wire.AppendField(b, "producerGroup", p.group)
		b = appendGiven(b, "tranStateTableOffset", r.Get(table))
		return appendGiven(b, "transactionId", r.Get("transactionId"))
	}, nil, call{})
}

// checkTransaction answers a check-back of a broker. The message may be of a producer that has gone.
func (c *client) checkTransaction(r *reply) {
	var m wire.Message
	if _, err := m.Cut(r.Body); err != nil {
		return // the broker will check back again
	}
	plan, id := wire.Property(m.Properties, PropPlan), wire.Property(m.Properties, wire.PropUniqueKey)
	commitLog, ok := r.Number("commitLogOffset")
	producers, _ := c.members()
	if len(plan) == 0 || !ok || len(producers) == 0 || producers[0].tx == nil {
		return // the message is not ours
	}
	producers[0].tx.Checked(plan[0], id)
	producers[0].sendEnd(r, checkedTable, flagOf(plan[0]), commitLog, id)
}

func flagOf(plan byte) int {
	if plan == PlanRollback {
		return wire.SysRollback
	}
	return wire.SysCommit
}
