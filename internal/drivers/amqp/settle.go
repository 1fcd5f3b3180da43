package amqp

import (
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// recordVerdict records the verdict on a message for its settlement. The lock is held.
func (k *consumer) recordVerdict(id uint32, settled bool, v driver.Verdict) {
	switch {
	case settled:
		k.unsettled--
	case v != driver.Accept:
		state := wire.State{Kind: wire.DescReleased}
		if v == driver.Reject {
			state.Kind = wire.DescRejected
		}
		d := wire.Disposition{Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil)}
		k.others = d.AppendFrame(k.others, k.session.channel)
		k.unsettled--
	case id == k.acceptedFrom+k.accepted:
		k.accepted++
	default:
		k.others = k.appendAccepted(k.others)
		k.acceptedFrom, k.accepted = id, 1
	}
}

// appendAccepted settles the range of accepted messages, if it is not empty. The lock is held.
func (k *consumer) appendAccepted(b []byte) []byte {
	if n := k.accepted; n > 0 {
		b = wire.AppendAccepted(b, k.session.channel, k.acceptedFrom, k.acceptedFrom+n-1, true)
		k.unsettled -= n
		k.accepted = 0
	}
	return b
}

// settleAll settles the delivered messages, and gives new credit. It does not wait. The frames leave with the next
// flush, which the reader makes before it waits.
func (k *consumer) settleAll() {
	k.settling.Lock()
	defer k.settling.Unlock()
	flow := k.session.flowState()
	k.mu.Lock()
	b := append(k.frames[:0], k.others...)
	k.others, k.since = k.others[:0], 0
	b = k.appendCredit(k.appendAccepted(b), &flow)
	k.frames = b
	k.mu.Unlock()
	if len(b) > 0 {
		_ = k.lease.Conn.Gather(k.copyFrames) // an error means that the connection has ended, which Run also reports
	}
}

func (k *consumer) copyFrames(b []byte) []byte { return append(b, k.frames...) }

// appendCredit gives credit once half of it is used up: it raises the link's credit to the consumer's credit minus the
// unsettled messages. The lock is held.
func (k *consumer) appendCredit(b []byte, f *wire.Flow) []byte {
	if k.state != stateRunning {
		return b
	}
	left := k.creditLeft()
	want := k.credit - min(k.unsettled, k.credit)
	if want <= left || left > k.credit/2 || k.rounds && left > 0 {
		return b
	}
	k.limit = k.deliveryCount + want
	if int32(k.limit-k.granted) > 0 { //nolint:gosec // serial numbers
		k.granted = k.limit
	}
	f.Handle, f.DeliveryCount, f.LinkCredit = wire.Some(k.link.handle), wire.Some(k.deliveryCount), wire.Some(want)
	return f.AppendFrame(b, k.session.channel)
}

// withdraw withdraws the credit: the consumer wants no more messages.
func (k *consumer) withdraw() {
	s := k.session
	k.mu.Lock()
	k.limit = k.deliveryCount
	k.mu.Unlock()
	_ = k.lease.Conn.Gather(func(b []byte) []byte { return s.appendFlow(b, &k.link, false) })
}
