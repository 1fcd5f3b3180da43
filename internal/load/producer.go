package load

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// LateLimit is how late a message may leave, with nothing holding it up, before it counts as sent late through the
// tester's own fault. The runtime wakes sleepers up to 1 ms late; a tester that is late by more lacks processor time.
const LateLimit = 5 * time.Millisecond

const (
	// slowSend is how long handing a message over takes at least if the driver waited for the broker. Below it nobody asks.
	slowSend = 100 * time.Microsecond
	// slowUnknown is the same for drivers that cannot tell what they wait for: a longer one counts as a wait for the broker,
	// a shorter one as the tester's own work.
	slowUnknown = time.Millisecond
)

// flushTimeout bounds the hand-over of what ends a transaction that is not full. It does not include the broker's answer.
const flushTimeout = 5 * time.Second

// ProducerConfig says what one producer of a run sends and when.
type ProducerConfig struct {
	Index, Total int           // this is producer Index of Total; it sends the messages n with n mod Total = Index
	Rate         Rate          // of all producers together; zero for the closed loop
	Count        uint64        // total of all producers; 0 for no limit
	Until        time.Duration // what is due from then on is not sent, open loop only; 0 for no limit. Run waits for its ctx
	Warmup       time.Duration // what is due before belongs to the warm-up
	Boundary     *Boundary     // is told where the warm-up's messages end; may be nil
	MaxPending   int           // slots, at least 1
	Body         []byte
	Precise      bool           // sleep by the operating system's best timer; not under a fake clock
	Ledger       *verify.Ledger // numbers the messages; nil if nothing is to be verified
}

// Producer makes the load of one driver.Producer.
type Producer struct {
	cfg      ProducerConfig
	clock    *Clock
	rec      *stats.ProducerRecorder
	producer driver.Producer
	waits    driver.Waiter // the same, if it knows what it waits for
	held     time.Duration // for how long waits has held it up, as of the last look

	stamp    int64 // the time that the last message carries
	measured bool  // a message was due after the warm-up

	free  chan driver.Slot // slots given back
	fresh int              // slots from here on were never used
	times []slotTimes      // by slot; written before Send, read by Done
	sent  []int64          // by slot, with a ledger: the number of the message; written before Send, read by Done
}

type slotTimes struct{ intended, actual time.Duration }

// NewProducer returns a producer. Give its Done to the driver, and what the driver returns to Attach, before Run.
func NewProducer(cfg ProducerConfig, clock *Clock, rec *stats.ProducerRecorder) *Producer {
	p := &Producer{
		cfg: cfg, clock: clock, rec: rec,
		free:  make(chan driver.Slot, cfg.MaxPending),
		times: make([]slotTimes, cfg.MaxPending),
	}
	if cfg.Ledger != nil {
		p.sent = make([]int64, cfg.MaxPending)
	}
	return p
}

// Attach sets what the messages are sent with.
func (p *Producer) Attach(producer driver.Producer) {
	p.producer = producer
	p.waits, _ = producer.(driver.Waiter)
}

// phase returns the phase to which a message belongs that is due then.
func (p *Producer) phase(due time.Duration) stats.Phase {
	if due < p.cfg.Warmup {
		return stats.Warmup
	}
	return stats.Measure
}

// Done takes the outcome of a message; it is a driver.Done.
func (p *Producer) Done(slot driver.Slot, o driver.Outcome) {
	now := p.clock.Now()
	t := p.times[slot]
	if p.sent != nil && (o.State != driver.Accepted || o.Withheld) {
		p.cfg.Ledger.Done(p.sent[slot], o)
	}
	p.rec.Done(p.phase(t.intended), o, t.intended, t.actual, now)
	p.free <- slot // has room for all slots: does not block
}

// Seal ends the producer's ledger and returns what it says; nil without one. Run has returned, or is taken for stuck in
// Send. Messages that end later are ignored.
func (p *Producer) Seal() *verify.Sent {
	if p.sent == nil {
		return nil
	}
	p.rec.InFlight() // reads what Run writes after fresh and sent: the last of both are to be seen here
	ended := make([]bool, p.fresh)
	for len(p.free) > 0 {
		ended[<-p.free] = true
	}
	var inFlight []int64
	for slot, ok := range ended {
		if !ok {
			inFlight = append(inFlight, p.sent[slot])
		}
	}
	return p.cfg.Ledger.Seal(inFlight)
}

// Run sends until ctx ends or the producer's share of the count is sent; then it returns nil. It returns an error if the
// driver refused a message: the producer cannot go on. Messages may still be in flight when it returns.
func (p *Producer) Run(ctx context.Context) error {
	defer func() { p.rec.Wait(p.clock.Now()) }() // for nothing, but it is not busy any more
	run := p.openLoop
	if p.cfg.Rate.IsZero() {
		run = p.closedLoop
	}
	if err := run(ctx); err != nil {
		return err
	}
	return p.flush(ctx)
}

// flush lets messages end that wait for others, such as those of a transaction that is not full.
func (p *Producer) flush(ctx context.Context) error {
	f, ok := p.producer.(driver.Flusher)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	return f.Flush(ctx)
}

func (p *Producer) closedLoop(ctx context.Context) error {
	msg := driver.Message{Body: p.cfg.Body}
	last := p.clock.Now() // when the previous message was about to be handed over
	for n := uint64(p.cfg.Index); p.cfg.Count == 0 || n < p.cfg.Count; n += uint64(p.cfg.Total) {
		if stopped(ctx) {
			return nil
		}
		slot, ok := p.take()
		now := p.clock.Now()
		p.heldUp(now - last)
		if !ok {
			if slot, now, ok = p.await(ctx, now); !ok {
				return nil
			}
		}
		last = now
		if stopped, err := p.send(ctx, &msg, slot, now, now); stopped || err != nil {
			return err
		}
	}
	return nil
}

func (p *Producer) openLoop(ctx context.Context) error {
	msg := driver.Message{Body: p.cfg.Body}
	wait := newWaiter(ctx, p.clock, p.cfg.Precise)
	defer wait.close()
	var held time.Duration // how much of its delay the producer owes to the broker and to max-pending
	last := p.clock.Now()  // when the previous message was about to be handed over
	for n := uint64(p.cfg.Index); p.cfg.Count == 0 || n < p.cfg.Count; n += uint64(p.cfg.Total) {
		if stopped(ctx) {
			return nil
		}
		intended, now := p.cfg.Rate.At(n), p.clock.Now()
		held += p.heldUp(now - last)
		if p.cfg.Until > 0 && intended >= p.cfg.Until {
			p.rec.Wait(now)
			<-ctx.Done() // the load goes on until then, but nothing more is due
			return nil
		}
		if now < intended {
			held = 0
			p.rec.Wait(now)
			if !wait.until(intended) {
				return nil
			}
			now = p.clock.Now()
			p.rec.Waited(now)
		}
		slot, ok := p.take()
		if !ok {
			full := now
			if slot, now, ok = p.await(ctx, now); !ok {
				return nil
			}
			held += now - full
		}
		held = min(held, now-intended)
		if own := now - intended - held; own > LateLimit && own > held { // mostly through the tester's own fault
			p.rec.Late()
		}
		last = now
		if stopped, err := p.send(ctx, &msg, slot, intended, now); stopped || err != nil {
			return err
		}
	}
	return nil
}

// heldUp returns how much of a hand-over that took that long was spent waiting for the broker.
func (p *Producer) heldUp(took time.Duration) time.Duration {
	switch {
	case took < slowSend:
		return 0
	case p.waits != nil:
		w := p.waits.Waits()
		before := p.held
		p.held = w.Credit.Time + w.Socket.Time + w.Answer.Time
		return min(p.held-before, took)
	case took < slowUnknown:
		return 0
	default:
		p.rec.HeldUp(took)
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

// take returns a free slot if there is one.
func (p *Producer) take() (slot driver.Slot, ok bool) {
	select {
	case slot = <-p.free:
		return slot, true
	default:
	}
	if p.fresh < p.cfg.MaxPending {
		p.fresh++
		return driver.Slot(p.fresh - 1), true
	}
	return 0, false
}

// await waits for a free slot from now on, and returns when it has one; ok is false when ctx ended.
func (p *Producer) await(ctx context.Context, now time.Duration) (slot driver.Slot, then time.Duration, ok bool) {
	p.rec.Blocked()
	p.rec.Wait(now)
	select {
	case slot = <-p.free:
		now = p.clock.Now()
		p.rec.Waited(now)
		return slot, now, true
	case <-ctx.Done():
		return 0, 0, false
	}
}

// send hands a message over. stopped tells that ctx ended before the broker took it.
func (p *Producer) send(
	ctx context.Context, msg *driver.Message, slot driver.Slot, intended, actual time.Duration,
) (stopped bool, err error) {
	due := p.phase(intended)
	p.times[slot] = slotTimes{intended: intended, actual: actual}
	msg.Slot, msg.Time = slot, p.stampOf(due, actual)
	if p.sent != nil {
		msg.ID = p.cfg.Ledger.Next()
		p.sent[slot] = msg.ID.Number
	}
	p.rec.Sent(due)
	if err = p.producer.Send(ctx, msg); err == nil {
		p.rec.Handed(due, actual-intended)
		return false, nil
	}
	if p.sent != nil {
		p.cfg.Ledger.Unsent()
	}
	defer func() { p.free <- slot }()
	if ctx.Err() != nil { // it waited for the broker's leave, and the load is over
		p.rec.NotSent(due)
		return true, nil
	}
	p.rec.Handed(due, actual-intended)
	p.rec.Unsent(due, driver.ClassOf(err), err)
	return false, err
}

// stampOf returns the time that a message carries, in microseconds since the Unix epoch. The first one after the warm-up
// carries a later one than those before it, so that consumers can tell them apart.
func (p *Producer) stampOf(due stats.Phase, actual time.Duration) int64 {
	stamp := max(p.clock.Epoch(actual), p.stamp)
	if due == stats.Measure && !p.measured {
		p.measured = true
		if stamp == p.stamp {
			stamp++
		}
		p.cfg.Boundary.set(p.cfg.Index, stamp)
	}
	p.stamp = stamp
	return stamp
}
