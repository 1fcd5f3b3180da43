package mem

import "sync/atomic"

// Stats are the broker's true counts since it was made. They are exact when nothing is being sent or received; under
// load, related counts can differ by the messages in flight.
type Stats struct {
	Arrived    uint64 // sends that returned nil
	Persistent uint64 // part of Arrived with persistence requested
	Stored     uint64 // part of Arrived for which the broker took responsibility, including lost and withheld messages

	// How sends ended; the sum is Arrived once all producers are closed.
	Accepted, Rejected, Released, Modified, Failed, Unknown uint64

	Withheld   uint64 // part of Stored, never acknowledged
	Lost       uint64 // part of Stored, dropped by a fault
	Unrouted   uint64 // part of Stored, sent to a topic without a subscriber
	Duplicated uint64 // extra copies by a fault, counted once per message
	Reordered  uint64 // messages overtaken by the next one
	Damaged    uint64 // part of Stored, with a flipped bit in the body
	DamagedIDs uint64 // part of Stored, with a flipped bit in the number
	RolledBack uint64 // part of Accepted, never stored, as the producer was told

	Delivered    uint64 // calls of deliver
	Redelivered  uint64 // part of Delivered, marked as redelivered
	Acknowledged uint64 // part of Delivered, settled
	Refused      uint64 // part of Delivered, rejected by consumers: dropped
	Returned     uint64 // messages returned from consumers to their queue
	Expired      uint64 // messages dropped because of their time to live
	Purged       uint64 // messages dropped by [driver.Admin]

	Commits        uint64 // confirmed transactions of producers and consumers
	CommitsRefused uint64 // transactions rolled back, by a fault or because a queue was full

	// Present values:
	Backlog       uint64 // messages in queues and subscriptions
	Subscriptions int    // of topics
	Producers     int
	Consumers     int
	Connections   int
}

type counter int

const (
	arrived counter = iota
	persistent
	stored
	accepted // the states in the order of driver.State
	rejected
	released
	modified
	failed
	unknown
	withheld
	lost
	unrouted
	duplicated
	reordered
	damaged
	damagedIDs
	rolledBack
	delivered
	redelivered
	acknowledged
	refused
	returned
	expired
	committed
	commitRefused
	numCounters
)

// tally has the counts of one producer or consumer; it shares no cache line with others.
type tally struct {
	n [numCounters]atomic.Uint64
	_ [64]byte
}

func (t *tally) add(c counter) { t.n[c].Add(1) }

// Stats returns the counts up to now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.past
	for t := range b.tallies {
		for i := range sum {
			sum[i] += t.n[i].Load()
		}
	}
	s := Stats{
		Arrived: sum[arrived], Persistent: sum[persistent], Stored: sum[stored],
		Accepted: sum[accepted], Rejected: sum[rejected], Released: sum[released], Modified: sum[modified],
		Failed:  sum[failed],
		Unknown: sum[unknown], Withheld: sum[withheld], Lost: sum[lost], Unrouted: sum[unrouted],
		Duplicated: sum[duplicated], Reordered: sum[reordered],
		Damaged: sum[damaged], DamagedIDs: sum[damagedIDs], RolledBack: sum[rolledBack], Delivered: sum[delivered],
		Redelivered: sum[redelivered], Acknowledged: sum[acknowledged], Refused: sum[refused],
		Returned: sum[returned], Expired: sum[expired], Purged: b.purged, Commits: sum[committed],
		CommitsRefused: sum[commitRefused],
		Producers:      b.producers, Consumers: b.consumers, Connections: len(b.conns),
	}
	for _, d := range b.destinations {
		d.mu.Lock()
		for _, q := range d.queues {
			s.Backlog += uint64(q.items.len())
			if !q.permanent {
				s.Subscriptions++
			}
		}
		if d.held != nil {
			s.Backlog++
		}
		d.mu.Unlock()
	}
	return s
}

// retire adds the counts of t to the past ones after its owner has closed. b.mu is held.
func (b *Broker) retire(t *tally) {
	delete(b.tallies, t)
	for i := range b.past {
		b.past[i] += t.n[i].Load()
	}
}
