package result

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"sync"
)

// Counter is a count of messages, waits or transactions since the start of a run, warm-up included, or its growth over
// an interval.
//
// A message handed to the driver ends in exactly one of Completed, Rejected, Released, Modified, Failed and
// Unconfirmed, so that at the end of a run Sent is their sum.
type Counter int

// The counters, in the order in which outputs list them.
const (
	Sent                Counter = iota // handed to the driver
	Blocked                            // waits for the broker: max-pending messages in flight, or no credit to send
	NoLeave                            // part of Blocked: waits for the broker's credit
	SocketWaits                        // waits of a producer because the network took no more; not in Blocked
	Completed                          // accepted by the broker
	CompletedBytes                     // payload of Completed: bytes of the bodies
	Rejected                           // refused by the broker
	Released                           // given back by the broker, undamaged and undelivered
	Modified                           // given back by the broker with changes (AMQP modified), perhaps after an attempt
	Failed                             // ended with an error
	Unconfirmed                        // in flight when the connection or the run ended: the broker may have them
	Resent                             // how often a message in doubt was sent again; not in Sent
	LateSends                          // sends that left late although neither broker nor max-pending held them up
	Strays                             // answers to no message in flight: they came too late, or twice
	Received                           // delivered to a consumer, without foreign messages
	ReceivedBytes                      // payload of Received
	Redelivered                        // part of Received, marked by the broker as delivered before
	Foreign                            // delivered, but from another run or tool
	Unstamped                          // part of Received without a usable time property: not in the transfer times
	NegativeTransfers                  // part of Received with a transfer time below zero, in no distribution
	OutOfRange                         // latencies above [MaxLatency], recorded as that
	NegativeAges                       // born- or stored-to-consumer times below zero, in no distribution
	Unsent                             // part of Failed: the driver could not send it, so that it never left
	Paused                             // ends of messages, and receipts, whose latency includes a pause of perfmq
	Commits                            // transactions that the broker confirmed, of producers and consumers
	CommitsFailed                      // transactions that the broker was asked to commit and did not confirm
	Delayed                            // part of Received with a requested delay of the delivery
	Early                              // part of Delayed, received a millisecond or more before the delay was over
	ConsumerReleased                   // given back by a consumer on purpose, so that they come again: not received
	ConsumerRejected                   // part of Received, rejected by a consumer on purpose
	Opened                             // connections of a group of connections that became usable
	OpenRefused                        // connections that the broker, or the network, refused
	OpenTimedOut                       // connections that did not become usable in time
	OpenUnmade                         // connections for which perfmq's machine had no port, file or memory
	OpenAbandoned                      // connections that were due, and were cut short by the end of the load
	ConnectionsClosed                  // part of Opened: closed by plan
	ConnectionsLost                    // part of Opened: ended by the broker or the network
	Replies                            // to requests, in time
	TimedOut                           // requests without a reply in time
	LateReplies                        // to requests that had timed out
	DuplicateReplies                   // to requests that had a reply
	ForeignReplies                     // to requests of others
	UncorrelatedReplies                // without a correlation ID of a request
	Answered                           // part of Received: requests with a reply that the broker has
	UnansweredRequests                 // part of Received: requests with a reply that the broker may not have
	Unanswerable                       // part of Received: messages without an address for the reply
	NumCounters         int     = iota
)

// Role is a set: which workers record a counter or a latency, and what else their run must have.
type Role uint16

// The roles.
const (
	ProducerRole Role = 1 << iota
	ConsumerRole
	Rated      // the load has a target rate
	Transacted // messages are sent or received in transactions
	Delaying   // messages with a delayed delivery come
	OpenerRole // connections are opened as a load
	Requesting // messages are requests, which have replies
	Responding // messages received are answered

	AnyRole Role = 0
)

// If returns the role, or none.
func (r Role) If(yes bool) Role {
	if yes {
		return r
	}
	return AnyRole
}

// extraRole returns what a run must have for a counter beside its workers, by the tag "role" of its field.
func extraRole(tag string) Role {
	return map[string]Role{
		"transacted": Transacted, "delaying": Delaying, "requesting": Requesting, "responding": Responding,
	}[tag]
}

// CounterInfo is what outputs say of a counter: the tags of its field in [Counts].
type CounterInfo struct {
	Counter Counter
	Role    Role
	// Key is the key in the JSON of `artemis perf` for counters that only perfmq has; empty if it is written apart.
	Key string
	// Name is that of the metric for thresholds, sweeps and comparisons; empty for none. WithWarmup: it is of the whole
	// run, not of the messages due after the warm-up.
	Name       string
	WithWarmup bool
	// Metric is the name for Prometheus without "perfmq_"; empty if there is none of its own.
	Metric string
	Help   string
}

// CounterTable returns the counters in their order, except counters that outputs write apart. A new counter is a field
// of [Counts] with its tags, a constant, its place, and where it is counted.
func CounterTable() []CounterInfo { return counters() }

//nolint:gochecknoglobals // a table that never changes
var counters = sync.OnceValue(func() (list []CounterInfo) {
	c := &Counts{Producers: &Producers{}, Consumers: &Consumers{}, Connections: &Connections{}}
	infos := map[*uint64]CounterInfo{}
	for _, part := range []struct {
		of   any
		role Role
	}{{c.Producers, ProducerRole}, {c.Consumers, ConsumerRole}, {c.Connections, OpenerRole}, {c, AnyRole}} {
		v := reflect.ValueOf(part.of).Elem()
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			if n, is := v.Field(i).Addr().Interface().(*uint64); is && tag.Get("help") != "" {
				infos[n] = CounterInfo{
					Role: part.role | extraRole(tag.Get("role")), Key: tag.Get("key"), Name: tag.Get("name"),
					WithWarmup: tag.Get("warmup") != "", Metric: tag.Get("metric"), Help: tag.Get("help"),
				}
			}
		}
	}
	for i, n := range c.places() {
		if info, is := infos[n]; is {
			info.Counter = Counter(i)
			list = append(list, info)
		}
	}
	return list
})

// places returns the place of each counter in counts; counters of an absent role lead nowhere.
func (c *Counts) places() [NumCounters]*uint64 {
	p, k := cmp.Or(c.Producers, &Producers{}), cmp.Or(c.Consumers, &Consumers{})
	o := cmp.Or(c.Connections, &Connections{})
	return [...]*uint64{
		Sent: &p.Sent, Blocked: &p.Blocked, NoLeave: &p.NoLeave, SocketWaits: &p.SocketWaits, Completed: &p.Completed,
		CompletedBytes: &p.CompletedBytes, Rejected: &p.Rejected, Released: &p.Released, Modified: &p.Modified,
		Failed: &p.Failed, Unconfirmed: &p.Unconfirmed, Resent: &p.Resent, LateSends: &p.Late, Strays: &p.Strays,
		Unsent: &p.Unsent, Received: &k.Received, ReceivedBytes: &k.ReceivedBytes, Redelivered: &k.Redelivered,
		Foreign: &k.Foreign, Unstamped: &k.Unstamped, NegativeTransfers: &k.NegativeTransfers,
		NegativeAges: &k.NegativeAges, Delayed: &k.Delayed, Early: &k.Early, ConsumerReleased: &k.Released,
		ConsumerRejected: &k.Rejected, OutOfRange: &c.OutOfRange, Paused: &c.Paused, Commits: &c.Commits,
		CommitsFailed: &c.CommitsFailed, Opened: &o.Opened, OpenRefused: &o.Refused, OpenTimedOut: &o.TimedOut,
		OpenUnmade: &o.Unmade, OpenAbandoned: &o.Abandoned, ConnectionsClosed: &o.Closed, ConnectionsLost: &o.Lost,
		Replies: &p.Replies, TimedOut: &p.TimedOut, LateReplies: &p.LateReplies, DuplicateReplies: &p.DuplicateReplies,
		ForeignReplies: &p.ForeignReplies, UncorrelatedReplies: &p.UncorrelatedReplies, Answered: &k.Answered,
		UnansweredRequests: &k.Unanswered, Unanswerable: &k.Unanswerable,
	}
}

// NewCounts returns the counts of the roles; list has them by their [Counter]. Counts of connections are there if one
// of them is not zero.
func NewCounts(list []uint64, sends, receives bool, failures map[string]map[string]uint64) (c Counts) {
	if sends {
		c.Producers = &Producers{Failures: failures}
	}
	if receives {
		c.Consumers = &Consumers{}
	}
	if slices.ContainsFunc(list[Opened:ConnectionsLost+1], func(n uint64) bool { return n > 0 }) {
		c.Connections = &Connections{}
	}
	for i, n := range c.places() {
		*n = list[i]
	}
	return c
}

// Get returns one of the counts; 0 if its role is absent.
func (c *Counts) Get(counter Counter) uint64 { return *c.places()[counter] }

// Values returns the counts by their [Counter]. The counts of an absent role are zero.
func (c *Counts) Values() (list [NumCounters]uint64) {
	for i, n := range c.places() {
		list[i] = *n
	}
	return list
}

// Add adds other.
func (c *Counts) Add(other *Counts) {
	if other.Producers != nil {
		if c.Producers == nil {
			c.Producers = &Producers{}
		}
		c.Producers.addFailures(other.Producers.Failures)
	}
	if other.Consumers != nil && c.Consumers == nil {
		c.Consumers = &Consumers{}
	}
	if o := other.Connections; o != nil {
		c.Connections = cmp.Or(c.Connections, &Connections{})
		c.Connections.Failures = addCounts(c.Connections.Failures, o.Failures)
	}
	to, from := c.places(), other.places()
	sum(to[:], from[:])
}

// Ended returns the number of messages that have ended, with any outcome, of counts by their [Counter].
func Ended(n []uint64) uint64 {
	return n[Completed] + n[Rejected] + n[Released] + n[Modified] + n[Failed] + n[Unconfirmed]
}

// InFlight returns the messages that were sent and have not ended.
func (c *Counts) InFlight() uint64 {
	n := c.Values()
	return n[Sent] - Ended(n[:])
}

// OfClass returns the failures of a class, of all states, and of connections.
func (c *Counts) OfClass(class string) (n uint64) {
	if c.Producers != nil {
		for _, classes := range c.Producers.Failures {
			n += classes[class]
		}
	}
	if c.Connections != nil {
		n += c.Connections.Failures[class]
	}
	return n
}

func (p *Producers) addFailures(failures map[string]map[string]uint64) {
	for state, classes := range failures {
		if p.Failures == nil {
			p.Failures = map[string]map[string]uint64{}
		}
		p.Failures[state] = addCounts(p.Failures[state], classes)
	}
}

// LeftOut returns the number of values that a latency lacks, because they are below zero.
func (r *Result) LeftOut(k *KindInfo) uint64 {
	if k.LeftOut == 0 {
		return 0
	}
	n := cmp.Or(r.Measured, &r.Total).Values()[k.LeftOut]
	if k.LeftOut == NegativeAges { // of both kinds, and each message has a value of each
		values := func(kind Kind) int64 { return cmp.Or(r.Latencies[kind], &Latency{}).Count }
		n = uint64(max(0, int64(n)+values(B2C)+values(S2C)-2*values(k.Kind)) / 2) //nolint:gosec // a count
	}
	return n
}

// Add adds o.
func (v *Verified) Add(o *Verified) { sum(fieldsOf(v), fieldsOf(o)) }

// Verified returns the findings so far in the form of those of the end.
func (p *Progress) Verified() Verified {
	return Verified{
		Received: p.Received, Duplicates: p.Duplicates, Redelivered: p.Redelivered, AfterOutage: p.AfterOutage,
		Resent: p.Resent, Disordered: p.Disordered, Damaged: p.Damaged, Foreign: p.Foreign,
		Expected: p.Expected, Lost: p.Lost, ArrivedLate: p.ArrivedLate,
	}
}

// Add adds o.
func (p *Progress) Add(o *Progress) { sum(fieldsOf(p), fieldsOf(o)) }

// fieldsOf returns the fields of a struct that has counts alone.
func fieldsOf(counts any) (list []*uint64) {
	for v, i := reflect.ValueOf(counts).Elem(), 0; i < v.NumField(); i++ {
		list = append(list, v.Field(i).Addr().Interface().(*uint64))
	}
	return list
}

// addCounts adds counts by name.
func addCounts(to, from map[string]uint64) map[string]uint64 {
	for name, n := range from {
		if to == nil {
			to = map[string]uint64{}
		}
		total := to[name]
		addTo(&total, n)
		to[name] = total
	}
	return to
}

// sum adds numbers by index.
func sum[T int64 | uint64](to, from []*T) {
	for i := range to {
		addTo(to[i], *from[i])
	}
}

// addTo adds a number that is not negative. No run comes near the largest sum: files that say so are forged.
func addTo[T int64 | uint64](to *T, n T) { *to = T(min(uint64(*to)+uint64(n), math.MaxInt64)) }
