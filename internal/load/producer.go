package load

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// LateLimit is the send delay, without a wait for the broker, above which a message counts as late by perfmq's own
// fault. The runtime wakes sleepers up to 1 ms late; a longer delay means that perfmq lacks processor time.
const LateLimit = 5 * time.Millisecond

const (
	// slowSend is the least time of a hand-over in which the driver waited for the broker. Below it the driver is not
	// asked.
	slowSend = 100 * time.Microsecond
	// slowUnknown is the same for drivers that do not report their waits: a longer one counts as a wait for the broker, a
	// shorter one as perfmq's own work.
	slowUnknown = time.Millisecond
)

// maxDue is the latest time after the start of a step at which a message is due, far beyond any run.
const maxDue = math.MaxInt64 / 2

// flushTimeout bounds the hand-over of the end of a transaction that is not full. It does not include the broker's
// answer.
const flushTimeout = 5 * time.Second

// ProducerConfig holds the settings of one producer that stay the same for a run.
type ProducerConfig struct {
	ID         int            // among all producers of the run, from 0
	Phases     *Phases        // of the run
	Boundary   *Boundary      // is told where the warm-up's messages end; may be nil
	MaxPending int            // slots, at least 1
	Precise    bool           // sleep by the operating system's best timer; not under a fake clock
	Ledger     *verify.Ledger // numbers the messages; nil if nothing is to be verified
	// Templates are those of the variants; nil if there are none.
	Templates []template.Message
	Filler    *template.Filler // of Templates, in all steps
	Sizes     []uint32         // bytes of the bodies of the variants; nil if sizes are not needed
	Trace     *Trace           // nil if no messages are traced
	// Requests has the messages as requests; nil if they are none.
	Requests *Requests
	// Resent is called after the resend of a message that an outage had left in doubt; may be nil.
	Resent func(outage int)
}

// Load describes the messages that a producer sends in a step, and their schedule.
type Load struct {
	Index, Total int           // this is producer Index of Total; it sends the messages n with n mod Total = Index
	Schedule     Schedule      // of all producers together; zero for the closed loop
	Count        uint64        // total of all producers; 0 for no limit
	Start        time.Duration // of the step, from the start of the run: the first message is due then
	// messages due that long after Start are not sent, open loop only; 0 for no limit. Run waits for its ctx
	Until time.Duration
	Mix   Mix   // the variants of the messages; the zero value is variant 0 alone
	Draws Draws // of random arrivals, and unequal shares
	// Timed: [Producer.Expire] is called while messages are in flight.
	Timed bool
	// Resend sends messages again that end without an answer, until they are confirmed or the load is over.
	Resend bool
}

// Producer makes the load of one driver.Producer, step by step.
type Producer struct {
	cfg       ProducerConfig
	load      Load      // of Run's goroutine
	turn      int       // place in the cycle of the mix, of Run's goroutine
	arrivals  *arrivals // of random arrivals, of Run's goroutine
	limit     uint64    // [Load.limit]
	clock     *Clock
	rec       *stats.ProducerRecorder
	producer  driver.Producer
	waits     driver.Waiter    // the same, if it reports its waits
	trySender driver.TrySender // the same, if it is one
	seenWaits time.Duration    // how long waits has held it up so far

	stamp    int64         // the time that the last message carries
	measured bool          // a message of the step was due after the warm-up
	last     time.Duration // when the last message was handed over, of Run's goroutine

	news    news
	slots   *slots
	relay   relay
	sending atomic.Uint64 // the slot of the message that is being handed over, of a timed load; 0 for none
	// Of the goroutine that calls Expire: the messages in flight as it has seen them, by place, when it looked last, and
	// the time since the first look, without the time in which perfmq was paused.
	sights []struct {
		generation uint32
		since      time.Duration // of watched, when the message was first seen
	}
	looked, watched time.Duration

	expired atomic.Uint64 // messages that Expire has ended
	kept    []kept        // by place; nil unless messages are sent again
	doubts  doubts
}

// NewProducer returns a producer. Before Run, give it to the driver, and pass the driver's producer to Attach.
func NewProducer(cfg ProducerConfig, clock *Clock, rec *stats.ProducerRecorder) *Producer {
	p := &Producer{cfg: cfg, clock: clock, rec: rec, slots: newSlots(cfg.MaxPending)}
	if cfg.Requests != nil {
		cfg.Requests.producer.Store(p)
	}
	return p
}

// Attach sets the driver's producer that sends the messages.
func (p *Producer) Attach(producer driver.Producer) {
	p.producer = producer
	if p.waits = WaiterOf(producer); p.waits == nil {
		p.rec.SetBlind()
	}
	p.trySender, _ = producer.(driver.TrySender)
	p.watchConnection()
}

// Run sends the messages of a step until ctx ends, the producer's share of the count is sent, or the schedule ends
// before Until and all messages due are sent; then it returns nil. It returns an error if the driver refused a message:
// the producer cannot continue. Messages may still be in flight when it returns. Runs follow each other.
func (p *Producer) Run(ctx context.Context, load Load) error {
	p.load, p.limit, p.measured = load, load.limit(), false
	p.arrivals = load.Draws.arrivals(&load.Schedule, load.Index, load.Total)
	// Producers begin at different places of the cycle, so that few messages of many producers are mixed, too.
	p.turn = len(load.Mix.cycle) * load.Index / max(1, load.Total)
	p.rec.Resume(p.clock.Now())
	if load.Resend {
		p.prepareResend()
	}
	defer func() {
		if load.Resend {
			p.endDoubts()
		}
		p.rec.Stopped(p.last)
		p.rec.Wait(stats.WaitEnded, p.clock.Now())
	}()
	run := p.openLoop
	if load.Schedule.IsZero() {
		run = p.closedLoop
	}
	err := run(ctx)
	if err == nil {
		err = p.finishResends(ctx)
	}
	if flushed := p.flush(ctx); err == nil {
		err = flushed
	}
	return err
}

// flush lets messages leave and end that wait for others: for more to be written with them, or for a transaction to be
// full.
func (p *Producer) flush(ctx context.Context) error {
	f, ok := p.producer.(driver.Flusher)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	return f.Flush(ctx)
}

// closedLoop sends a message as soon as there is a place for it.
func (p *Producer) closedLoop(ctx context.Context) error {
	r := &p.relay
	r.ctx, r.msg, r.n, r.kind = ctx, driver.Message{}, uint64(p.load.Index), false
	relays := p.trySender != nil && p.cfg.MaxPending == 1 && !p.load.Resend && p.cfg.Requests == nil
	total := uint64(p.load.Total)
	for last := p.clock.Now(); p.hasNext(); { // last is when the previous message was about to be handed over
		index, ok := p.slots.takePlace()
		now := p.clock.Now()
		p.brokerWait(now - last)
		last = now
		if !ok {
			if last, ok = p.awaitRelayed(now, relays); !ok {
				return nil
			}
			continue
		}
		if found, stopped, err := p.sendAgain(ctx, index, now); stopped || err != nil {
			return err
		} else if found {
			continue
		}
		p.chooseOnce()
		r.msg.More = !relays && p.slots.hasRoom() && r.n+total < p.limit
		if stopped, err := p.send(ctx, &r.msg, index, now, now); stopped || err != nil {
			return err
		}
		p.advanceRelay()
	}
	return nil
}

//nolint:gocyclo // the path of a message: its steps in their order
func (p *Producer) openLoop(ctx context.Context) error {
	var msg driver.Message
	wait := p.newDueWait(ctx)
	defer func() { wait.close() }()
	var held time.Duration // how much of its delay the producer owes to the broker and to max-pending
	last := p.clock.Now()  // when the previous message was about to be handed over
	again := false         // since then an outage, or a message sent again, has cost time
	end, ends := p.load.Schedule.End()
	ends = ends && (p.load.Until == 0 || end < p.load.Until)
	total := uint64(p.load.Total)
	n, limit := uint64(p.load.Index), p.limit
	due := p.nextDue(n)
	for n < limit {
		if stopped(ctx) {
			return nil
		}
		now := p.clock.Now()
		intended := p.load.Start + min(due, maxDue)
		if again { // what an outage costs the messages after it is not perfmq's fault
			held, again = held+now-last, false
		} else {
			held += p.brokerWait(now - last)
		}
		over := p.load.Until > 0 && due >= p.load.Until // the load goes on until ctx ends, but nothing more is due
		if ended := ends && due >= end; !p.hasDoubts() && (over || ended || now < intended) {
			moment := intended
			switch {
			case ended: // a pause may come last
				moment = p.load.Start + end
			case over:
				moment = maxDue
			}
			held = 0
			p.rec.Wait(stats.WaitDue, now)
			ok := wait.Until(moment)
			idle := over && !ended && !p.hasDoubts() // the end of the connection is of no matter
			if !ok && idle && !p.load.Resend {
				<-ctx.Done()
			}
			goesOn := !stopped(ctx)
			if now = p.clock.Now(); ok || ended || goesOn {
				p.rec.Waited(now)
			}
			if !ok && goesOn {
				last, again = now, true
				if err := p.handleNews(ctx); err != nil && !idle && !stopped(ctx) {
					return err
				}
				wait.close()
				wait = p.newDueWait(ctx)
				continue
			}
			if !ok || ended {
				return nil
			}
		}
		index, ok := p.slots.takePlace()
		if !ok {
			full := now
			if index, now, ok = p.awaitPlace(ctx, now); !ok {
				return nil
			}
			held += now - full
		}
		if found, stopped, err := p.sendAgain(ctx, index, now); stopped || err != nil {
			return err
		} else if found {
			last, again = now, true
			continue
		}
		held = min(held, now-intended)
		own := now - intended - held
		last = now
		p.choose(&msg, n)
		next := p.nextDue(n + total)
		msg.More = next <= now-p.load.Start && p.slots.hasRoom() && n+total < limit
		if stopped, err := p.send(ctx, &msg, index, intended, now); stopped || err != nil {
			return err
		}
		if own > LateLimit && own > held { // mostly perfmq's own fault; Send may have waited until the load ended
			p.rec.Late()
		}
		n, due = n+total, next
	}
	return nil
}

// nextDue returns when message n is due, the next one of the producer.
func (p *Producer) nextDue(n uint64) time.Duration {
	if p.arrivals != nil {
		return p.arrivals.next()
	}
	own := n / uint64(p.load.Total) //nolint:gosec // not negative
	return p.load.Schedule.At(p.load.Draws.Skew.place(own, p.load.Index, p.load.Total))
}

// brokerWait returns the driver's wait for the broker within a hand-over that took that long.
func (p *Producer) brokerWait(took time.Duration) time.Duration {
	switch {
	case took < slowSend:
		return 0
	case p.waits != nil:
		w := p.waits.Waits()
		before := p.seenWaits
		p.seenWaits = w.Credit.Time + w.Socket.Time + w.Answer.Time
		return min(p.seenWaits-before, took)
	case took < slowUnknown:
		return 0
	default:
		p.rec.AddSendWait(took)
		return took
	}
}

func stopped(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// awaitPlace waits for a place from now on, and returns when it has one; ok is false when ctx ended.
func (p *Producer) awaitPlace(ctx context.Context, now time.Duration) (index uint32, then time.Duration, ok bool) {
	p.rec.Blocked()
	p.rec.Wait(stats.WaitSlot, now)
	if !p.slots.awaitPlace(ctx) {
		return 0, 0, false
	}
	now = p.clock.Now()
	p.rec.Waited(now)
	index, ok = p.slots.takePlace()
	return index, now, ok
}

// send hands a message over. stopped tells that ctx ended before the broker took it.
func (p *Producer) send(
	ctx context.Context, msg *driver.Message, index uint32, intended, actual time.Duration,
) (stopped bool, err error) {
	phase := p.prepare(msg, index, intended, actual)
	if err = p.handOver(ctx, msg, index); err == nil {
		place := &p.slots.places[index]
		p.rec.Handed(phase, place.actual-intended) // see Restamp
		if p.cfg.Trace != nil {
			p.trace(place, result.TraceSent, place.actual)
		}
		return false, nil
	}
	if !p.takeBack(msg.Slot) {
		return false, err
	}
	if p.cfg.Ledger != nil {
		p.cfg.Ledger.Unsent()
	}
	if ctx.Err() != nil { // it waited for the broker's leave, and the load is over
		p.rec.TakenBack(phase)
		p.rec.GivenUp(intended, actual, p.clock.Now())
		return true, nil //nolint:nilerr // the end of ctx is no failure
	}
	p.rec.Handed(phase, actual-intended)
	p.rec.Unsent(phase, driver.ClassOf(err), err)
	if p.cfg.Trace != nil {
		p.trace(&p.slots.places[index], driver.Failed.String(), p.clock.Now())
	}
	return false, err
}

// Seal ends the producer's ledger and returns its content; nil without one. Run has returned, or is taken for stuck in
// Send. Messages that end later are ignored.
func (p *Producer) Seal() *verify.Sent {
	if p.cfg.Ledger == nil {
		return nil
	}
	p.rec.InFlight() // reads counters that Run writes after the places: the last of both are to be seen here
	var inFlight []int64
	p.slots.inFlight(func(place *place) { inFlight = append(inFlight, place.number) })
	inFlight = append(inFlight, p.doubts.numbers()...)
	return p.cfg.Ledger.Seal(inFlight)
}

// Abandon notes that the messages in flight will have no answer: their connection is closed. Nothing is sent any more.
func (p *Producer) Abandon() {
	if p.cfg.Ledger != nil {
		p.slots.inFlight(func(place *place) { p.cfg.Ledger.Done(place.number, driver.Outcome{State: driver.Unknown}) })
	}
}

// prepare writes a message and its place, and counts it as about to be handed over.
func (p *Producer) prepare(msg *driver.Message, index uint32, intended, actual time.Duration) (phase stats.Phase) {
	phase = p.cfg.Phases.PhaseAt(intended)
	place := &p.slots.places[index]
	place.intended, place.actual = intended, actual
	if msg.Variant < len(p.cfg.Sizes) {
		place.size = p.cfg.Sizes[msg.Variant]
	}
	msg.Time = p.stampOf(phase, actual)
	if p.kept != nil {
		p.kept[index] = kept{first: actual, stamp: msg.Time, made: msg.Time, variant: msg.Variant, group: msg.Group}
	}
	if p.cfg.Templates != nil || p.cfg.Trace != nil {
		place.number = p.cfg.Filler.Count
		if p.cfg.Filler.Count++; p.cfg.Ledger != nil {
			place.number = int64(p.cfg.Ledger.Count()) //nolint:gosec // as Next will return it
		}
		if p.cfg.Templates != nil {
			p.fillFields(msg, place.number, msg.Time)
		}
	}
	switch {
	case p.cfg.Ledger != nil:
		msg.ID = p.cfg.Ledger.Next(msg.Variant)
		place.number = msg.ID.Number
	case p.cfg.Trace != nil:
		msg.ID = p.cfg.Trace.identify(place.number, msg)
	}
	if p.cfg.Requests != nil {
		p.cfg.Requests.begin(msg, index, phase, intended, actual)
	}
	p.last = actual
	p.rec.Begun(phase)
	return phase
}

// fillFields gives a message the body and the properties of a number, made at a time, if its variant has templates.
func (p *Producer) fillFields(msg *driver.Message, number, made int64) {
	t := &p.cfg.Templates[msg.Variant]
	msg.Body = p.cfg.Filler.Fill(t.Body, number, made)
	msg.Values = p.cfg.Filler.Values(t.Values)
	if p.cfg.Ledger != nil && msg.Body != nil {
		p.cfg.Ledger.SetBody(msg.Variant, msg.Body)
	}
}

// handOver gives a message to the driver, after prepare.
func (p *Producer) handOver(ctx context.Context, msg *driver.Message, index uint32) error {
	p.markInFlight(msg, index)
	err := p.producer.Send(ctx, msg)
	if err == nil {
		p.markHanded()
	}
	return err
}

// markInFlight marks a message as in flight before the driver gets it.
func (p *Producer) markInFlight(msg *driver.Message, index uint32) {
	if p.load.Timed {
		p.sending.Store(uint64(p.slots.nextSlot(index)))
	}
	msg.Slot = p.slots.beginMessage(index)
}

// markHanded notes that the driver has taken the message.
func (p *Producer) markHanded() {
	if p.load.Timed {
		p.sending.Store(0)
	}
}

// takeBack frees the place of a message that the driver has not taken. It returns false if the driver broke its
// contract, and has reported the message as well.
func (p *Producer) takeBack(slot driver.Slot) bool {
	if p.slots.endMessage(slot) == nil {
		p.rec.Stray()
		return false
	}
	if p.cfg.Requests != nil {
		p.cfg.Requests.takeBack(slot.Index())
	}
	p.slots.giveBack([]driver.Slot{slot})
	return true
}

// Restamp restarts the time of a message that has waited in Send for a connection. Send calls it. A message that is
// sent again keeps the time that it carries.
func (p *Producer) Restamp(msg *driver.Message) {
	index, now := msg.Slot.Index(), p.clock.Now()
	p.slots.places[index].actual, p.last = now, now
	if p.cfg.Requests != nil {
		p.cfg.Requests.restamp(index, now)
	}
	if p.kept != nil && p.kept[index].again {
		return
	}
	p.stamp = max(p.clock.Epoch(now), p.stamp)
	msg.Time = p.stamp
	if p.kept != nil {
		p.kept[index].first, p.kept[index].stamp = now, msg.Time
	}
}

// stampOf returns the time that a message carries, in microseconds since the Unix epoch. The first one after the
// warm-up carries a later one than those before it, so that consumers can tell them apart.
func (p *Producer) stampOf(phase stats.Phase, actual time.Duration) int64 {
	stamp := max(p.clock.Epoch(actual), p.stamp)
	if phase == stats.Measure && !p.measured {
		p.measured = true
		if from, to := p.cfg.Phases.warmup(); stamp == p.stamp && from < to {
			stamp++
		}
		p.cfg.Boundary.setFirst(p.cfg.ID, stamp)
	}
	p.stamp = stamp
	return stamp
}
