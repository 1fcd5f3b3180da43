package stats

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// bound is the limit of one worker's rate in one interval.
type bound uint8

const (
	boundNone bound = iota // it waited for messages to be due
	boundSlot              // for a message in flight to end
	boundCredit
	boundSocket
	boundAnswer // in a synchronous Send
	boundSend   // in a Send of a driver that does not report its waits
	boundBroker // as boundSlot or boundCredit, but the more was sent, the later answers came
	boundWorker // it never waited
	boundConnection
	boundProcessors
	boundMachine

	boundInput    // consumers: for messages
	boundDelivery // as boundInput, but the messages had waited in the broker
	boundWork
	boundPace // for the rate of the consumers
	numBounds
)

func (b bound) ofTester() bool { return b >= boundWorker && b <= boundMachine }

// boundTimes are times by the bound that held, or by the reason of a wait.
type boundTimes [numBounds]time.Duration

func (t *boundTimes) add(o *boundTimes) {
	for b, d := range o {
		t[b] += d
	}
}

func (t *boundTimes) total() (sum time.Duration) {
	for _, d := range t {
		sum += d
	}
	return sum
}

func (t *boundTimes) share(b bound) float64 { return ratio(t[b], t.total()) }

// top returns the bound that held longest: boundNone only if there was no other.
func (t *boundTimes) top() bound {
	top := boundNone
	for b := boundNone + 1; b < numBounds; b++ {
		if t[b] > 0 && (top == boundNone || t[b] > t[top]) {
			top = b
		}
	}
	return top
}

const (
	// onTime is the share of its time that a producer must have waited for due times to count as on time.
	onTime = 0.02
	// busyShare is the share of its time that a worker must have waited to count as not saturated.
	busyShare = 0.1
	// working is the share of its time that a consumer must have worked for that to be its limit.
	working = 0.8
	// manyInFlight is the number of messages in flight, over all producers, from which on the broker can be the limit:
	// with fewer, more in flight may still raise the rate, whatever the latency.
	manyInFlight = 20
	// stretched is the ratio of average to shortest answer latency from which on messages queue in the broker.
	stretched = 5
	// stretchedLittle is the same, with few messages in flight, for answers that are late because other programs had the
	// processors.
	stretchedLittle = 20
	// starved is the share of time, threads added up, that perfmq must have waited for a processor for other programs
	// to be the limit: one of its threads or another at almost any moment.
	starved = 0.8
	// oldMessages is the age at delivery from which on messages count as having waited in the broker. Clocks of two
	// machines differ by less.
	oldMessages = time.Second
)

// LoadTally holds the waits of the workers of a load in its measured part.
type LoadTally struct {
	workers   []workerTally // producers first
	producers int

	span, behind        time.Duration // all, and the part in which more was completed than received
	completed, received uint64
	acks, ackSum, least int64          // of answers in the measured part, and the shortest of the run; microseconds
	ages                result.Latency // of the messages received in the measured part: only Count and Sum

	producing time.Duration // of all producers together
	waited    boundTimes    // of it
	silence   time.Duration // of it, for answers during long times without any
	consuming time.Duration
	worked    time.Duration
	input     time.Duration

	delayed bool // there were messages with a delivery delay

	all  result.Tester            // of all intervals
	with [numBounds]result.Tester // of the intervals in which it was the bound of a worker, once for each
}

// workerTally is the time for which each bound limited a worker.
type workerTally struct {
	name   string
	bounds boundTimes
	// busy is the time in which the worker or its connection never waited, connection the part of it for the
	// connection.
	busy, connection time.Duration
	waits            boundTimes // while it kept its rate
}

// explains is the share of the missed time from which on waits, or a pause, can be the reason.
const explains = 0.5

// missedBound returns the reason of the worker's longest waits, except waits for due times, if they are about as long
// as the time that it missed; else boundWorker: it was just late.
func (w *workerTally) missedBound(missed time.Duration) bound {
	top := w.waits.top()
	if top == boundNone || float64(w.waits[top]) < explains*float64(missed) {
		return boundWorker
	}
	return top
}

// addWaits adds the waits of an interval in which the producer kept its rate. A wait that may include a pause of perfmq
// counts without it.
func (w *workerTally) addWaits(l *laps, stalled bool, pause time.Duration) {
	waits := l.waits()
	if stalled {
		waits[boundBroker] = l.forAnswers()
		waits[boundSlot], waits[boundAnswer] = 0, 0
	}
	for b, d := range waits {
		if d >= pause {
			d -= pause
		}
		w.waits[b] += d
	}
}

// never records that the worker, or its connection, did not wait for that long, if this was its bound.
func (w *workerTally) never(b bound, d time.Duration) {
	if b == boundWorker || b == boundConnection {
		w.busy += d
	}
	if b == boundConnection {
		w.connection += d
	}
}

// sums returns the sums of the producers and of the consumers. Producers that have reached their rate had no limit. If
// a producer missed its rate although it waited for due times in each interval, its limit is the reason of its other
// waits, if these explain the missing messages.
func (t *LoadTally) sums(producers []ProducerAsked) (sending, receiving boundTimes) {
	for i := range t.workers {
		w := &t.workers[i]
		to := &receiving
		if i < t.producers {
			to = &sending
		}
		rated, total := i < len(producers) && producers[i].Rated, w.bounds.total()
		switch {
		case rated && producers[i].Reached:
			to[boundNone] += total
		case rated && w.bounds[boundNone] == total && total > 0:
			to[w.missedBound(producers[i].Missed)] += total
		default:
			to.add(&w.bounds)
		}
	}
	return sending, receiving
}

// tallyBounds adds the bounds of the workers in an interval.
func (c *Collector) tallyBounds(s *Snapshot) {
	t := c.tally
	t.delayed = t.delayed || s.Get(result.Delayed) > 0
	length := s.To.Sub(s.From)
	if s.Phase != result.Measure || length <= 0 {
		return
	}
	t.span += length
	t.all.Follow(&s.Tester)
	t.completed += s.Get(result.Completed)
	t.received += s.Get(result.Received)
	for _, l := range s.latencies(result.Transfer) {
		t.ages.Count += l.Count
		t.ages.Sum += l.Sum
	}
	if float64(s.Get(result.Received)) < (1-growing)*float64(s.Get(result.Completed)) {
		t.behind += length
	}
	counts := s.Values()
	ended := result.Ended(counts[:])
	stretch, old := c.stretch(s, length, ended), s.old()
	for i := range t.workers {
		w, meter := &t.workers[i], &c.work[i]
		if !meter.lap.known {
			continue
		}
		if w.name == "" {
			w.name = c.workers[i].Name
		}
		var b bound
		active := length
		if i < t.producers {
			if active = length - meter.lap.took[lapEnded]; active < enoughLoad {
				continue // it had nothing to send
			}
			b = meter.lap.producer(active)
			t.producing += active
			t.waited.add(new(meter.lap.waits()))
			t.silence += meter.lap.longSilence()
			stalled := meter.lap.mostlySilent() && s.Tester.CPUShare() <= result.MaxCPUShare && !isStarved(&s.Tester)
			if b == boundNone {
				w.addWaits(&meter.lap, stalled, time.Duration(s.Tester.PauseMax)*time.Microsecond)
			}
			w.never(b, active)
			if stalled && (b == boundSlot || b == boundAnswer) {
				b = boundBroker
			}
			b = c.blame(b, stretch, ended == 0, &s.Tester)
		} else {
			var known bool
			if b, known = meter.lap.consumer(length); !known {
				continue
			}
			t.consuming += length
			t.worked += meter.lap.took[boundWork]
			t.input += meter.lap.inputWait()
			w.never(b, active)
			b = c.blame(b, 1, false, &s.Tester)
			if b == boundInput && old {
				b = boundDelivery
			}
		}
		w.bounds[b] += active
		t.with[b].Follow(&s.Tester)
	}
}

// minSilence returns the least time without an answer that counts as a stall of the broker.
func (c *Collector) minSilence() time.Duration {
	if c.leastAck == math.MaxInt64 {
		return firstSilence
	}
	return max(leastSilence, stretched*time.Duration(c.leastAck)*time.Microsecond)
}

// old reports whether the messages of an interval had waited in the broker: delayed ones, beyond their delay.
func (s *Snapshot) old() bool {
	l := s.Latencies[result.Transfer]
	if s.Get(result.Delayed) > 0 {
		l = s.Latencies[result.Lateness]
	}
	return l != nil && l.Count > 0 && l.Mean() >= float64(oldMessages.Microseconds())
}

// stretch returns the ratio of an interval's answer latency to the shortest one, and adds the answers to the tally.
func (c *Collector) stretch(s *Snapshot, length time.Duration, ended uint64) float64 {
	t := c.tally
	t.least = c.leastAck
	var count, sum int64
	for _, l := range s.latencies(result.Ack) {
		count += l.Count
		sum += l.Sum
	}
	t.acks += count
	t.ackSum += sum
	switch {
	case count > 0:
		return float64(sum) / float64(count) / float64(max(1, t.least))
	case ended > 0: // refused
		return 1
	case t.least == math.MaxInt64: // nothing was ever answered
		return math.Inf(1)
	default: // answers take longer than the interval
		return float64(length.Microseconds()) / float64(max(1, t.least))
	}
}

// latencies returns the latencies of an interval, of messages of all phases: a producer that is far behind its rate
// sends the messages of the warm-up long after it.
func (s *Snapshot) latencies(kind result.Kind) (list []*result.Latency) {
	for _, all := range []*result.Latencies{&s.Latencies, s.Leftover} {
		if all != nil && all[kind] != nil && all[kind].Count > 0 {
			list = append(list, all[kind])
		}
	}
	return list
}

// blame corrects the bound of a worker by the latency of answers and the load of the processors.
func (c *Collector) blame(b bound, stretch float64, silent bool, h *result.Tester) bound {
	answers := b == boundSlot || b == boundCredit || b == boundAnswer
	many := c.mayPend >= manyInFlight
	switch {
	case b == boundNone || b >= boundInput:
		return b
	case h.CPUShare() > result.MaxCPUShare: // then nothing else could raise the rate much
		return boundProcessors
	case (!answers || many || stretch >= stretchedLittle) && isStarved(h):
		return boundMachine
	case silent && b == boundCredit: // nothing is in flight that could be answered
		return b
	case answers && stretch >= stretched && (many || silent):
		return boundBroker
	default:
		return b
	}
}

// isStarved reports whether other programs had the processors that perfmq needed: it waited for one at almost any
// moment, or needed all processors that it may use.
func isStarved(h *result.Tester) bool {
	wanted := float64(h.CPU+h.Delay) >= result.MaxCPUShare*float64(h.Wall)*float64(h.Cores)
	return h.Crowded() && (!h.DelayKnown || float64(h.Delay) >= starved*float64(h.Wall) || wanted)
}

// groupMeter sums up the intervals of one group.
type groupMeter struct {
	periods
	stages    *Stages
	producers []int                   // their indices
	now       [parts]Counters         // as of this Collect
	fresh     [parts]result.Latencies // since the last one
}

// SetGroups lets the collector sum up each group as well. Call it after SetWorkers, which names their workers, and
// before the first Collect.
func (c *Collector) SetGroups(list []RunGroup) {
	c.groupOf = make([]*groupMeter, len(c.work)+len(c.openers))
	for i := range list {
		g := new(groupMeter)
		g.run.Name, g.run.Sends, g.run.Receives = list[i].Name, list[i].Sends, list[i].Receives
		g.beginStep()
		c.groups = append(c.groups, g)
		for i := range c.workers {
			if c.workers[i].Group != g.run.Name {
				continue
			}
			if c.groupOf[i] = g; i < len(c.producers) {
				g.producers = append(g.producers, i)
			}
		}
		for i, r := range c.openers {
			if r.group == g.run.Name {
				c.groupOf[len(c.work)+i] = g
			}
		}
	}
}

// targetsOf returns the counters and latencies to which worker i is added: its group's, which [Collector.addGroups]
// adds up, or, without groups, the collector's own.
func (c *Collector) targetsOf(
	i int, counts *[parts]Counters, latencies [parts]*result.Latencies,
) (*[parts]Counters, [parts]*result.Latencies) {
	if c.groups == nil || c.groupOf[i] == nil {
		return counts, latencies
	}
	g := c.groupOf[i]
	var own [parts]*result.Latencies
	for part := range parts {
		if latencies[part] != nil {
			own[part] = &g.fresh[part]
		}
	}
	return &g.now, own
}

// addGroups adds the counters and latencies from the recorders of groups.
func (c *Collector) addGroups(counts *[parts]Counters, latencies [parts]*result.Latencies) {
	for _, g := range c.groups {
		for part := range parts {
			counts[part] = counts[part].Add(g.now[part])
			if latencies[part] != nil {
				latencies[part].Merge(g.fresh[part])
			}
		}
	}
}

// addRowGroups sums up the interval of each group, and adds the groups to the row if there are several. Groups beyond
// [result.MaxRowGroups] share one entry. All recorders have been collected.
func (c *Collector) addRowGroups(row *result.Row, length, first time.Duration, last bool) {
	for i, g := range c.groups {
		total := g.now[Warmup].Add(g.now[Measure])
		var known uint64
		for _, i := range g.producers {
			r := c.producers[i]
			c.addWaits(i, &total)
			g.now[Measure][result.Sent] += r.sent[Measure].Load()
			known += c.sends[i].known(last)
		}
		total[result.Sent] = max(total[result.Sent]+known, g.total[result.Sent])
		delta, latencies := total.Sub(g.total), g.fresh[Measure]
		if row.Phase == result.Warmup {
			latencies = g.fresh[Warmup]
		}
		group := result.RowGroup{Name: g.run.Name, Counts: delta.Counts(g.run.Sends, g.run.Receives)}
		if latencies != (result.Latencies{}) {
			latencies.Seal()
			group.Latencies = &latencies
		}
		own := result.Row{
			Phase: row.Phase, Time: row.Time, Elapsed: row.Elapsed, Length: row.Length, Counts: group.Counts,
			Latencies: latencies, Live: total.Live(),
		}
		g.add(&own, length, first, &total, &g.now)
		if i >= result.MaxRowGroups {
			group.Name = result.OtherGroups
		}
		if len(c.groups) > 1 && (delta != Counters{} || group.Latencies != nil) {
			row.AddGroup(&group)
		}
		g.now, g.fresh = [parts]Counters{}, [parts]result.Latencies{}
	}
}
