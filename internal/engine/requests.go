package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
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
	shared := !replies.Dynamic
	if replies.Dynamic {
		replies.Destination = spec.Destination
	} else {
		of := e.Factory.Capabilities.Of(replies.Destination.Kind)
		if of.Selector {
			replies.Selector = fmt.Sprintf("JMSCorrelationID LIKE '%d-%d-%%'", r.id, p.id)
		}
		if of.Release { // those of others, without a selector
			replies.Failing = driver.Release
		}
		shared = of.Release
	}
	d := r.driver(e)
	k, err := d.Consumer(ctx, replies)
	unsupported := func() bool { return replies.Selector != "" && driver.ClassOf(err) == driver.ClassUnsupported }
	if unsupported() && replies.Failing != driver.Accept { // this broker may select, but take nothing back
		selected := replies
		selected.Failing = driver.Accept
		if k, err = d.Consumer(ctx, selected); err == nil {
			shared = false
		}
	}
	if unsupported() { // by this broker
		replies.Selector = ""
		k, err = d.Consumer(ctx, replies)
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
	receiving, stop := context.WithCancel(context.Background())
	q.stop = stop
	var foreign int // one after the other
	go q.receive(receiving, func(d *driver.Delivery) driver.Verdict {
		if r.takeReply(p, d) || !shared {
			foreign = 0
			return driver.Accept
		}
		if foreign++; foreign > manyForeign { // the broker may deliver them to nobody else
			sleep(receiving, foreignPause)
		}
		return driver.Release
	})
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
	ended   chan struct{} // closed when replies are received no longer
	why     error         // the reason for ended; nil if that was asked for

	mu   sync.Mutex
	tell func(error) // see OnEnd; nil before, and after it was called
}

func (q *requester) receive(ctx context.Context, take func(*driver.Delivery) driver.Verdict) {
	q.why = q.replies.Run(ctx, take)
	close(q.ended)
	if q.why != nil {
		q.end(q.why)
	}
}

// Send implements [driver.Producer].
func (q *requester) Send(ctx context.Context, m *driver.Message) error {
	if isClosed(q.ended) && q.why != nil {
		return q.why
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
	q.mu.Lock()
	q.tell = tell
	q.mu.Unlock()
	if w, ok := q.Producer.(driver.Watched); ok {
		w.OnEnd(q.end)
	}
	if isClosed(q.ended) && q.why != nil {
		q.end(q.why)
	}
}

func (q *requester) end(why error) {
	q.mu.Lock()
	tell := q.tell
	q.tell = nil
	q.mu.Unlock()
	if tell != nil {
		tell(why)
	}
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
func (w *wrapped) Host() string { return hostOf(w.worker) }

func hostOf(worker any) string {
	if l, ok := worker.(driver.Located); ok {
		return l.Host()
	}
	return ""
}

// Waiter is for [load.WaiterOf].
func (w *wrapped) Waiter() driver.Waiter { return load.WaiterOf(w.worker) }

// Counters implements [driver.Counting].
func (w *wrapped) Counters() (list []driver.Counter) {
	for _, worker := range []any{w.worker, w.other} {
		if c, ok := worker.(driver.Counting); ok {
			list = stats.AddCounters(list, c.Counters())
		}
	}
	return list
}

// awaitReplies waits until all requests have a reply or have timed out. What ends the wait ends the requests.
func (r *run) awaitReplies(ctx context.Context) {
	var longest time.Duration
	for _, p := range r.producers {
		if p.requests != nil {
			longest = max(longest, p.spec.ReplyTimeout)
		}
	}
	if longest == 0 {
		return
	}
	r.waitFor(ctx, time.Now().Add(longest+time.Second), func() bool {
		return !slices.ContainsFunc(r.producers, func(p *producer) bool {
			return p.requests != nil && p.requests.Open() > 0
		})
	})
	for _, p := range r.producers {
		if p.requests != nil {
			r.repliesCut = r.repliesCut || p.requests.Open() > 0
			p.load.EndReplies()
		}
	}
}

// maxReplies is the number of replies of a responder that the broker may not have confirmed.
const maxReplies = 1024

// openResponder opens the producer of replies, then the consumer of requests.
func (r *run) openResponder(
	ctx context.Context, e *Endpoint, c *consumer, spec driver.ConsumerSpec,
) (driver.Consumer, error) {
	s := &responder{
		run: r, of: c, awaiting: make([]reply, maxReplies), room: make(chan struct{}, 1), over: make(chan struct{}),
	}
	for i := range s.awaiting {
		s.free = append(s.free, uint32(i)) //nolint:gosec // below maxReplies
	}
	replies := driver.ProducerSpec{
		Connection: spec.Connection, Destination: spec.Destination, Name: spec.Name + "-replies",
		MaxPending: maxReplies, Anonymous: true, Variants: []driver.Variant{{Body: c.reply, Priority: -1}},
	}
	if c.answers == nil {
		replies.Origin = driver.ID{Run: r.id, Producer: int64(c.answersAs()), Number: driver.Unnumbered}
	}
	var err error
	if s.replies, err = r.driver(e).Producer(ctx, replies, s); err != nil {
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
	sending context.Context //nolint:containedctx // of Run, without its end: a request that came is answered

	mu       sync.Mutex
	awaiting []reply // by place
	free     []uint32
	room     chan struct{}

	over chan struct{} // closed when no more replies can be sent
	why  error         // the reason for over
}

// reply is a reply that the broker has not confirmed.
type reply struct {
	generation uint32
	number     int64 // in the verification
	due        stats.Phase
}

// Run implements [driver.Consumer].
func (s *responder) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	s.sending = sending
	if w, ok := s.replies.(driver.Watched); ok {
		var once sync.Once
		w.OnEnd(func(why error) {
			once.Do(func() {
				s.why = why
				close(s.over)
				stop()
			})
		})
	}
	defer context.AfterFunc(ctx, func() { // the reply that is being sent may wait in vain
		time.AfterFunc(closeTimeout, abandon)
	})()
	err := s.Consumer.Run(receiving, func(d *driver.Delivery) driver.Verdict {
		began := s.run.clock.Now()
		verdict := deliver(d)
		if verdict == driver.Accept {
			s.answer(d, began)
		}
		return verdict
	})
	if err == nil && ctx.Err() == nil && isClosed(s.over) {
		return s.why
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
	place, ok := s.take()
	if !ok {
		rec.Add(due, result.UnansweredRequests, 1)
		return
	}
	m := driver.Message{To: d.ReplyTo, Correlation: d.ReplyID(), Time: s.run.clock.Epoch(s.run.clock.Now())}
	if ledger != nil {
		m.ID = ledger.Next(0)
	}
	s.mu.Lock()
	a := &s.awaiting[place]
	a.generation++
	a.number, a.due = m.ID.Number, due
	m.Slot = driver.NewSlot(place, a.generation)
	s.mu.Unlock()
	s.of.answered.Store(m.Time)
	if err := s.replies.Send(s.sending, &m); err != nil {
		if ledger != nil {
			ledger.Unsent()
		}
		s.giveBack(m.Slot)
		rec.Add(due, result.UnansweredRequests, 1)
		return
	}
	rec.Record(due, result.Service, s.run.clock.Now()-began)
}

// take returns a free place once there is one; ok is false if no more replies can be sent.
func (s *responder) take() (place uint32, ok bool) {
	for {
		s.mu.Lock()
		if n := len(s.free); n > 0 {
			place = s.free[n-1]
			s.free = s.free[:n-1]
			s.mu.Unlock()
			return place, true
		}
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-s.over:
			return 0, false
		case <-s.sending.Done():
			return 0, false
		}
	}
}

// giveBack frees the place of a reply, and returns that reply; false if it has ended before.
func (s *responder) giveBack(slot driver.Slot) (a reply, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(slot.Index()) >= len(s.awaiting) || s.awaiting[slot.Index()].generation != slot.Generation() {
		return a, false
	}
	a = s.awaiting[slot.Index()]
	s.awaiting[slot.Index()].generation++
	s.free = append(s.free, slot.Index())
	select {
	case s.room <- struct{}{}:
	default:
	}
	return a, true
}

// Done implements [driver.Completions].
func (s *responder) Done(slot driver.Slot, o driver.Outcome) {
	a, ok := s.giveBack(slot)
	if !ok {
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
}

// DoneAll implements [driver.Completions].
func (s *responder) DoneAll(slots []driver.Slot, o driver.Outcome) {
	for _, slot := range slots {
		s.Done(slot, o)
	}
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
