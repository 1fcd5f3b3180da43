package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
)

// verification is the additional state of a run with plan.Verify.
type verification struct {
	ledgers map[place][]*verify.Ledger
	replies map[place]*verify.Tracker // received by requesters
	before  os.FileInfo               // the file at plan.VerifyFile when the run began; nil if there was none

	looked time.Duration // when judgeWindow was called last
	lost   string        // the messages that it found lost, as text

	unanswered bool // a probe was unanswered when the consumers ended

	probing     context.Context //nolint:containedctx // ends the probes of a run
	stopProbing context.CancelFunc
	probes      sync.WaitGroup
}

// arrivals measures the time without a message at a subscription. Time in which this process or its machine was paused
// does not count, because messages that arrived then are not received yet. To exclude a stalled broker, it is probed
// for an answer, and then has some time to deliver.
type arrivals struct {
	quiet[int64] // the sign is the time of the last message, in microseconds since the Unix epoch

	asking   atomic.Bool  // a probe is unanswered
	answered atomic.Int64 // time of the last consumer's answer
}

// inVain reports whether no message arrived for at least patience (quietly), and whether the broker has also answered a
// probe since the last message and had a quarter of patience to deliver (proven).
func (v *arrivals) inVain(now int64, patience time.Duration) (quietly, proven bool) {
	answered := v.answered.Load()
	quietly = patience > 0 && v.lasted >= patience
	return quietly, quietly && answered > v.seen && time.Duration(now-answered)*time.Microsecond >= patience/4
}

// newVerification returns the verification of a run; path is the file for its side.
func newVerification(path string) *verification {
	before, _ := os.Stat(path)
	v := &verification{
		ledgers: map[place][]*verify.Ledger{}, replies: map[place]*verify.Tracker{}, before: before,
	}
	v.renewProbes()
	return v
}

// named returns the destination under a name that is unique over all sites.
func (p place) named() driver.Destination {
	d := p.destination
	if p.site != "" {
		d.Name += " at " + p.site
	}
	return d
}

// progress returns the counts for snapshots.
func (r *run) progress() (sum result.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subs {
		p := s.tracker.Progress(r.ownMessages(), r.verify.ledgers[s.place]...)
		sum.Add(&p)
	}
	return sum
}

// setReceiving records the consumers that receive from now on; nil for none. What others hold is not lost.
func (r *run) setReceiving(consumers []*consumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subs {
		s.receiving = nil
		for _, c := range s.consumers {
			if !s.over && c.ended != nil && slices.Contains(consumers, c) {
				s.receiving = append(s.receiving, c.ended)
			}
		}
	}
}

// judgeWindow judges the messages whose window has ended. The sampler calls it at the end of each interval. The window
// stands still while a consumer of the subscription is not connected, as its broker keeps the messages, and in a pause
// of perfmq, which has not read what came.
func (r *run) judgeWindow() {
	if r.plan.VerifyWindow == 0 {
		return
	}
	v, now := r.verify, r.clock.Now()
	elapsed := min(now-v.looked, 2*sampleInterval)
	v.looked, v.lost = now, ""
	disconnected := r.outages.Disconnected()
	r.mu.Lock()
	defer r.mu.Unlock()
	subs := map[place][]verify.Watched{}
	for _, s := range r.subs {
		w := verify.Watched{Tracker: s.tracker, Sent: s.sent, Selective: s.selective()}
		if s.receives(disconnected) {
			w.Elapsed = elapsed
		}
		subs[s.place] = append(subs[s.place], w)
	}
	var lost uint64
	var texts []string
	for p, ledgers := range v.ledgers {
		n, first := verify.Turn(r.plan.VerifyWindow, ledgers, subs[p])
		if lost += n; n > 0 {
			texts = append(texts, verify.Names(first)+" on "+safetext.URLs(p.named().String()))
		}
	}
	if lost > 0 {
		slices.Sort(texts)
		v.lost = fmt.Sprintf("%d not received for %s: %s", lost, r.plan.VerifyWindow, words.First(texts, maxPlaces, "; "))
	}
}

// maxPlaces is the number of destinations of lost messages that a line names.
const maxPlaces = 3

// ownMessages returns the run whose messages are not foreign: this one; 0 for any if this one sends none.
func (r *run) ownMessages() int64 {
	if !r.role.Produces() {
		return 0
	}
	return r.id
}

// missingAt returns the number of messages known to be missing at a subscription.
func (v *verification) missingAt(s *subscription) uint64 {
	return s.tracker.Open(v.ledgers[s.place], s.sent)
}

// patience is the time without a message after which a consumer stops waiting; 0 if consumers do not wait.
func (r *run) patience() time.Duration {
	if r.role == plan.Consumer {
		return quietTime
	}
	return min(quietTime, r.plan.DrainTimeout/2)
}

// watchArrivals checks the subscriptions for arrivals. One goroutine calls it, at least every watchInterval during the
// drain or, in a run that only consumes, during the whole load.
func (r *run) watchArrivals() {
	if r.verify == nil {
		return
	}
	for _, s := range r.subs {
		if s.over || !alive(s.consumers) {
			continue
		}
		v := s.arrivals
		v.most = max(r.patience()/8, 2*pollInterval) // a busy machine may call late
		if v.look(s.tracker.Last()) >= r.patience()/2 && v.answered.Load() <= v.seen && v.asking.CompareAndSwap(false, true) {
			r.verify.probes.Go(func() { r.probe(v, s.consumers) })
		}
	}
}

// probe asks the broker for an answer through each consumer of a subscription. Consumers without probes count as
// answered.
func (r *run) probe(v *arrivals, consumers []*consumer) {
	defer v.asking.Store(false)
	ctx, cancel := context.WithTimeout(r.verify.probing, probeTimeout)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(openAtOnce)
	for _, c := range consumers {
		prober, ok := c.driver.(driver.Prober)
		if !ok || !alive([]*consumer{c}) {
			continue
		}
		g.Go(func() error { return closer{close: prober.Probe}.shut(ctx) })
	}
	if g.Wait() == nil {
		v.answered.Store(r.clock.Epoch(r.clock.Now()))
	}
}

// recordEnds records the end of the consumers of subs at this moment. They are drained if arrivals.inVain proves it,
// the user did not interrupt the wait, a consumer is alive, and none has failed: the broker may still hold messages for
// one that has, such as the queues that a consumer of RocketMQ has locked.
func (r *run) recordEnds(ctx context.Context, subs []*subscription) {
	if r.verify == nil {
		return
	}
	r.watchArrivals()
	now, patience := r.clock.Epoch(r.clock.Now()), r.patience()
	for _, s := range subs {
		if s.over || s.ended > 0 && !alive(s.consumers) {
			continue // already recorded
		}
		quietly, waited := s.arrivals.inVain(now, patience)
		r.verify.unanswered = r.verify.unanswered || quietly && !waited
		s.ended, s.drained = now, waited && ctx.Err() == nil && alive(s.consumers) &&
			!slices.ContainsFunc(s.consumers, func(c *consumer) bool { return c.failed.Load() })
	}
	r.verify.renewProbes()
}

// allProven reports whether arrivals.inVain proves the end of all consumers that can still receive.
func (r *run) allProven() bool {
	now, patience := r.clock.Epoch(r.clock.Now()), r.patience()
	for _, s := range r.subs {
		if s.over || !alive(s.consumers) {
			continue
		}
		if _, proven := s.arrivals.inVain(now, patience); !proven {
			return false
		}
	}
	return true
}

// renewProbes ends the probes, if anything is verified, and allows later ones. Consumers are opened and closed only
// while no probe uses them.
func (v *verification) renewProbes() {
	if v == nil {
		return
	}
	if v.stopProbing != nil {
		v.stopProbing()
		v.probes.Wait()
	}
	v.probing, v.stopProbing = context.WithCancel(context.Background())
}

// takeSide returns what this process has learned of its messages: in the whole run or, with turns, since the last call.
func (r *run) takeSide(last bool) *verify.Side {
	if last { // all workers have ended or were given up
		r.verify.renewProbes()
	}
	turn := r.plan.Split()
	side := &verify.Side{ID: r.id, Role: string(r.role), Shard: r.plan.Shard.Number, Shards: r.plan.Shard.Of}
	if turn {
		side.Turn, side.Last = true, last
		side.At, side.Window = r.clock.Epoch(r.clock.Now()), r.plan.VerifyWindow.Microseconds()
	}
	for _, p := range r.producers {
		side.TTL = side.TTL || p.spec.TTL > 0
		var s *verify.Sent
		if last {
			s = p.load.Seal()
		}
		if turn {
			s = p.ledger.Take()
		}
		if s.Started = r.clock.Epoch(0); last {
			s.Ended = p.stoppedAt
		}
		side.Sent = append(side.Sent, s)
	}
	disconnected := r.outages.Disconnected()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subs {
		var part *verify.Received
		if turn {
			part = s.tracker.Take()
			part.Receiving = s.receives(disconnected)
		} else {
			part = s.tracker.Seal()
			part.Sent = s.sent
		}
		if last {
			part.Ended, part.Drained = s.ended, s.drained
		}
		var name string
		name, part.Private = s.sharedName()
		part.SetName(s.named(), name)
		part.Selective, part.Late, part.Opened = s.selective(), s.destination.Kind == driver.Topic, s.opened
		side.Received = append(side.Received, part)
	}
	if !turn {
		r.addReplies(side)
	}
	return side
}

// selective reports whether a consumer gets some of the messages only.
func (s *subscription) selective() bool {
	return slices.ContainsFunc(s.consumers, func(c *consumer) bool { return c.spec.Partial() })
}

// receives reports whether consumers receive, and all are connected.
func (s *subscription) receives(disconnected map[string]bool) bool {
	return slices.ContainsFunc(s.receiving, func(ended chan struct{}) bool { return !isClosed(ended) }) &&
		!slices.ContainsFunc(s.consumers, func(c *consumer) bool { _, down := disconnected[c.spec.Name]; return down })
}

// sharedName returns the name under which consumers of all processes share the messages, or the name of the only
// consumer.
func (s *subscription) sharedName() (name string, private bool) {
	switch spec := &s.consumers[0].spec; {
	case s.destination.Kind != driver.Topic:
		return "", false
	case !spec.Shared && !spec.Durable:
		return spec.Name + s.again, true
	case spec.Connection.ClientID != "":
		return spec.Connection.ClientID + ":" + spec.Subscription, false
	default:
		return spec.Subscription, false
	}
}

// judgeVerification adds the verification to the summary, and writes this side into its file.
func (r *run) judgeVerification(s *stats.Summary) {
	if r.verify == nil {
		return
	}
	if r.plan.Split() {
		s.Numbers = r.takeSide(true)
		return
	}
	parked := r.parked()
	side := r.takeSide(true)
	v := verify.Judge(r.judged(side))
	v.Window = r.plan.VerifyWindow.Microseconds()
	s.Verified, s.Verification = v, v.Verified()
	r.verifyOutages(s, v)
	left := v.Total.Left - min(parked, v.Total.Left)
	if s.Expected != nil {
		*s.Expected, *s.Missing = v.Total.Expected, v.Total.Lost+left
	}
	r.findVerified(s, parked)
	if r.plan.VerifyFile == "" {
		return
	}
	path := r.plan.VerifyFile
	if r.verify.fileTaken(path) {
		path = fmt.Sprintf("%s.%d", path, r.id)
		findError(s, "verify-file", fmt.Errorf("another process wrote %s, so this side is in %s: "+
			"give each process its own file", r.plan.VerifyFile, path))
	}
	if err := verify.WriteFile(path, side); err != nil {
		findError(s, "verify-file", err)
	}
}

// fileTaken reports whether another process has written the file since the run began; its side must not be overwritten.
func (v *verification) fileTaken(path string) bool {
	now, err := os.Stat(path)
	if err != nil || !now.Mode().IsRegular() {
		return false
	}
	return v.before == nil || !os.SameFile(v.before, now) || !v.before.ModTime().Equal(now.ModTime())
}
