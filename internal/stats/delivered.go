package stats

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// delivered counts the messages received by subscription, to bound the number of different ones: each subscription of a
// topic gets the same messages. It also finds the subscriptions for which messages wait at the broker.
type delivered struct {
	subscriptionOf []int // subscription by consumer
	destOf         []int // destination by subscription
	producesTo     []int // destination by producer
	got            []uint64
	max            []uint64   // by destination
	stored         []uint64   // the same: messages that the broker has accepted
	prompt         []bool     // the same: each of them is delivered at once
	waits          []struct { // whether messages wait at the broker for a subscription
		known bool
		got   uint64 // as of the last look
		// open is the least number of messages accepted and not received since the last receipt: there may be some that
		// will never come.
		open int64
		owed bool
	}
}

// setWorkers names the workers.
func (d *delivered) setWorkers(producers, consumers []Worker) {
	subscriptions, destinations := map[[3]string]int{}, map[[2]string]int{}
	*d = delivered{subscriptionOf: make([]int, len(consumers)), producesTo: make([]int, len(producers))}
	destination := func(w *Worker) int {
		key := [2]string{w.Site, w.Destination}
		index, ok := destinations[key]
		if !ok {
			index = len(d.prompt)
			destinations[key] = index
			d.prompt = append(d.prompt, true)
		}
		d.prompt[index] = d.prompt[index] && w.Prompt
		return index
	}
	for i := range consumers {
		w := &consumers[i]
		to := destination(w)
		key := [3]string{w.Site, w.Destination, w.Subscription}
		index, ok := subscriptions[key]
		if !ok {
			index = len(d.destOf)
			subscriptions[key] = index
			d.destOf = append(d.destOf, to)
		}
		d.subscriptionOf[i] = index
	}
	for i := range producers {
		d.producesTo[i] = destination(&producers[i])
	}
	d.got, d.waits = make([]uint64, len(d.destOf)), slices.Grow(d.waits, len(d.destOf))[:len(d.destOf)]
	d.max, d.stored = make([]uint64, len(d.prompt)), make([]uint64, len(d.prompt))
}

// add adds the messages that a consumer has received so far.
func (d *delivered) add(consumer int, n uint64) { d.got[d.subscriptionOf[consumer]] += n }

// addStored adds the messages of a producer that the broker has accepted so far.
func (d *delivered) addStored(producer int, n uint64) { d.stored[d.producesTo[producer]] += n }

// owes reports whether messages have waited at the broker for a consumer since the last look.
func (d *delivered) owes(consumer int) bool { return d.waits[d.subscriptionOf[consumer]].owed }

// least returns a lower bound of the number of different messages received. It ends a look, and resets all sums.
func (d *delivered) least() (n uint64) {
	for i, got := range d.got {
		d.max[d.destOf[i]] = max(d.max[d.destOf[i]], got)
		d.got[i] = 0
		w, open := &d.waits[i], int64(d.stored[d.destOf[i]]-got) //nolint:gosec // wraps around to a negative number
		if !w.known || got != w.got || open < w.open {
			w.known, w.got, w.open = true, got, open
		}
		w.owed = d.prompt[d.destOf[i]] && open > w.open
	}
	for i := range d.max {
		n += d.max[i]
		d.max[i], d.stored[i] = 0, 0
	}
	return n
}

// sent returns the number of messages that are known to have left: the messages that the driver has taken, and a
// message that it is taking if that has ended or been received. At least as many were sent as different messages were
// received.
func (c *Collector) sent(delivered uint64, last bool) uint64 {
	var known, begun uint64
	for i := range c.sends {
		known += c.sends[i].known(last)
		begun += c.sends[i].begun
	}
	if known < delivered && delivered <= begun {
		known = delivered
	}
	return max(known, c.total[result.Sent])
}
