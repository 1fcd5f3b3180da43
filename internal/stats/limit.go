package stats

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// ProducerAsked holds the targets and bounds of one producer of a load.
type ProducerAsked struct {
	Rated   bool
	Reached bool // its group has sent the messages that were due
	// Missed is the time that its rate takes for the messages that were due and not sent.
	Missed time.Duration
	// InFlight is the client's own bound on the messages in flight.
	InFlight driver.InFlight
}

const (
	// enoughLoad is the shortest load that can be judged.
	enoughLoad = 20 * time.Millisecond
	// growing is the share of completed messages that may stay behind in an interval without counting as a growing
	// backlog.
	growing = 0.05
	// mostly is the share of a consumer's time from which on a bound counts as its limit.
	mostly = 0.5
)

// Judge returns the limit that bounded the rate of the load. The producers are in the order of the collector; an idle
// one is zero. delivered: their messages are for consumers of the same load, without a delay. stored: the load has no
// producers, and its messages come from other steps of the run.
//
//nolint:gocyclo // a list of checks, the strongest first
func (t *LoadTally) Judge(producers []ProducerAsked, delivered, stored bool) result.Limit {
	sending, receiving := t.sums(producers)
	if t.span < enoughLoad || sending.total()+receiving.total() == 0 {
		return words.NewLimit("unknown", 0)
	}
	if sending.total() == 0 {
		switch top := receiving.top(); {
		case top == boundInput && stored: // no producer sends meanwhile
			return words.NewLimit("stored", 0, percent(ratio(t.input, t.consuming)))
		case top == boundPace:
			return words.NewLimit("reached", receiving.share(top))
		default:
			return t.limit(&receiving, top, nil)
		}
	}
	top, consumers := sending.top(), receiving.top()
	jobs := receiving.share(boundWork) + receiving.share(boundPace)
	switch grows := delivered && !t.delayed && receiving.total() > 0 && t.grows(); {
	case jobs > mostly && (grows || top == boundCredit || top == boundSocket || top == boundBroker):
		return t.limit(&receiving, boundWork, nil)
	case grows && consumers.ofTester() && receiving.share(consumers) > mostly:
		return t.limit(&receiving, consumers, nil)
	case grows && (!top.ofTester() || t.onlyLate(top)):
		return words.NewLimit("backlog", ratio(t.behind, t.span), t.growth())
	default:
		return t.limit(&sending, top, producers)
	}
}

// grows reports whether the backlog grew: in most of the time, and in all of it together. Loads shorter than a second
// end before their messages have arrived.
func (t *LoadTally) grows() bool {
	return t.span >= FullSecond && t.behind > t.span/2 && float64(t.received) < (1-growing)*float64(t.completed) &&
		t.queued(1-float64(t.received)/float64(t.completed))
}

// queuedAge is the share of the expected age from which on messages count as having waited in a growing backlog.
const queuedAge = 0.1

// queued reports whether the missing share of the messages waits in a backlog that grows. Then those received have also
// waited, for half the missing share of the time on average (Little's law). If they have not, another program received
// the missing ones, or the broker dropped them.
func (t *LoadTally) queued(missing float64) bool {
	return t.ages.Count == 0 || t.ages.Mean() >= queuedAge*missing*float64(t.span.Microseconds())/2
}

// growth returns the growth of the backlog in messages per second.
func (t *LoadTally) growth() float64 {
	return (float64(t.completed) - float64(t.received)) / t.span.Seconds()
}

// waitedFor has the names of the bounds that workers only waited for.
//
//nolint:gochecknoglobals // a table that never changes
var waitedFor = [numBounds]string{
	boundSlot: "slot", boundAnswer: "answer", boundCredit: "credit", boundSocket: "socket", boundSend: "send",
	boundInput: "input", boundDelivery: "delivery",
}

// limit describes the bound of workers.
func (t *LoadTally) limit(sum *boundTimes, top bound, producers []ProducerAsked) result.Limit {
	share, with := sum.share(top), &t.with[top]
	switch top {
	case boundSlot, boundAnswer:
		return t.answers(top, share, ownBound(producers))
	case boundCredit, boundSocket, boundSend:
		return words.NewLimit(waitedFor[top], share, percent(ratio(t.waited[top], t.producing)))
	case boundInput, boundDelivery:
		return words.NewLimit(waitedFor[top], share, percent(ratio(t.input, t.consuming)))
	case boundBroker:
		return t.late(share)
	case boundWork, boundPace:
		return t.jobs(sum)
	case boundWorker, boundConnection:
		return t.worker(top, share, producers)
	case boundProcessors:
		return words.NewLimit("processors", share, with.CPUShare()*float64(with.Cores), with.Cores)
	case boundMachine:
		return words.NewLimit("machine", share, percent(with.OthersShare()))
	default:
		return words.NewLimit("reached", share)
	}
}

// jobs describes consumers that work on messages, or have a rate.
func (t *LoadTally) jobs(sum *boundTimes) result.Limit {
	work, pace := sum.share(boundWork), sum.share(boundPace)
	backlog := ""
	if t.completed > 0 && !t.delayed && t.grows() {
		backlog = fmt.Sprintf("; the backlog grew by %.0f msg/s", t.growth())
	}
	if pace > work {
		return words.NewLimit("pace", work+pace, backlog)
	}
	return words.NewLimit("work", work+pace, percent(ratio(t.worked, t.consuming)), backlog)
}

// worker describes a worker that never waited, or producers that were late without one.
func (t *LoadTally) worker(top bound, share float64, producers []ProducerAsked) result.Limit {
	switch late := t.onlyLate(top); {
	case late && slices.ContainsFunc(producers, func(p ProducerAsked) bool {
		return p.Missed > 0 && float64(t.all.PauseMax) >= explains*float64(p.Missed.Microseconds())
	}):
		return words.NewLimit("pause", share, words.Duration(t.all.PauseMax))
	case late && t.all.Crowded():
		return words.NewLimit("machine", share, percent(t.all.OthersShare()))
	case late:
		return words.NewLimit("lateness", share)
	}
	w := slices.MaxFunc(t.workers, func(a, b workerTally) int { return cmp.Compare(a.busy, b.busy) })
	name := w.name
	if 2*w.connection > w.busy {
		name = "the connection of " + name
	}
	return words.NewLimit("worker", share, name, words.Seconds(w.busy), words.Seconds(w.bounds.total()))
}

// onlyLate reports whether the producers missed their rate although they waited for due times all the time: they, or
// all of perfmq, was paused for a moment. No worker was busy then.
func (t *LoadTally) onlyLate(top bound) bool {
	return top == boundWorker && !slices.ContainsFunc(t.workers, func(w workerTally) bool { return w.busy > 0 })
}

// ownBound returns the client's own bound on the messages in flight of the first producer that has one.
func ownBound(producers []ProducerAsked) (own driver.InFlight) {
	for _, p := range producers {
		if own.Messages == 0 && (!p.Rated || !p.Reached) {
			own = p.InFlight
		}
	}
	return own
}

// answers describes producers that waited for the answers to their messages in flight: for a slot, or in Send.
func (t *LoadTally) answers(top bound, share float64, own driver.InFlight) result.Limit {
	waited := percent(ratio(t.waited[top], t.producing))
	if own.Messages > 0 {
		each := "producer"
		if own.PerConnection {
			each = "connection"
		}
		l := words.NewLimit("client", share, waited, words.Plural(own.Messages, "message"), each)
		l.Hint = own.Hint
		return l
	}
	return words.NewLimit(waitedFor[top], share, waited)
}

// late describes a broker with late answers: the share of time without any, if the producers waited mostly in it, or
// the delay of answers over the first ones.
func (t *LoadTally) late(share float64) result.Limit {
	if t.acks == 0 {
		return words.NewLimit("silent", share)
	}
	mean := time.Duration(float64(t.ackSum) / float64(t.acks) * float64(time.Microsecond))
	least := time.Duration(t.least) * time.Microsecond
	waited := t.waited[boundSlot] + t.waited[boundAnswer]
	if float64(t.silence) > mostly*float64(waited) || t.silence > 0 && mean < stretched*least {
		return words.NewLimit("silence", share, percent(ratio(t.silence, t.producing)))
	}
	return words.NewLimit("late", share, words.Duration(mean.Microseconds()),
		float64(mean)/float64(max(least, time.Microsecond)), words.Duration(t.least))
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func ratio(part, all time.Duration) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, float64(part)/float64(all))
}
