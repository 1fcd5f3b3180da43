package stats

import (
	"math"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Counters are totals since the start of a run, warm-up included, or their growth over an interval.
//
// A message handed to the driver ends in exactly one of Completed, Rejected, Released, Modified, Failed and
// Unconfirmed, so that at the end of a run Sent is their sum.
type Counters struct {
	Sent        uint64 // handed to the driver
	Blocked     uint64 // waits of a producer for the broker: max-pending messages in flight, or no credit to send
	NoLeave     uint64 // part of Blocked: waits for the broker's credit
	SocketWaits uint64 // waits of a producer because the network took no more; not in Blocked
	Completed   uint64 // accepted by the broker
	Rejected    uint64 // refused by the broker
	Released    uint64 // given back by the broker, undamaged and undelivered
	Modified    uint64 // given back by the broker with changes: it may have tried to deliver them (AMQP modified)
	Failed      uint64 // ended with an error
	Unsent      uint64 // part of Failed: the driver could not send it, so that it never left
	Unconfirmed uint64 // in flight when the connection or the run ended; the broker may or may not have them

	Resent uint64 // how often a message was sent again because it was in doubt; not in Sent

	Received    uint64 // delivered to a consumer, without foreign messages
	Redelivered uint64 // part of Received, marked by the broker as delivered before
	Unstamped   uint64 // part of Received without a usable time property: not in the transfer times
	Foreign     uint64 // delivered, but from another run or tool, if this run knows its own messages

	Delayed uint64 // part of Received with a requested delay of the delivery
	Early   uint64 // part of Delayed, received a millisecond or more before the delay was over: not in Lateness

	ConsumerReleased uint64 // given back by a consumer on purpose, so that they come again: not received
	ConsumerRejected uint64 // part of Received, rejected by a consumer on purpose

	NegativeTransfers uint64 // part of Received with a transfer time below zero, in no distribution: clocks differ
	NegativeAges      uint64 // born- or stored-to-consumer times below zero, in no distribution: clocks differ
	OutOfRange        uint64 // latencies above MaxLatency, recorded as MaxLatency
	LateSends         uint64 // sends that left late although neither broker nor max-pending held them up
	Strays            uint64 // answers to no message in flight: they came too late, or twice
	Paused            uint64 // ends of messages, and receipts, with a latency that includes a pause of the tester itself

	CompletedBytes uint64 // payload of Completed: bytes of the bodies
	ReceivedBytes  uint64 // payload of Received

	Commits       uint64 // transactions that the broker confirmed, of producers and consumers
	CommitsFailed uint64 // transactions that the broker was asked to commit and did not confirm

	// Failures counts Rejected, Released, Failed and Unconfirmed by class.
	Failures [driver.NumClasses]uint64
	// FailuresOf counts the same by state and class: FailuresOf[driver.Rejected] is Rejected by class, and so on with
	// driver.Released, driver.Failed and driver.Unknown (Unconfirmed). FailuresOf[driver.Accepted] stays zero.
	FailuresOf [driver.NumStates][driver.NumClasses]uint64
}

// Sub returns c - older, field by field.
func (c Counters) Sub(older Counters) Counters { return c.plus(&older, true) }

// Add returns c + other, field by field.
func (c Counters) Add(other Counters) Counters { return c.plus(&other, false) }

// plus adds or subtracts each counter.
func (c Counters) plus(o *Counters, negative bool) Counters {
	sign := uint64(1)
	if negative {
		sign = math.MaxUint64 // -1
	}
	for _, n := range [...]struct {
		to *uint64
		n  uint64
	}{
		{&c.Sent, o.Sent},
		{&c.Blocked, o.Blocked},
		{&c.NoLeave, o.NoLeave},
		{&c.SocketWaits, o.SocketWaits},
		{&c.Completed, o.Completed},
		{&c.Rejected, o.Rejected},
		{&c.Released, o.Released},
		{&c.Modified, o.Modified},
		{&c.Failed, o.Failed},
		{&c.Unsent, o.Unsent},
		{&c.Unconfirmed, o.Unconfirmed},
		{&c.Resent, o.Resent},
		{&c.Received, o.Received},
		{&c.Redelivered, o.Redelivered},
		{&c.Unstamped, o.Unstamped},
		{&c.Foreign, o.Foreign},
		{&c.Delayed, o.Delayed},
		{&c.Early, o.Early},
		{&c.ConsumerReleased, o.ConsumerReleased},
		{&c.ConsumerRejected, o.ConsumerRejected},
		{&c.NegativeTransfers, o.NegativeTransfers},
		{&c.NegativeAges, o.NegativeAges},
		{&c.OutOfRange, o.OutOfRange},
		{&c.LateSends, o.LateSends},
		{&c.Strays, o.Strays},
		{&c.Paused, o.Paused},
		{&c.CompletedBytes, o.CompletedBytes},
		{&c.ReceivedBytes, o.ReceivedBytes},
		{&c.Commits, o.Commits},
		{&c.CommitsFailed, o.CommitsFailed},
	} {
		*n.to += sign * n.n
	}
	for i := range c.Failures {
		c.Failures[i] += sign * o.Failures[i]
	}
	for state := range c.FailuresOf {
		for i := range c.FailuresOf[state] {
			c.FailuresOf[state][i] += sign * o.FailuresOf[state][i]
		}
	}
	return c
}

// LeftOut returns how many values a latency lacks, by its name in thresholds, because they are below zero.
func (c *Counters) LeftOut(latency string) uint64 {
	switch latency {
	case "transfer":
		return c.NegativeTransfers
	case "lateness":
		return c.Early
	default:
		return 0
	}
}

// InFlight returns the messages that were handed to the driver and have not ended yet.
func (c Counters) InFlight() uint64 { return c.Sent - c.ended() }

// ended returns the number of messages that have ended, with any outcome.
func (c Counters) ended() uint64 {
	return c.Completed + c.Rejected + c.Released + c.Modified + c.Failed + c.Unconfirmed
}
