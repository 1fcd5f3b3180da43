package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/reconnect"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// repliesPlace is the place of the replies to the requests sent to a place, for the verification.
func repliesPlace(of place) place {
	of.destination.Name += " (replies)"
	return of
}

// openRequester opens the consumer of replies, then the producer of requests, on one connection. A dynamic queue goes
// with that: the next connection has another one.
func (r *run) openRequester(
	ctx context.Context, g *plan.Group, e *Endpoint, p *producer, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	replies := *g.Replies()
	replies.Connection, replies.Name = spec.Connection, spec.Name+"-replies"
	tries := []*driver.ConsumerSpec{&replies} // what a broker does not support is tried without
	if replies.Dynamic {
		replies.Destination = spec.Destination
	} else {
		of := e.Factory.Capabilities.Of(replies.Destination.Kind)
		if of.Release { // the replies of others, without a selector
			replies.Failing = driver.Release
		}
		if of.Selector {
			selected, taking := replies, replies
			selected.Selector = fmt.Sprintf("JMSCorrelationID LIKE '%d-%d-%%'", r.id, p.id)
			taking.Selector, taking.Failing = selected.Selector, driver.Accept
			tries = []*driver.ConsumerSpec{&selected, &taking, &replies}
		}
	}
	d, of := r.driver(e), tries[0]
	k, err := d.Consumer(ctx, *of)
	for len(tries) > 1 && driver.ClassOf(err) == driver.ClassUnsupported {
		tries = tries[1:]
		of = tries[0]
		k, err = d.Consumer(ctx, *of)
	}
	if err != nil {
		return nil, err
	}
	q := &requester{replies: k, ended: make(chan struct{})}
	addressed, ok := k.(driver.Addressed)
	if ok {
		q.address = addressed.Address()
		q.Producer, err = d.Producer(ctx, spec, done)
	} else {
		err = errors.New("the driver does not tell the address of a queue for replies")
	}
	if err != nil {
		_ = k.Close(ctx)
		return nil, err
	}
	q.wrapped = wrapped{q.Producer, k}
	over, end := context.WithCancelCause(context.Background())
	receiving, stop := context.WithCancel(context.Background())
	q.over, q.stop = over, stop
	var foreign int // one after the other
	take := func(d *driver.Delivery) driver.Verdict {
		if r.takeReply(p, d) || of.Failing != driver.Release {
			foreign = 0
			return driver.Accept
		}
		if foreign++; foreign > manyForeign { // the broker may deliver them to nobody else
			sleep(receiving, foreignPause)
		}
		return driver.Release
	}
	go func() {
		defer close(q.ended)
		if err := k.Run(receiving, take); err != nil {
			end(err)
		}
	}()
	return q, nil
}

// A requester that gets nothing but this many replies of others gives back one after each pause.
const (
	manyForeign  = 100
	foreignPause = 10 * time.Millisecond
)

// takeReply takes a reply that came to a requester. It may be to the request of another one in this process, if they
// share a destination. It returns false for the reply to a request of others.
func (r *run) takeReply(p *producer, d *driver.Delivery) bool {
	id := driver.ParseID(d.Correlation)
	switch {
	case len(d.Correlation) == 0:
		p.rec.Add(stats.Measure, result.UncorrelatedReplies, 1)
	case id.Run == r.id && id.Number >= 0 && r.requesters[id.Producer] != nil:
		if p.replies != nil && d.ID != (driver.ID{}) {
			p.replies.Check(d, r.clock.Epoch(r.clock.Now()))
		}
		r.requesters[id.Producer].requests.Reply(id)
	default:
		p.rec.Add(stats.Measure, result.ForeignReplies, 1)
		return false
	}
	return true
}

// requester is a producer of requests with the consumer of their replies. One ends with the other.
type requester struct {
	driver.Producer
	wrapped
	replies driver.Consumer
	address string
	stop    context.CancelFunc
	over    context.Context //nolint:containedctx // ends when replies cannot be received any more, with the cause
	ended   chan struct{}   // closed when replies are received no longer
}

// Send implements [driver.Producer].
func (q *requester) Send(ctx context.Context, m *driver.Message) error {
	if isClosed(q.over.Done()) {
		return context.Cause(q.over)
	}
	m.ReplyTo = q.address
	return q.Producer.Send(ctx, m)
}

// Close implements [driver.Producer].
func (q *requester) Close(ctx context.Context) error {
	err := q.Producer.Close(ctx)
	q.stop()
	select {
	case <-q.ended:
	case <-ctx.Done():
		return cmp.Or(err, ctx.Err())
	}
	return cmp.Or(err, q.replies.Close(ctx))
}

// OnEnd implements [driver.Watched].
func (q *requester) OnEnd(tell func(error)) {
	var once sync.Once
	end := func(why error) { once.Do(func() { tell(why) }) }
	if w, ok := q.Producer.(driver.Watched); ok {
		w.OnEnd(end)
	}
	context.AfterFunc(q.over, func() { end(context.Cause(q.over)) })
}

// Flush implements [driver.Flusher].
func (q *requester) Flush(ctx context.Context) error {
	if f, ok := q.Producer.(driver.Flusher); ok {
		return f.Flush(ctx)
	}
	return nil
}

// wrapped reports for a worker of a driver, and for a second one behind it.
type wrapped struct{ worker, other any }

// Host implements [driver.Located].
func (w *wrapped) Host() string {
	if l, ok := w.worker.(driver.Located); ok {
		return l.Host()
	}
	return ""
}

// Waiter is for [load.WaiterOf].
func (w *wrapped) Waiter() driver.Waiter { return load.WaiterOf(w.worker) }

// Counters implements [driver.Counting].
func (w *wrapped) Counters() []driver.Counter {
	var both reconnect.Past
	both.Add(w.worker)
	both.Add(w.other)
	return both.Counters
}

// awaitReplies waits until all requests have a reply or have timed out. What ends the wait ends the requests.
func (r *run) awaitReplies(ctx context.Context) {
	var longest time.Duration
	for _, p := range r.requesters {
		longest = max(longest, p.spec.ReplyTimeout)
	}
	open := func() (n int) {
		for _, p := range r.requesters {
			n += p.requests.Open()
		}
		return n
	}
	r.waitFor(ctx, time.Now().Add(longest+time.Second), func() bool { return open() == 0 })
	r.repliesCut = r.repliesCut || open() > 0
	for _, p := range r.requesters {
		p.load.EndReplies()
	}
}

// maxReplies is the number of replies of a responder that the broker may not have confirmed.
const maxReplies = 1024

// openResponder opens the producer of replies, then the consumer of requests.
func (r *run) openResponder(
	ctx context.Context, e *Endpoint, c *consumer, spec driver.ConsumerSpec,
) (driver.Consumer, error) {
	s := &responder{run: r, of: c, awaiting: make([]reply, maxReplies), free: make(chan uint32, maxReplies)}
	for i := range uint32(maxReplies) {
		s.free <- i
	}
	replies := driver.ProducerSpec{
		Connection: spec.Connection, Destination: spec.Destination, Name: spec.Name + "-replies",
		MaxPending: maxReplies, Anonymous: true, Variants: []driver.Variant{{Body: c.reply, Priority: -1}},
	}
	if c.answers == nil {
		replies.Origin = driver.ID{Run: r.id, Producer: int64(c.answersAs()), Number: driver.Unnumbered}
	}
	var err error
	if s.replies, err = r.driver(e).Producer(ctx, replies, driver.DoneFunc(s.done)); err != nil {
		return nil, err
	}
	if s.Consumer, err = r.driver(e).Consumer(ctx, spec); err != nil {
		_ = s.replies.Close(ctx)
		return nil, err
	}
	s.wrapped = wrapped{s.Consumer, s.replies}
	return s, nil
}

// responder is a consumer of requests with the producer of their replies. A reply is sent before its request is
// settled. The consumer ends with the producer.
type responder struct {
	driver.Consumer
	wrapped
	run     *run
	of      *consumer
	replies driver.Producer
	sending context.Context //nolint:containedctx // of Run: a request that came before its end is answered

	awaiting []reply     // by place
	free     chan uint32 // places, with room for all
}

// reply is a reply that the broker has not confirmed.
type reply struct {
	generation atomic.Uint32 // odd while it is in flight
	number     int64         // in the verification
	due        stats.Phase
}

// Run implements [driver.Consumer].
func (s *responder) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	sending, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	s.sending = sending
	if w, ok := s.replies.(driver.Watched); ok {
		w.OnEnd(func(why error) {
			abandon(why)
			stop()
		})
	}
	defer context.AfterFunc(ctx, func() { // the reply that is being sent may wait in vain
		time.AfterFunc(closeTimeout, func() { abandon(nil) })
	})()
	err := s.Consumer.Run(receiving, func(d *driver.Delivery) driver.Verdict {
		began := s.run.clock.Now()
		verdict := deliver(d)
		if verdict == driver.Accept {
			s.answer(d, began)
		}
		return verdict
	})
	if err == nil && ctx.Err() == nil {
		return context.Cause(sending)
	}
	return err
}

// answer sends the reply to a request that came at that time.
func (s *responder) answer(d *driver.Delivery, began time.Duration) {
	rec, ledger := s.of.rec, s.of.answers
	due := s.run.phases.PhaseAt(began)
	if len(d.ReplyTo) == 0 {
		rec.Add(due, result.Unanswerable, 1)
		return
	}
	var place uint32
	select {
	case place = <-s.free:
	case <-s.sending.Done():
		rec.Add(due, result.UnansweredRequests, 1)
		return
	}
	m := driver.Message{To: d.ReplyTo, Correlation: d.ReplyID(), Time: s.run.clock.Epoch(s.run.clock.Now())}
	if ledger != nil {
		m.ID = ledger.Next(0)
	}
	a := &s.awaiting[place]
	a.number, a.due = m.ID.Number, due
	m.Slot = driver.NewSlot(place, a.generation.Add(1))
	s.of.answered.Store(m.Time)
	if err := s.replies.Send(s.sending, &m); err != nil {
		if ledger != nil {
			ledger.Unsent()
		}
		if s.end(m.Slot) != nil {
			s.free <- place
		}
		rec.Add(due, result.UnansweredRequests, 1)
		return
	}
	rec.Record(due, result.Service, s.run.clock.Now()-began)
}

// end ends a reply and returns it; nil if it has ended before. Its place is free for others after that.
func (s *responder) end(slot driver.Slot) *reply {
	if uint64(slot.Index()) >= uint64(len(s.awaiting)) || slot.Generation()%2 == 0 {
		return nil
	}
	a := &s.awaiting[slot.Index()]
	if !a.generation.CompareAndSwap(slot.Generation(), slot.Generation()+1) {
		return nil
	}
	return a
}

// done is the [driver.Completions] of the replies.
func (s *responder) done(slot driver.Slot, o driver.Outcome) {
	a := s.end(slot)
	if a == nil {
		return
	}
	as := result.Answered
	if o.State != driver.Accepted {
		as = result.UnansweredRequests
	}
	s.of.rec.Add(a.due, as, 1)
	if s.of.answers != nil {
		s.of.answers.Done(a.number, o)
	}
	s.free <- slot.Index()
}

// Close implements [driver.Consumer].
func (s *responder) Close(ctx context.Context) error {
	return errors.Join(s.replies.Close(ctx), s.Consumer.Close(ctx))
}

// Probe implements [driver.Prober].
func (s *responder) Probe(ctx context.Context) error {
	if p, ok := s.Consumer.(driver.Prober); ok {
		return p.Probe(ctx)
	}
	return nil
}

// prepareRequester makes a producer one of requests, if its messages are such.
func (r *run) prepareRequester(p *producer) {
	if !p.spec.Requests {
		return
	}
	p.rec.SetRequests()
	p.requests = load.NewRequests(r.id, p.id)
	r.requesters[int64(p.id)] = p
	if r.verify == nil {
		return
	}
	at := repliesPlace(p.place())
	if r.verify.replies[at] == nil {
		r.verify.replies[at] = verify.NewTracker()
	}
	p.replies = verify.NewChecker(r.verify.replies[at], 0)
}

// prepareResponder makes a consumer of a group one that answers, if the group does.
func (r *run) prepareResponder(c *consumer, g *plan.Group) {
	if !g.Role.Responds() {
		return
	}
	c.rec.SetResponds()
	c.reply = make([]byte, g.ReplySize)
	if r.verify != nil {
		c.answers = verify.NewLedger(r.id, c.answersAs(), repliesPlace(c.place()).named(), verify.BodySum(c.reply))
	}
}

// answersAs is the number under which a consumer sends replies, above those of all producers.
func (c *consumer) answersAs() int { return 1_000_000_000 + c.number }

// addReplies adds the replies sent and received to this process's side of the verification.
func (r *run) addReplies(side *verify.Side) {
	now := r.clock.Epoch(r.clock.Now())
	for _, c := range r.consumers {
		if c.answers != nil {
			s := c.answers.Seal(nil)
			s.Started, s.Ended = r.clock.Epoch(0), c.answered.Load()
			side.Sent = append(side.Sent, s)
		}
	}
	for at, tracker := range r.verify.replies {
		part := tracker.Seal()
		part.SetName(at.named(), "")
		part.Opened, part.Ended, part.Drained = r.clock.Epoch(0), now, !r.repliesCut
		side.Received = append(side.Received, part)
	}
}

// findReplies adds the findings about requests and replies.
func findReplies(s *stats.Summary) {
	n := s.Total.Values()
	s.Find("timed-out", "", n[result.TimedOut], n[result.TimedOut], n[result.TimedOut]+n[result.Replies])
	for _, f := range []struct {
		kind string
		of   result.Counter
	}{
		{"replies-unconfirmed", result.UnansweredRequests},
		{"replies-late", result.LateReplies},
		{"replies-duplicated", result.DuplicateReplies},
		{"replies-foreign", result.ForeignReplies},
		{"replies-uncorrelated", result.UncorrelatedReplies},
		{"unanswerable", result.Unanswerable},
	} {
		s.Find(f.kind, "", n[f.of], n[f.of])
	}
}

// judged returns a side as this process can judge it alone: without replies, unless they are sent and received here.
func (r *run) judged(side *verify.Side) *verify.Side {
	responds := slices.ContainsFunc(r.consumers, func(c *consumer) bool { return c.answers != nil })
	if responds == (len(r.verify.replies) > 0) {
		return side
	}
	alone := *side
	if responds {
		alone.Sent = nil
	} else {
		alone.Received = nil
	}
	return &alone
}
