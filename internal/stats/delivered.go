package stats

// delivered counts the messages received by subscription, to bound the number of different ones: each subscription of a
// topic gets the same messages.
type delivered struct {
	of  []int // subscription by consumer
	to  []int // destination by subscription
	got []uint64
	max []uint64 // by destination
}

// watch names the consumers.
func (d *delivered) watch(consumers []Worker) {
	subscriptions, destinations := map[[2]string]int{}, map[string]int{}
	*d = delivered{of: make([]int, len(consumers))}
	for i, w := range consumers {
		key := [2]string{w.Destination, w.Subscription}
		at, ok := subscriptions[key]
		if !ok {
			at = len(d.to)
			subscriptions[key] = at
			if _, ok := destinations[w.Destination]; !ok {
				destinations[w.Destination] = len(destinations)
			}
			d.to = append(d.to, destinations[w.Destination])
		}
		d.of[i] = at
	}
	d.got, d.max = make([]uint64, len(d.to)), make([]uint64, len(destinations))
}

// add adds the messages that a consumer has received so far.
func (d *delivered) add(consumer int, n uint64) { d.got[d.of[consumer]] += n }

// least returns a lower bound of the number of different messages received, and resets it.
func (d *delivered) least() (n uint64) {
	for i, got := range d.got {
		d.max[d.to[i]] = max(d.max[d.to[i]], got)
		d.got[i] = 0
	}
	for i := range d.max {
		n += d.max[i]
		d.max[i] = 0
	}
	return n
}

// sent returns how many messages are known to have left: the messages that the driver has taken, and also a message
// that it is still taking if that has ended or been received already. At least as many were sent as different messages
// were received.
func (c *Collector) sent(delivered uint64, last bool) uint64 {
	var known, begun uint64
	for i := range c.sends {
		known += c.sends[i].known(last)
		begun += c.sends[i].begun
	}
	if known < delivered && delivered <= begun {
		known = delivered
	}
	return max(known, c.total.Sent)
}
