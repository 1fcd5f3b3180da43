package stats

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// ConsumerRecorder counts and times the messages of one consumer. The phase argument of its methods is the phase to
// which the message belongs: Warmup or Measure.
type ConsumerRecorder struct {
	// Written only by the receiving goroutine; atomic because the collector reads them.
	// nanoseconds spent on simulated work, and held back by a rate; a span in progress not included
	worked, paced atomic.Int64
	working       atomic.Int64 // start of the work in progress, nanoseconds from the start of the run plus 1; 0 if none

	ledgers
	// transacted: messages are sent in transactions, so that a message may have been sent long before the broker got it.
	transacted bool
	responds   bool             // messages are answered; never changes
	from       []result.Arrival // by shard, since the last collection; nil without shards
	received   bool             // a message came since Begin
	first      time.Duration    // the time of the first message since Begin, from the start of the run
	last       time.Duration
}

// SetTransacted records that the messages are sent in transactions. Call it before the first message.
func (r *ConsumerRecorder) SetTransacted() { r.transacted = true }

// SetResponds records that messages are answered. Call it before the first one.
func (r *ConsumerRecorder) SetResponds() { r.responds = true }

// Begin resets the first and the last message at the start of a step.
func (r *ConsumerRecorder) Begin() {
	r.mu.Lock()
	r.received = false
	r.mu.Unlock()
}

// FirstAndLast returns when the first and the last message since Begin were delivered, from the start of the run; false
// if there was none.
func (r *ConsumerRecorder) FirstAndLast() (first, last time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.last, r.received
}

// NewConsumerRecorder returns an empty recorder.
func NewConsumerRecorder() *ConsumerRecorder { return new(ConsumerRecorder) }

// Work records that the consumer begins to work on a message; now is the time since the start of the run.
func (r *ConsumerRecorder) Work(now time.Duration) { r.working.Store(int64(now) + 1) }

// Worked records that work on a message is over. paced is the part of it that only served to keep a rate.
func (r *ConsumerRecorder) Worked(now, paced time.Duration) {
	took := max(0, int64(now)+1-r.working.Load())
	held := min(max(0, int64(paced)), took)
	r.paced.Add(held)
	r.worked.Add(took - held)
	r.working.Store(0)
	r.Ready(now)
}

// Ready records that the consumer can receive from now on, after it was opened or has worked on a message; now is the
// time since the start of the run.
func (r *ConsumerRecorder) Ready(now time.Duration) {
	r.mu.Lock()
	r.quiet.recordReady(now)
	r.mu.Unlock()
}

// takeGaps returns the gaps since the last call, and the one in progress. With owed, a message waits at the broker.
func (r *ConsumerRecorder) takeGaps(now time.Duration, owed, last bool) workerGaps {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := never
	if owed && r.working.Load() == 0 { // else nothing can come now
		since = now
	}
	return r.quiet.takeGaps(since, last)
}

// workedUntil returns the consumer's times of work and of waits by a rate. A span in progress counts as work.
func (r *ConsumerRecorder) workedUntil(now time.Duration) (worked, paced time.Duration) {
	since := r.working.Load()
	worked, paced = time.Duration(r.worked.Load()), time.Duration(r.paced.Load())
	if since > 0 {
		worked += max(0, now+1-time.Duration(since))
	}
	return worked, paced
}

// Receipt is a message as its consumer saw it.
type Receipt struct {
	Due         Phase // the phase of the message
	Redelivered bool  // the broker marked it as delivered before
	Rejected    bool  // the consumer rejects it
	// it may have come before, and been given back, or was deferred: its wait is unknown
	Again   bool
	Stamped bool // it has a send time: Transfer is known
	// from the send to the delivery; a negative value, which clocks of two machines can cause, is counted and enters no
	// distribution
	Transfer time.Duration
	Paused   bool          // perfmq was paused meanwhile
	Size     int           // bytes of its body
	At       time.Duration // of its delivery, from the start of the run
	Delay    time.Duration // the requested delay of the delivery after the send; 0 for none
	// number of the shard that sent it, from 1; 0 for this process. Only with [ConsumerRecorder.SetShards]
	Shard int
}

// Received counts a message.
func (r *ConsumerRecorder) Received(m Receipt) {
	r.mu.Lock()
	if !r.received {
		r.received, r.first = true, m.At
	}
	r.last = m.At
	p := &r.part[m.Due]
	p.n[result.Received]++
	p.n[result.ReceivedBytes] += uint64(m.Size) //nolint:gosec // not negative
	since := m.At                               // it is not known to have waited
	if m.Stamped && !m.Again && !r.transacted {
		since = min(m.At, since-m.Transfer+m.Delay) // while the broker delays it, there is nothing to wait for
	}
	r.quiet.recordSign(since, m.At)
	if m.Redelivered {
		p.n[result.Redelivered]++
	}
	if m.Rejected {
		p.n[result.ConsumerRejected]++
	}
	if m.Stamped {
		if m.Shard > 0 {
			arrive(&r.from[m.Shard-1], 1, result.Difference(m.Transfer.Microseconds()))
		}
		if m.Delay > 0 {
			p.n[result.Delayed]++
			if by := m.Transfer - m.Delay; by <= -delayUnit {
				p.n[result.Early]++
			} else {
				p.record(result.Lateness, max(0, by))
			}
		}
		if m.Transfer < -stampAhead {
			p.n[result.NegativeTransfers]++
		} else {
			p.record(result.Transfer, max(0, m.Transfer))
		}
		if m.Paused {
			p.n[result.Paused]++
		}
	} else {
		p.n[result.Unstamped]++
	}
	r.mu.Unlock()
}

// stampAhead bounds the lead of a message's time over the clock: a producer stamps its first message after the warm-up,
// and other messages of that microsecond, a microsecond later than the clock.
const stampAhead = time.Microsecond

// delayUnit is the unit in which protocols and brokers count delays: a message that comes a part of it early is on
// time.
const delayUnit = time.Millisecond

// Ages records how old a message, counted by [ConsumerRecorder.Received], is at its delivery: since it was born and
// since it was stored. All times are in microseconds since the Unix epoch; 0 means unknown. Negative ages are counted
// and enter no distribution.
func (r *ConsumerRecorder) Ages(phase Phase, now, born, stored int64) {
	r.mu.Lock()
	p := &r.part[phase]
	p.age(result.B2C, now, born)
	p.age(result.S2C, now, stored)
	r.mu.Unlock()
}

func (p *ledger) age(kind result.Kind, now, since int64) {
	if since == 0 {
		return
	}
	age := min(now-since, 2*MaxLatency.Microseconds()) // a larger value would overflow a Duration
	if age < 0 {
		p.n[result.NegativeAges]++
		return
	}
	p.record(kind, time.Duration(age)*time.Microsecond)
}

// Foreign counts a message from another run or tool, delivered at that time since the start of the run.
func (r *ConsumerRecorder) Foreign(at time.Duration) { r.notReceived(Measure, result.Foreign, at) }

// Released counts a message that the consumer gives back so that it comes again, delivered at that time since the start
// of the run. It does not count as received.
func (r *ConsumerRecorder) Released(phase Phase, at time.Duration) {
	r.notReceived(phase, result.ConsumerReleased, at)
}

func (r *ConsumerRecorder) notReceived(phase Phase, as result.Counter, at time.Duration) {
	r.mu.Lock()
	r.part[phase].n[as]++
	r.quiet.recordSign(at, at)
	r.mu.Unlock()
}

// Total returns the number of messages received, foreign ones not counted.
func (r *ConsumerRecorder) Total() uint64 { return r.Count(result.Received) }

// Arrived returns the number of deliveries, including foreign messages and messages given back.
func (r *ConsumerRecorder) Arrived() uint64 {
	return r.Count(result.Received, result.Foreign, result.ConsumerReleased)
}

// SetShards lets the recorder keep the messages of that many shards apart. Call it before the first message.
func (r *ConsumerRecorder) SetShards(shards int) {
	r.from = make([]result.Arrival, shards)
}

// arrive adds messages of another shard, with the transfer time of the fastest by the clocks of both processes: below
// zero if the clocks differ by more than that.
func arrive(a *result.Arrival, messages uint64, fastest result.Difference) {
	if messages > 0 && (a.Messages == 0 || fastest < a.Fastest) {
		a.Fastest = fastest
	}
	a.Messages += messages
}

// arrivals returns the messages that came from other shards since the last call.
func (c *Collector) arrivals() (list []result.Arrival) {
	var sum []result.Arrival
	for _, r := range c.consumers {
		r.mu.Lock()
		if sum == nil {
			sum = make([]result.Arrival, len(r.from))
		}
		for i, a := range r.from {
			arrive(&sum[i], a.Messages, a.Fastest)
			r.from[i] = result.Arrival{}
		}
		r.mu.Unlock()
	}
	for i, a := range sum {
		if a.Shard = i + 1; a.Messages > 0 {
			list = append(list, a)
		}
	}
	return list
}

// saturatedWait is the share of an interval up to which a connection's wait counts as none.
const saturatedWait = 0.01

// workerMeter is the state of a worker as of the last interval.
type workerMeter struct {
	openings    int    // connections so far
	noLeave     uint64 // times that the broker gave it no credit to send
	socketWaits uint64 // times that the network took no more
	fresh       bool   // the present connection has not been looked at
	so, lap     laps   // totals as of the last interval, and the waits in it
}

// readWaits records the waits of all workers since the last interval.
func (c *Collector) readWaits(now time.Time) {
	little := time.Duration(saturatedWait * float64(now.Sub(c.last)))
	for i := range c.work {
		m, worker := &c.work[i], &c.workers[i]
		var waits driver.Waits
		if worker.Waits != nil {
			waits = worker.Waits.Waits()
		}
		m.noLeave = max(m.noLeave, worker.CreditWaits+waits.Credit.Times)
		m.socketWaits = max(m.socketWaits, worker.SocketWaits+waits.Socket.Times)
		if m.lap = (laps{}); worker.Closed {
			continue
		}
		l := m.lapsOf(&waits, c, i, now)
		l.connection = waits.Reader.Known && l.took[lapReader] <= little
		if !m.fresh {
			m.lap = l
		}
		m.fresh = false
	}
}

// WorkerTotals returns the totals of all workers, warm-up included, the producers first. Call it after the last
// Collect.
func (c *Collector) WorkerTotals() []result.Worker {
	list := make([]result.Worker, len(c.work))
	for i := range list {
		var counts [parts]Counters
		produces := i < len(c.producers)
		if produces {
			r := c.producers[i]
			r.collect(&counts, [parts]*result.Latencies{})
			counts[Measure][result.Sent] = ofBoth(&r.sent)
			c.addWaits(i, &counts[Measure])
		} else {
			c.consumers[i-len(c.producers)].collect(&counts, [parts]*result.Latencies{})
		}
		total := counts[Warmup].Add(counts[Measure])
		list[i] = result.Worker{
			Name: c.workers[i].Name, Destination: c.workers[i].Destination, Counts: total.Counts(produces, !produces),
		}
	}
	return list
}

// addWaits adds the counts of producer i that no message has.
func (c *Collector) addWaits(i int, total *Counters) {
	r, meter := c.producers[i], &c.work[i]
	total[result.Blocked] += r.blocked.Load() + meter.noLeave
	total[result.NoLeave] += meter.noLeave
	total[result.SocketWaits] += meter.socketWaits
	total[result.LateSends] += r.late.Load()
	total[result.Strays] += r.stray.Load()
}

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
// received. ofConnections are those of groups of connections.
func (c *Collector) sent(ofConnections, delivered uint64, last bool) uint64 {
	var known, begun uint64
	for i := range c.sends {
		known += c.sends[i].known(last)
		begun += c.sends[i].begun
	}
	if known < delivered && delivered <= begun {
		known = delivered
	}
	return max(ofConnections+known, c.total[result.Sent])
}
