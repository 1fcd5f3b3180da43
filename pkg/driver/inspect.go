package driver

import "context"

// Inspector is implemented by a [Driver] that can ask the broker for its own counters of destinations.
type Inspector interface {
	// Inspect returns the broker's counters of each destination, in the order of destinations. It uses a connection of its
	// own, which [Driver.Close] closes, and may be called while messages are sent and received, by one goroutine at a
	// time. An error of [ClassUnsupported] or [ClassAuth] means that this broker, or this user, never gets the counters:
	// the caller need not try again.
	Inspect(ctx context.Context, destinations []Destination) ([]DestinationCount, error)
}

// DestinationCount are a broker's own counters of a destination. If the destination does not exist at the broker, all
// are known to be zero.
type DestinationCount struct {
	// Depth is the number of messages at the destination, including messages sent to consumers and not settled; of a
	// topic, at all subscriptions together.
	Depth Count
	// Added counts the messages that the destination got since the broker started to count, Acknowledged the messages
	// that a queue's consumers have settled for good. A counter that has decreased was reset.
	Added, Acknowledged Count
	// Consumers is the number of consumers.
	Consumers Count
}

// Count is a number that may not be known.
type Count struct {
	N     uint64
	Known bool
}

// Counted returns a known count.
func Counted(n uint64) Count { return Count{N: n, Known: true} }

// NoDestination returns the counters of a destination that the broker does not have.
func NoDestination() DestinationCount {
	none := Counted(0)
	return DestinationCount{Depth: none, Added: none, Acknowledged: none, Consumers: none}
}

// Plus returns the sum; it is known if both are known.
func (c Count) Plus(d Count) Count { return Count{N: c.N + d.N, Known: c.Known && d.Known} }
