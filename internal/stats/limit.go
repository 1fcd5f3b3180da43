package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// LimitKind is the kind of limit on the rate of a load. Programs compare it; it does not change.
type LimitKind string

// The kinds of limits.
const (
	LimitNone       LimitKind = "none"        // the rate was reached
	LimitMaxPending LimitKind = "max-pending" // too few messages may be in flight for the time that answers take
	LimitCredit     LimitKind = "credit"      // the broker gave no credit to send
	// the more it was sent, the later the broker answered or delivered
	LimitBroker     LimitKind = "broker"
	LimitConsumers  LimitKind = "consumers"         // the simulated work of the consumers, or their rate
	LimitProducers  LimitKind = "producers"         // consumers only: they waited for messages
	LimitSocket     LimitKind = "socket"            // the network, or its buffers, took no more
	LimitWorker     LimitKind = "tester-worker"     // one goroutine or connection of the tester
	LimitProcessors LimitKind = "tester-processors" // the processors that the tester may use
	LimitMachine    LimitKind = "machine"           // other programs had its processors
	LimitUnknown    LimitKind = "unknown"           // cannot be determined
)

// Title returns the kind in words.
func (k LimitKind) Title() string {
	switch k {
	case LimitCredit:
		return "the broker's credit"
	case LimitBroker, LimitConsumers, LimitProducers, LimitMachine:
		return "the " + string(k)
	case LimitSocket:
		return "the network buffer"
	case LimitWorker:
		return "one worker of the tester"
	case LimitProcessors:
		return "the tester's processors"
	default:
		return string(k)
	}
}

// Limit is the judgement on the bound of a load's rate, from the waits of its workers in its measured part.
type Limit struct {
	Kind LimitKind
	// Share is the share of time, from 0 to 1, in which this was the limit of the producers; of the consumers, if these
	// are the limit or if there are no producers.
	Share float64
	// Text is the evidence, Hint suggests a remedy; Hint may be empty.
	Text, Hint string
}

// String returns the limit as one line of text without a label.
func (l Limit) String() string {
	switch {
	case l.Kind == LimitNone:
		return string(LimitNone) + ": " + l.Text
	case l.Hint == "":
		return l.Kind.Title() + " (" + l.Text + ")"
	default:
		return l.Kind.Title() + " (" + l.Text + "; " + l.Hint + ")"
	}
}

// OfTester tells whether perfmq, or its machine, was the limit: the metrics then say little about the broker, and rates
// are lower bounds.
func (k LimitKind) OfTester() bool {
	return k == LimitWorker || k == LimitProcessors || k == LimitMachine
}

// OfTester tells that of the kind.
func (l Limit) OfTester() bool { return l.Kind.OfTester() }

// LoadAsked holds the targets and bounds of a load.
type LoadAsked struct {
	// Producers are in the order of the collector; an idle one is zero.
	Producers []ProducerAsked
	// Delivered: the producers' messages are for consumers of the same load, without a delay.
	Delivered bool
	// Stored: the load has no producers, and its messages come from other steps of the run.
	Stored bool
}

// ProducerAsked holds the targets and bounds of one producer.
type ProducerAsked struct {
	Rated   bool
	Reached bool // its group has sent the messages that were due
	// Missed is the time that its rate takes for the messages that were due and not sent.
	Missed time.Duration
	// MaxPending is the number of messages that may be in flight, PerSecond its rate; 0 without one. InFlight is the
	// client's own bound.
	MaxPending int
	InFlight   driver.InFlight
	PerSecond  float64
	Reconnects bool // it reopens a lost connection, and waits for it
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

// Judge returns the limit that bounded the rate of the load.
func (t *LoadTally) Judge(asked LoadAsked) Limit {
	sending, receiving := t.sums(asked.Producers)
	if t.span < enoughLoad || sending.total+receiving.total == 0 {
		return Limit{Kind: LimitUnknown, Text: "the measured part of the load was too short, or its workers cannot tell " +
			"what they wait for"}
	}
	if sending.total == 0 {
		return t.judgeConsumers(&receiving, asked.Stored)
	}
	top, consumers := sending.top(), receiving.top()
	jobs := receiving.share(boundWork) + receiving.share(boundPace)
	switch grows := asked.Delivered && !t.delayed && receiving.total > 0 && t.grows(); {
	case jobs > mostly && (grows || top == boundCredit || top == boundSocket || top == boundBroker):
		return t.consumersLimit(&receiving)
	case grows && consumers.ofTester() && receiving.share(consumers) > mostly:
		return t.limit(&receiving, consumers, nil)
	case grows && (!top.ofTester() || t.onlyLate(top)):
		return Limit{
			Kind: LimitBroker, Share: ratio(t.behind, t.span),
			Text: fmt.Sprintf("messages queue in it: its backlog grew by %.0f msg/s while consumers waited for them",
				t.growth()),
		}
	default:
		return t.limit(&sending, top, asked.Producers)
	}
}

// judgeConsumers judges a load of consumers only. Stored is as in [LoadAsked].
func (t *LoadTally) judgeConsumers(sum *boundSums, stored bool) Limit {
	switch top := sum.top(); top {
	case boundInput:
		if stored { // no producer sends meanwhile
			return Limit{Kind: LimitUnknown, Text: fmt.Sprintf("consumers had received what was there, and waited %s of the "+
				"time", percent(ratio(t.input, t.consuming)))}
		}
		return t.limit(sum, top, nil)
	case boundWork:
		return t.consumersLimit(sum)
	case boundPace:
		return Limit{Kind: LimitNone, Share: sum.share(top), Text: "the rate was reached"}
	default:
		return t.limit(sum, top, nil)
	}
}

func (t *LoadTally) consumersLimit(sum *boundSums) Limit {
	l := Limit{Kind: LimitConsumers, Share: sum.share(boundWork) + sum.share(boundPace), Hint: "try more --consumers"}
	if sum.share(boundPace) > sum.share(boundWork) {
		l.Text, l.Hint = "they receive no more than their rate", "raise --consumer-rate"
	} else {
		l.Text = fmt.Sprintf("their work took %s of their time", percent(ratio(t.worked, t.consuming)))
	}
	if t.completed > 0 && !t.delayed && t.grows() {
		l.Text += fmt.Sprintf("; the backlog grew by %.0f msg/s", t.growth())
	}
	return l
}

// grows tells whether the backlog grew: in most of the time, and in all of it together. Loads shorter than a second end
// before their messages have arrived.
func (t *LoadTally) grows() bool {
	return t.span >= FullSecond && t.behind > t.span/2 && float64(t.received) < (1-growing)*float64(t.completed) &&
		Queued(1-float64(t.received)/float64(t.completed), t.span, &t.ages)
}

// queuedAge is the share of the expected age from which on messages count as having waited in a growing backlog.
const queuedAge = 0.1

// Queued tells whether the missing share of the messages waits in a backlog that grows. Then those received have also
// waited, for half the missing share of the time on average (Little's law). If they have not, another program received
// the missing ones, or the broker dropped them.
func Queued(missing float64, span time.Duration, ages *result.Latency) bool {
	return ages == nil || ages.Count == 0 ||
		ages.Mean() >= queuedAge*missing*float64(span.Microseconds())/2
}

// growth returns the growth of the backlog in messages per second.
func (t *LoadTally) growth() float64 {
	return (float64(t.completed) - float64(t.received)) / t.span.Seconds()
}

// limit describes the bound of workers.
func (t *LoadTally) limit(sum *boundSums, top bound, producers []ProducerAsked) Limit {
	l := Limit{Share: sum.share(top)}
	switch top {
	case boundNone:
		l.Kind, l.Text = LimitNone, "the rate was reached"
	case boundSlot:
		l.Kind, l.Text = LimitMaxPending, t.forAnswers()
		pending := t.morePending(producers)
		l.Hint = fmt.Sprintf("try --max-pending %d", pending)
		if own := ownBound(producers); own.Messages > 0 && own.Messages < pending { // more would not be in flight
			l.Hint = own.Hint
		}
	case boundAnswer:
		l.Kind = LimitMaxPending
		l.Text, l.Hint = t.synchronous(ownBound(producers))
	case boundCredit:
		l.Kind, l.Text = LimitCredit, fmt.Sprintf("producers waited for it %s of the time",
			percent(ratio(t.waited[boundCredit], t.producing)))
		l.Hint = "look for a full queue, address or disk, or let the broker give producers more credit"
	case boundSocket:
		l.Kind, l.Text = LimitSocket, fmt.Sprintf("producers waited %s of the time to write",
			percent(ratio(t.waited[boundSocket], t.producing)))+t.busyMachine()
		l.Hint = "look at the network, and whether the broker reads slowly"
	case boundBroker:
		reconnects := slices.ContainsFunc(producers, func(p ProducerAsked) bool { return p.Reconnects })
		l.Kind, l.Text = LimitBroker, t.late(reconnects)+t.busyMachine()
	case boundSend:
		l.Kind, l.Text = LimitBroker, fmt.Sprintf("producers waited in Send %s of the time",
			percent(ratio(t.waited[boundSend], t.producing)))
	case boundInput:
		l.Kind, l.Text = LimitProducers, fmt.Sprintf("consumers waited for messages %s of the time",
			percent(ratio(t.input, t.consuming)))
	case boundDelivery:
		l.Kind, l.Hint = LimitBroker, "try more --credit or --consumers"
		l.Text = fmt.Sprintf("old messages waited in it while consumers waited for messages %s of the time",
			percent(ratio(t.input, t.consuming)))
	case boundWork, boundPace:
		return t.consumersLimit(sum)
	case boundWorker, boundConnection:
		if pause := t.paused(producers); t.onlyLate(top) && pause != "" {
			l.Kind, l.Text = LimitMachine, pause
			l.Hint = "let the tester have a machine of its own"
			return l
		}
		if t.onlyLate(top) && t.all.Crowded() {
			l.Kind, l.Text = LimitMachine, "others took "+percent(t.all.OthersShare())+" of its processors"
			l.Hint = "let the tester have a machine of its own"
			return l
		}
		l.Kind, l.Hint = LimitWorker, "more producers, consumers or connections may bring more"
		l.Text = cmp.Or(t.saturated(), "it sent late, though it waited for nothing but the due times of its messages")
	case boundProcessors:
		l.Kind, l.Text = LimitProcessors, fmt.Sprintf("it used %.2f of the %d cores that it may use",
			t.full.CPUShare()*float64(t.full.Cores), t.full.Cores)+t.while()
		l.Hint = "use more hosts, or larger messages"
	case boundMachine:
		l.Kind, l.Text = LimitMachine, fmt.Sprintf("others took %s of its processors", percent(t.crowded.OthersShare()))+
			t.while()
		l.Hint = "let the tester have a machine of its own"
	case numBounds:
	}
	return l
}

// onlyLate tells whether the producers missed their rate although they waited for due times all the time: they, or the
// whole tester, stood still for a moment. No worker was busy then.
func (t *LoadTally) onlyLate(top bound) bool { return top == boundWorker && t.saturated() == "" }

// ownBound returns the client's own bound on the messages in flight of the first producer that has one.
func ownBound(producers []ProducerAsked) (own driver.InFlight) {
	for _, p := range producers {
		if own.Messages == 0 && (!p.Rated || !p.Reached) {
			own = p.InFlight
		}
	}
	return own
}

// synchronous describes producers whose Send waits for answers, and suggests a remedy.
func (t *LoadTally) synchronous(own driver.InFlight) (text, hint string) {
	share := percent(ratio(t.waited[boundAnswer], t.producing))
	each := "producer"
	if own.PerConnection {
		each = "connection"
	}
	switch own.Messages {
	case 0:
		return fmt.Sprintf("each send waited for its answer, %s of the time", share),
			"try to send asynchronously, or more --producers"
	case 1:
		return fmt.Sprintf("each send waited for its answer, %s of the time: the client has one message of a %s in flight",
			share, each), own.Hint
	default:
		return fmt.Sprintf("producers waited for answers %s of the time: the client has at most %d messages of a %s "+
			"in flight", share, own.Messages, each), own.Hint
	}
}

// paused describes the pauses of perfmq if they explain what its producers missed.
func (t *LoadTally) paused(producers []ProducerAsked) string {
	for _, p := range producers {
		if p.Missed > 0 && float64(t.all.PauseMax) >= explains*float64(p.Missed) {
			return fmt.Sprintf("perfmq was paused for up to %s", rounded(t.all.PauseMax))
		}
	}
	return ""
}

// forAnswers returns the share of sends that waited for an answer, or of the time if that is more telling: in bursts,
// few sends wait.
func (t *LoadTally) forAnswers() string {
	sends, span := 0.0, ratio(t.waited[boundSlot], t.producing)
	if t.sent > 0 {
		sends = min(1, float64(t.slots)/float64(t.sent))
	}
	if sends >= min(span, mostly) {
		return percent(sends) + " of sends waited for an answer"
	}
	return fmt.Sprintf("producers waited for answers %s of the time", percent(span))
}

// late returns for how much of the time no answer came, if producers waited mostly for that, or how much later answers
// came than the first ones. A producer that reconnects also waits for its connection: nothing is in flight then.
func (t *LoadTally) late(reconnects bool) string {
	if t.acks == 0 {
		return "it answered nothing"
	}
	mean := time.Duration(float64(t.ackSum) / float64(t.acks) * float64(time.Microsecond))
	least := time.Duration(t.least) * time.Microsecond
	waited := t.waited[boundSlot] + t.waited[boundAnswer]
	if float64(t.silence) > mostly*float64(waited) || t.silence > 0 && mean < stretched*least {
		text := fmt.Sprintf("it answered nothing for %s of the time, while producers waited for its answers",
			percent(ratio(t.silence, t.producing)))
		if reconnects {
			text += " or for a connection"
		}
		return text
	}
	return fmt.Sprintf("with as many messages in flight as allowed, its answers took %s on average, %.0f times the "+
		"shortest (%s)",
		rounded(mean), float64(mean)/float64(max(least, time.Microsecond)), rounded(least))
}

// morePending suggests a number of messages in flight: by Little's law, with a reserve, the number that the rate needs
// at the mean latency of answers; ten times the present one without a rate. It is at least 100.
func (t *LoadTally) morePending(producers []ProducerAsked) int {
	var present int
	var want float64
	for _, p := range producers {
		if p.MaxPending == 0 || p.Rated && p.Reached {
			continue
		}
		present = max(present, p.MaxPending)
		if p.PerSecond > 0 && t.acks > 0 {
			want = max(want, 2*p.PerSecond*float64(t.ackSum)/float64(t.acks)/1e6)
		} else {
			want = max(want, 10*float64(p.MaxPending))
		}
	}
	return round125(max(100, want, 2*float64(present)))
}

// round125 rounds up to 1, 2 or 5 times a power of ten, up to a million.
func round125(v float64) int {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5, 10} {
		if n*power >= v {
			return int(min(n*power, 1e6))
		}
	}
	return int(v)
}

// namedWorkers is the number of saturated workers that a limit names.
const namedWorkers = 3

// saturated names the workers that never waited.
func (t *LoadTally) saturated() string {
	var list []*workerTally
	for i := range t.workers {
		if w := &t.workers[i]; w.busy > 0 {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b *workerTally) int { return cmp.Compare(b.busy, a.busy) })
	var parts []string
	for _, w := range list[:min(len(list), namedWorkers)] {
		name := w.name
		if 2*w.connection > w.busy {
			name = "the connection of " + name
		}
		parts = append(parts, fmt.Sprintf("%s never waited in %s of %s seconds", name, seconds(w.busy), seconds(w.total())))
	}
	text := strings.Join(parts, ", ")
	if more := len(list) - len(parts); more > 0 {
		text += fmt.Sprintf(", nor did %d more workers", more)
	}
	return text
}

// busyMachine mentions other programs that kept the machine busy, if any: a broker on it may have had no processor.
func (t *LoadTally) busyMachine() string {
	if !t.all.Crowded() {
		return ""
	}
	return ", and others had " + percent(t.all.OthersShare()) + " of the machine's processors"
}

// while mentions the workers that never waited, if any.
func (t *LoadTally) while() string {
	if text := t.saturated(); text != "" {
		return ", while " + text
	}
	return ""
}

// seconds returns a time in seconds, whole ones unless there are few.
func seconds(d time.Duration) string {
	if d < 2*time.Second && d%time.Second > 50*time.Millisecond {
		return fmt.Sprintf("%.1f", d.Seconds())
	}
	return fmt.Sprintf("%.0f", d.Seconds())
}

func rounded(d time.Duration) time.Duration {
	for unit := 10 * time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= unit*10 {
			return d.Round(unit / 10)
		}
	}
	return d.Round(time.Microsecond)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func ratio(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}
