package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// findAll adds all findings of the run except the verification's; excess counts messages received beyond the expected
// ones.
func (r *run) findAll(s *stats.Summary, excess uint64) {
	findOpenings(s)
	r.findFailures(s)
	r.findNothing(s)
	r.findMissing(s, excess)
	r.findOutages(s)
	s.Find("foreign", "", s.Total.Get(result.Foreign), s.Total.Get(result.Foreign))
	findReplies(s)
	r.findRates(s)
	findLatencies(s)
	findPerfmq(s)
	r.findOpened(s)
	Observe(s)
	weight := []string{result.Problem, result.Warning, result.Note}
	slices.SortStableFunc(s.Findings, func(a, b result.Finding) int {
		return cmp.Compare(slices.Index(weight, a.Severity), slices.Index(weight, b.Severity))
	})
}

// findSoFar adds the findings of a run that continues.
func (r *run) findSoFar(s *stats.Summary) {
	findOpenings(s)
	r.findRefused(s)
	s.Find("foreign", "", s.Total.Get(result.Foreign), s.Total.Get(result.Foreign))
	findReplies(s)
	if v := s.Verification; v != nil {
		s.Findings = append(s.Findings, (&verify.Result{Verification: *v}).Findings(r.plan.Allow, 0)...)
	}
	findLatencies(s)
	findPerfmq(s)
	observeStalls(s)
	observeBroker(s)
}

// findRefused adds the messages that the broker did not accept. It returns the number of messages in doubt.
func (r *run) findRefused(s *stats.Summary) (doubted uint64) {
	t := s.Total.Values()
	doubted = min(inDoubt(s)+r.countOvercome(), t[result.Unconfirmed])
	count := func(kind string, n uint64) { s.Find(kind, "", n, n) }
	count("rejected", t[result.Rejected])
	count("released", t[result.Released])
	count("modified", t[result.Modified])
	count("failed", t[result.Failed])
	count("unconfirmed", t[result.Unconfirmed]-doubted)
	return doubted
}

// findFailures adds the errors, and the messages that the broker did not accept.
func (r *run) findFailures(s *stats.Summary) {
	if s.Err != nil {
		findError(s, "error", s.Err)
	}
	doubted := r.findRefused(s)
	s.Find("unknown-end", "", s.Total.InFlight(), s.Total.InFlight())
	for class := range driver.NumClasses {
		if n := s.Total.OfClass(class.String()); n <= doubted && stats.Lost(class) || n == 0 {
			continue
		}
		// otherwise s.Err is the same failure
		if err := r.firstError(class); err != nil && (s.Err == nil || driver.ClassOf(s.Err) != class) {
			findError(s, "error", fmt.Errorf("first failure of class %s: %w", class, err))
		}
	}
	if n := len(r.failures); n > 0 { // after the one, if any, that ended the load
		f, more := <-r.failures, ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more workers failed)", n-1)
		}
		findError(s, "error", fmt.Errorf("%w%s", f.err, more))
	}
}

func findError(s *stats.Summary, kind string, err error) {
	f := words.Find(kind, "", 1, err)
	f.Hint = driver.HintOf(err)
	s.Findings = append(s.Findings, f)
}

func (r *run) firstError(class driver.Class) error {
	for _, p := range r.producers {
		if err := p.rec.FirstError(class); err != nil {
			return err
		}
	}
	for _, rec := range r.openings {
		if err := rec.FirstError(class); err != nil {
			return err
		}
	}
	return nil
}

// findNothing finds out why nothing was sent, completed or received.
func (r *run) findNothing(s *stats.Summary) {
	t := s.Total.Values()
	switch {
	case len(r.producers) == 0 || t[result.Completed] > 0 || s.Err != nil:
	case t[result.Sent] == 0 && r.due == 0 && r.plan.Rated(): // the first message is due at the start
	case t[result.Sent] == 0 && t[result.NoLeave] > 0:
		s.Find("nothing-sent", "", 1, "the broker granted no credit (a full queue or disk),")
	case t[result.Sent] == 0 && s.Total.InFlight() == 0:
		s.Find("nothing-sent", "", 1, "the producers waited for the broker, or for the network,")
	case t[result.Sent] > 0:
		s.Find("nothing-completed", "", t[result.Sent], t[result.Sent])
	}
	if len(r.consumers) == 0 || t[result.Received]+t[result.Foreign] > 0 || s.Err != nil ||
		r.role.Produces() && t[result.Completed] == 0 {
		return
	}
	why := ""
	if !slices.ContainsFunc(r.consumers, func(c *consumer) bool { return c.spec.Destination.Kind != driver.Topic }) {
		why = ": a queue of the topic's name may have them, as in Artemis over STOMP; try queue://, or another name"
	}
	s.Find("nothing-received", "", 1, why)
}

// findMissing adds messages that consumers did not get, got again, or cannot identify.
func (r *run) findMissing(s *stats.Summary, excess uint64) {
	t := s.Total.Values()
	if count := r.toReceive(); t[result.Received] < count && !s.Outcome.Interrupted && s.Err == nil {
		s.Find("too-few", "", count-t[result.Received], count-t[result.Received], count)
	}
	if to, from := r.protocols(r.sendsTo), r.protocols(r.readsFrom); r.role == plan.Client && to != from &&
		t[result.Completed] > 0 && t[result.Received] == 0 { // no message has the run's mark
		s.Find("unidentified", "", t[result.Foreign], t[result.Foreign], from, to)
	}
	for _, step := range r.steps {
		s.Find("not-drained", "step "+step.plan.Name, step.awaited, step.awaited)
	}
	if r.verify != nil {
		return
	}
	s.Find("redelivered", "", t[result.Redelivered], t[result.Redelivered])
	if s.Missing == nil {
		return
	}
	if n := *s.Missing; n > 0 {
		f := words.Find("missing", "", n, r.drained.Round(time.Millisecond), n, *s.Expected)
		for _, g := range r.groups {
			if ttl := g.plan.TTL; ttl > 0 && g.plan.Role.Produces() {
				f.Text += fmt.Sprintf("; with a time to live of %s, the broker may have dropped them", ttl)
				break
			}
		}
		if limit := deliveryLimit(s); limit != "" {
			f.Text += "; " + limit
		}
		s.Findings = append(s.Findings, f)
	}
	s.Find("resent", "", t[result.Resent], t[result.Resent])
	if excess > t[result.Unconfirmed]+t[result.Resent]+t[result.Redelivered] {
		s.Find("excess", "", excess, excess)
	}
}

// deliveryLimit returns why messages may be missing after consumers gave some back; empty if none did.
func deliveryLimit(s *stats.Summary) string {
	n := s.Total.Get(result.ConsumerReleased)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("consumers gave messages back %d times, and a delivery limit of the queue may have dropped some, "+
		"or moved them to dead letters (quorum queues of RabbitMQ 4: after 20)", n)
}

// findOutages adds outages that were not over, and the effects of all.
func (r *run) findOutages(s *stats.Summary) {
	for i := range s.Outages {
		if o := &s.Outages[i]; len(o.NotBack) > 0 {
			last := ""
			if o.LastAttempt != "" {
				last = "; the last attempt: " + o.LastAttempt
			}
			s.Find("outage-open", "", uint64(len(o.NotBack)), words.Clock(time.UnixMicro(o.Time)), len(o.NotBack),
				len(o.Workers), words.First(o.NotBack, 5, ", "), last)
		}
	}
	if n := min(inDoubt(s)+r.countOvercome(), max(s.Total.Get(result.Unconfirmed), inDoubt(s))); n > 0 {
		s.Find("in-doubt", "", n, n, s.Total.Get(result.Resent), s.Total.Get(result.Unconfirmed))
	}
	missing := *cmp.Or(s.Missing, new(uint64))
	if missing > 0 && len(s.Outages) > 0 && slices.ContainsFunc(r.subs, func(s *subscription) bool {
		return s.destination.Kind == driver.Topic && !slices.ContainsFunc(s.consumers,
			func(c *consumer) bool { return c.spec.Durable })
	}) {
		s.Find("not-durable", "", missing)
	}
	if v := s.Verified; v != nil {
		s.Find("after-outage", "", v.Total.AfterOutage+v.Total.Resent, v.Total.AfterOutage, v.Total.Resent)
	}
}

// reached is the share of the due messages that must be sent for a rate to count as reached: messages due at the very
// end may be late by a moment.
const reached = 0.99

// findRates adds rates that were not reached, of groups if there are several or several steps, and steps that measured
// nothing.
func (r *run) findRates(s *stats.Summary) {
	for i := range r.endedSteps {
		step, name, warmup := &r.endedSteps[i], "", r.steps[i].plan.Warmup
		total, measured := step.Total.Values(), step.Measured.Values()
		if len(r.steps) > 1 {
			name = "step " + step.Name
		}
		if warmup > 0 && total[result.Completed]+total[result.Received] > 0 &&
			measured[result.Completed]+measured[result.Received] == 0 {
			s.Find("not-measured", name, 1, warmup)
		}
	}
	missed := func(subject string, unsent, due uint64) {
		s.Find("rate-missed", subject, unsent, words.Percent(float64(unsent)/float64(due)), unsent, due)
	}
	found := len(s.Findings)
	for _, step := range r.steps {
		for _, u := range step.uses {
			if !hasReached(u.sentInStep, u.due) && (len(r.steps) > 1 || len(r.groups) > 1) {
				missed("step "+step.plan.Name+", group "+u.plan.Name, u.due-u.sentInStep, u.due)
			}
		}
	}
	unrated := func(u *use) bool { return len(u.producers) > 0 && u.plan.Rate.IsZero() }
	switch o := &s.Offered; {
	case len(s.Findings) > found:
	case o.Missed() > 1-reached:
		missed("", o.Unsent(), o.Due)
	case len(r.steps) == 1 && !slices.ContainsFunc(r.step.uses, unrated) &&
		float64(s.Total.Get(result.Sent)) < reached*float64(r.due):
		missed("", r.due-s.Total.Get(result.Sent), r.due)
	}
}

// toReceive returns the message counts of the groups that only receive.
func (r *run) toReceive() (count uint64) {
	for _, step := range r.steps[:r.step.index+1] {
		for _, u := range step.uses {
			count += u.quota()
		}
	}
	return count
}

// protocols returns the protocols of the producers or of the consumers.
func (r *run) protocols(side func(*plan.Group) *Endpoint) string {
	var names []string
	for _, g := range r.groups {
		if e := side(g.plan); e != nil && !slices.Contains(names, strings.ToUpper(e.Factory.Name)) {
			names = append(names, strings.ToUpper(e.Factory.Name))
		}
	}
	return strings.Join(names, " and ")
}

// findLatencies adds latencies that were left out, or that mean something else than usual.
func findLatencies(s *stats.Summary) {
	t := s.Total.Values()
	negative := t[result.NegativeTransfers]
	s.Find("negative-transfer", "", negative, negative, t[result.Received]-t[result.Unstamped])
	s.Find("early", "", t[result.Early], t[result.Early], t[result.Delayed])
	if t[result.Delayed] < t[result.Received] {
		s.Find("delayed", "", t[result.Delayed], t[result.Delayed], t[result.Received]-t[result.Delayed])
	}
	s.Find("negative-age", "", t[result.NegativeAges], t[result.NegativeAges])
	s.Find("out-of-range", "", t[result.OutOfRange], stats.MaxLatency, t[result.OutOfRange])
}

// findPerfmq adds what perfmq itself, or its machine, did to the results.
func findPerfmq(s *stats.Summary) {
	h := &s.Tester
	find := func(kind string, n uint64, values ...any) { s.Find(kind, words.Perfmq, n, values...) }
	switch l := cmp.Or(s.Limit, &result.Limit{}); {
	case l.Kind == result.LimitMachine:
		find("bottleneck", 1, "the machine of perfmq", l.Text)
	case result.OfTester(l.Kind):
		find("bottleneck", 1, "perfmq", l.Text)
	case h.CPUShare() > result.MaxCPUShare:
		find("busy-processors", 1, h.CPUShare()*float64(h.Cores), h.Cores)
	}
	if h.Crowded() {
		find("busy-machine", 1, 100*h.MachineShare(), 100*h.OthersShare())
	}
	find("pause", h.Pauses, words.Times(h.Pauses), microseconds(h.PauseMax).Round(time.Millisecond),
		time.UnixMicro(h.PauseAt).Format(time.TimeOnly), s.Total.Get(result.Paused))
	late := func(kind string, n uint64) {
		if sent := s.Total.Get(result.Sent); result.Late(n, sent) {
			find(kind, n, n, sent)
		}
	}
	late("late-sends", s.Total.Get(result.LateSends)-h.LateExcused)
	late("late-excused", h.LateExcused)
	stepped := func(kind string, by int64) {
		find(kind, uint64(by), microseconds(by).Round(100*time.Microsecond)) //nolint:gosec // not negative
	}
	stepped("clock-forward", h.ClockForward)
	stepped("clock-backward", h.ClockBackward)
}

// findVerified adds the findings of the verification, and messages that carry no number of it.
func (r *run) findVerified(s *stats.Summary, parked uint64) {
	v := s.Verified
	s.Findings = append(s.Findings, v.Findings(r.plan.Allow, parked)...)
	if r.verify.unanswered {
		s.Find("unanswered", "", v.Total.Left-min(parked, v.Total.Left))
	}
	unnumbered := v.Total.Foreign - min(s.Total.Get(result.Foreign), v.Total.Foreign)
	s.Find("unnumbered", "", unnumbered, unnumbered)
	notes := v.Notes
	if limit := deliveryLimit(s); limit != "" && v.Total.Lost+v.Total.Left > parked {
		notes = append(slices.Clip(notes), limit)
	}
	for _, note := range notes {
		s.Find("verification", "", 1, note)
	}
}

// outageBegun records the progress of the verification at the begin of an outage with a number, from 1 on, if it is one
// of the first that are listed: the losses and duplicates of later ones are unknown.
func (r *run) outageBegun(number int) {
	if r.verify == nil || r.plan.Split() || number > stats.KeptOutages {
		return
	}
	copies := r.progress().AfterOutage
	r.mu.Lock()
	defer r.mu.Unlock()
	r.explained = append(r.explained, copies)
	for _, list := range r.verify.ledgers {
		for _, l := range list {
			l.Mark()
		}
	}
}

// verifyOutages says which of the outages the lost and the doubled messages belong to.
func (r *run) verifyOutages(s *stats.Summary, v *verify.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range s.Outages[:min(len(s.Outages), len(r.explained))] {
		o := &s.Outages[i]
		if i < len(v.LostBefore) {
			o.Lost = v.LostBefore[i]
		}
		from, to := r.explained[i], v.Total.AfterOutage
		if i == 0 {
			from = 0
		}
		if i+1 < len(r.explained) {
			to = r.explained[i+1]
		} else if s.OutageCount() > i+1 { // the next one is not marked
			to = from
		}
		o.Doubled = to - min(from, to)
	}
}

// inDoubt returns the number of messages that ended without an answer because of outages.
func inDoubt(s *stats.Summary) uint64 {
	n := cmp.Or(s.MoreOutages, &result.MoreOutages{}).InDoubt
	for i := range s.Outages {
		n += s.Outages[i].InDoubt
	}
	return n
}

// countOvercome counts messages of reconnecting groups without an answer and without a known outage, sent before a
// confirmed message of their producer: the broker answers, but not in time (--send-timeout).
func (r *run) countOvercome() (n uint64) {
	for _, g := range r.groups {
		if !g.plan.Reconnect {
			continue
		}
		for _, p := range g.producers {
			n += p.rec.Overcome()
		}
	}
	return n
}

// plannedRate returns the rate of the only step in messages per second, if it is constant; else 0.
func (r *run) plannedRate() (sum float64) {
	if len(r.plan.Steps) != 1 {
		return 0
	}
	for _, g := range r.plan.Steps[0].Groups {
		if !g.Role.Produces() {
			continue
		}
		if _, constant := g.Rate.Constant(); !constant {
			return 0
		}
		sum += g.Rate.Peak()
	}
	return sum
}

// producersAsked returns the targets and bounds of the present step, after its load.
func (r *run) producersAsked() (producers []stats.ProducerAsked, delivered, stored bool) {
	producers, delivered, stored = make([]stats.ProducerAsked, len(r.producers)), r.expectedKnown(), true
	sent, received := map[place]bool{}, map[place]bool{}
	for _, p := range r.producers {
		sent[p.place()] = true
	}
	for _, c := range r.step.consumers {
		received[c.place()] = true
		stored = stored && sent[c.place()] // what others send may come at any time
	}
	for _, u := range r.step.uses {
		due, sent, share := u.due, u.sentInStep, u.share()
		for _, p := range u.producers {
			stored = false
			delivered = delivered && p.spec.Delay == 0 && received[p.place()]
			own := p.inFlight()
			if own.Messages > p.spec.MaxPending { // then that is the bound
				own = driver.InFlight{}
			}
			if u.draws.Skew != nil { // the producers differ
				due, sent, share = p.due, p.rec.Ended()+p.rec.InFlight()-p.base, u.draws.Skew.Weight(p.index)
			}
			producers[slices.Index(r.producers, p)] = stats.ProducerAsked{
				Rated: !u.plan.Rate.IsZero(), Reached: hasReached(sent, due), InFlight: own,
				Missed: missed(sent, due, u.plan.Rate.Average(r.step.loaded)*share),
			}
		}
	}
	return producers, delivered, stored
}

// hasReached reports whether nearly all messages due were sent.
func hasReached(sent, due uint64) bool { return float64(sent) >= reached*float64(due) }

// inFlight returns the client's own bound on the messages in flight.
func (p *producer) inFlight() driver.InFlight {
	if p.broker.Factory.InFlight == nil {
		return driver.InFlight{}
	}
	return p.broker.Factory.InFlight(p.broker.Options, &p.spec)
}

// maxInFlight returns the producer's part of the messages that may be in flight. bounded holds the connections (broker
// and key) with a bound that an earlier producer has counted.
func (p *producer) maxInFlight(bounded map[[2]string]bool) int {
	bound := p.inFlight()
	if bound.Messages == 0 || bound.Messages >= p.spec.MaxPending {
		return p.spec.MaxPending
	}
	if connection := ([2]string{p.broker.URL, p.spec.Connection.Key}); bound.PerConnection && p.driver != nil {
		if bounded[connection] {
			return 0
		}
		bounded[connection] = true
	}
	return bound.Messages
}

// missed returns the time in which producers would send, at their rate, the messages that were due and not sent.
func missed(sent, due uint64, perSecond float64) time.Duration {
	if perSecond <= 0 || sent >= due {
		return 0
	}
	return time.Duration(float64(due-sent) / perSecond * float64(time.Second))
}

// longestLimit returns the limit that lasted longest in a step.
func (r *run) longestLimit() *result.Limit {
	lasted := func(s *stats.Summary) float64 {
		switch s.Limit.Kind {
		case result.LimitNone:
			return 0
		case result.LimitUnknown:
			return -1
		default:
			return s.Limit.Share * s.Average.Span.Seconds()
		}
	}
	longest := slices.MaxFunc(r.endedSteps, func(a, b stats.Summary) int { return cmp.Compare(lasted(&a), lasted(&b)) })
	l := *longest.Limit
	if l.Kind != result.LimitNone && len(r.steps) > 1 {
		l.Text = "step " + longest.Name + ": " + l.Text
	}
	return &l
}
