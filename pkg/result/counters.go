package result

// Counter is a count of messages, waits or transactions since the start of a run, warm-up included, or its growth over
// an interval.
//
// A message handed to the driver ends in exactly one of Completed, Rejected, Released, Modified, Failed and
// Unconfirmed, so that at the end of a run Sent is their sum.
type Counter int

// The counters.
const (
	Sent        Counter = iota // handed to the driver
	Blocked                    // waits of a producer for the broker: max-pending messages in flight, or no credit to send
	NoLeave                    // part of Blocked: waits for the broker's credit
	SocketWaits                // waits of a producer because the network took no more; not in Blocked
	Completed                  // accepted by the broker
	Rejected                   // refused by the broker
	Released                   // given back by the broker, undamaged and undelivered
	Modified                   // given back by the broker with changes: it may have tried to deliver them (AMQP modified)
	Failed                     // ended with an error
	Unsent                     // part of Failed: the driver could not send it, so that it never left
	Unconfirmed                // in flight when the connection or the run ended; the broker may or may not have them
	Resent                     // how often a message was sent again because it was in doubt; not in Sent
	Received                   // delivered to a consumer, without foreign messages
	Redelivered                // part of Received, marked by the broker as delivered before
	Unstamped                  // part of Received without a usable time property: not in the transfer times
	Foreign                    // delivered, but from another run or tool, if this run knows its own messages
	Delayed                    // part of Received with a requested delay of the delivery
	// Early is the part of Delayed that was received a millisecond or more before the delay was over: not in Lateness.
	Early
	ConsumerReleased      // given back by a consumer on purpose, so that they come again: not received
	ConsumerRejected      // part of Received, rejected by a consumer on purpose
	NegativeTransfers     // part of Received with a transfer time below zero, in no distribution: clocks differ
	NegativeAges          // born- or stored-to-consumer times below zero, in no distribution: clocks differ
	OutOfRange            // latencies above [MaxLatency], recorded as that
	LateSends             // sends that left late although neither broker nor max-pending held them up
	Strays                // answers to no message in flight: they came too late, or twice
	Paused                // ends of messages, and receipts, with a latency that includes a pause of the tester itself
	CompletedBytes        // payload of Completed: bytes of the bodies
	ReceivedBytes         // payload of Received
	Commits               // transactions that the broker confirmed, of producers and consumers
	CommitsFailed         // transactions that the broker was asked to commit and did not confirm
	NumCounters       int = iota
)
