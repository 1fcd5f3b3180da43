package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// summarize returns the summary of the run. All workers are closed and the last snapshot is taken.
func (r *run) summarize(end ending, left []string) *stats.Summary {
	c := r.sampler.collector
	if len(r.steps) > 1 {
		r.endStep(end, c.EndStep(r.step.plan.Name))
	} else {
		r.due = r.dueInStep()
		r.offered = r.step.offered()
	}
	groups := c.GroupSums()
	for i := range groups {
		for _, step := range r.steps {
			for _, u := range step.uses {
				if u.plan.Name == groups[i].Name {
					groups[i].Due += u.due
					groups[i].Offered.Add(u.offered)
				}
			}
		}
		if len(r.steps) > 1 {
			groups[i].Offered.Span = 0
		}
	}
	now := time.Now()
	s := &stats.Summary{
		Reason: end.reason, Interrupted: end.interrupted, Aborted: end.aborted, Err: end.err,
		Start: r.clock.Start(), End: r.clock.Moment(now),
		Total: c.Total(), Measured: c.Measured(), Latencies: c.Latencies(), Health: c.Health(now), Average: c.Average(),
		Offered:    r.offered,
		Stalls:     c.StallsFound(),
		Marks:      c.MarksPassed(),
		Saturation: c.Saturation(), Protocol: c.Protocol(), Workers: r.locate(c.WorkerTotals()),
		ExpectedKnown: r.expectedKnown(), LeftBehind: left, Commands: r.commands, Steps: r.ended,
		Groups:  groups,
		Side:    r.watched.Sum(),
		Brokers: r.brokers(), BrokerCount: r.brokerCount(c.WorkerTotals()),
	}
	extremes := c.Extremes()
	s.Minimum, s.Maximum = extremes.Both()
	if first, last, ok := r.readTime(); ok && len(r.steps) == 1 {
		extremes.Read(first, last, &s.Average, &s.Minimum, &s.Maximum)
		readIn(first, last, groups)
	}
	if len(r.ended) > 0 {
		s.Limit = longestLimit(r.ended)
	} else {
		s.Limit = c.Tally().Judge(r.asked())
	}
	s.Spreads, s.Hosts = stats.Spreads(s.Workers), r.hosts(s.Workers)
	if len(r.ended) > 1 {
		s.Minimum = r.lowest(r.ended, groups)
		s.Offered.Span = 0
	}
	var excess uint64
	if s.ExpectedKnown && r.verify == nil {
		s.Expected, s.Missing, excess = r.tally()
	}
	s.Errors = r.errorClasses(&s.Total)
	if r.outages != nil {
		s.Outages, s.MoreOutages = r.outageList()
	}
	r.problems(s)
	r.judge(s)
	countedAnew(s)
	r.laterFailures(s)
	r.warnings(s, excess)
	s.Success = len(s.Problems) == 0
	figures := r.figuresOf(s)
	s.Figures = figures
	s.Thresholds = judgeThresholds(r.plan.Thresholds, r.wholeTarget, figures)
	if len(r.steps) == 1 { // the step is the run
		s.Thresholds = append(s.Thresholds, r.step.judged(figures)...)
	}
	for i := range r.ended {
		s.Thresholds = append(s.Thresholds, r.ended[i].Thresholds...)
	}
	return s
}

// errorClasses returns the number of failures by class, with an example of each.
func (r *run) errorClasses(total *stats.Counters) (list []result.Failure) {
	for class := range driver.NumClasses {
		if n := total.Class(class); n > 0 {
			e := result.Failure{Class: class.String(), Count: n}
			if err := r.firstError(class); err != nil {
				e.Examples = []string{err.Error()}
			}
			list = append(list, e)
		}
	}
	return list
}

// problems adds the reasons why the run is a failure.
func (r *run) problems(s *stats.Summary) {
	add := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	if s.Err != nil {
		addError(s, s.Err, "")
	}
	inDoubt := min(inDoubt(s)+r.overcome(), s.Total[result.Unconfirmed])
	for _, f := range []struct {
		n    uint64
		what string
	}{
		{s.Total[result.Rejected], "rejected by the broker"},
		{s.Total[result.Released], "given back by the broker"},
		{s.Total[result.Modified], "given back by the broker as modified (it may have tried to deliver them)"},
		{s.Total[result.Failed], "failed"},
		{s.Total[result.Unconfirmed] - inDoubt, "sent but not confirmed (the broker may have them or not)"},
		{s.Total.InFlight(), "of unknown end (the driver did not say what became of them)"},
	} {
		if f.n > 0 {
			add("messages %s: %d", f.what, f.n)
		}
	}
	for class := range driver.NumClasses {
		if s.Total.Class(class) <= inDoubt && lostClass(class) || s.Total.Class(class) == 0 {
			continue
		}
		// otherwise s.Err is the same failure
		if err := r.firstError(class); err != nil && (s.Err == nil || driver.ClassOf(s.Err) != class) {
			addError(s, err, fmt.Sprintf("first failure of class %s: ", class))
		}
	}
	notBack(s, add)
	r.nothingDone(s, add)
	if r.plan.FailOnForeign && s.Total[result.Foreign] > 0 {
		add(aboutForeign, s.Total[result.Foreign])
	}
	if count := r.toReceive(); s.Total[result.Received] < count && !s.Interrupted && s.Err == nil {
		add("messages of --message-count not received when the duration ended: %d of %d", count-s.Total[result.Received],
			count)
	}
	if r.estranged(s) {
		add("none of the %d messages received can be identified as one of this run: brokers that drop the properties of "+
			"messages from %s to %s "+
			"cause this, such as RabbitMQ before 4, and ActiveMQ Classic without transport.transformer=jms on its AMQP "+
			"connector; "+
			"they cannot be measured between these protocols, and messages counted as missing, lost or foreign may be neither",
			s.Total[result.Foreign], r.protocols(r.sendsTo, titleOf), r.protocols(r.readsFrom, titleOf))
	}
	for _, step := range r.steps {
		if step.awaited > 0 {
			add("step %s was to be drained, but when it ended messages had not come: %d", step.plan.Name, step.awaited)
		}
	}
	if s.Missing > 0 {
		add("messages not received when the drain ended after %s: %d of %d",
			r.drained.Round(time.Millisecond), s.Missing, s.Expected)
		for _, g := range r.groups {
			if ttl := g.plan.TTL; ttl > 0 && g.plan.Role.Produces() {
				add("with a time to live of %s, the broker may have dropped them", ttl)
				break
			}
		}
	}
}

// addError adds an error to the problems, with its hint.
func addError(s *stats.Summary, err error, before string) {
	if hint := driver.HintOf(err); hint != "" {
		if s.Hints == nil {
			s.Hints = map[int]string{}
		}
		s.Hints[len(s.Problems)] = hint
	}
	s.Problems = append(s.Problems, before+err.Error())
}

// estranged reports whether messages arrived, but none with the run's mark, over another protocol than they were sent.
func (r *run) estranged(s *stats.Summary) bool {
	return r.role == plan.Client && r.protocols(r.sendsTo, nameOf) != r.protocols(r.readsFrom, nameOf) &&
		s.Total[result.Completed] > 0 && s.Total[result.Received] == 0 && s.Total[result.Foreign] > 0
}

// laterFailures adds the workers that failed after the one, if any, that ended the load.
func (r *run) laterFailures(s *stats.Summary) {
	n := len(r.failures)
	if n == 0 {
		return
	}
	f := <-r.failures
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more workers failed)", n-1)
	}
	addError(s, fmt.Errorf("%s: %w%s", f.worker, f.err, more), "")
}

// warnings adds the warnings of the run.
func (r *run) warnings(s *stats.Summary, excess uint64) {
	add := func(format string, args ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...)) }
	r.aboutTester(s, add)
	r.aboutWarmup(s, add)
	r.aboutRates(s, add)
	if s.Total[result.NegativeTransfers] > 0 {
		add("transfer times below zero, left out because the clocks of producer and consumer differ: %d of %d",
			s.Total[result.NegativeTransfers], s.Total[result.Received]-s.Total[result.Unstamped])
	}
	if s.Total[result.Early] > 0 {
		clocks := ""
		if r.role == plan.Consumer {
			clocks = ", and so do clocks of producer and consumer that differ"
		}
		add("messages delivered before their delay was over: %d of %d; a broker that does not delay causes this, such as "+
			"ActiveMQ Classic "+
			"without schedulerSupport"+clocks, s.Total[result.Early], s.Total[result.Delayed])
	}
	if d := s.Total[result.Delayed]; d > 0 && d < s.Total[result.Received] {
		add("transfer times are of both %d delayed messages, with their delays, and %d others; lateness is of the delayed "+
			"ones", d, s.Total[result.Received]-d)
	}
	if s.Total[result.NegativeAges] > 0 {
		add("b2c or s2c times below zero, left out because the clocks of producer, broker and consumer differ: %d",
			s.Total[result.NegativeAges])
	}
	r.aboutOutages(s, add)
	if s.Total[result.OutOfRange] > 0 {
		add("latencies above %s, counted as that: %d", stats.MaxLatency, s.Total[result.OutOfRange])
	}
	if s.ExpectedKnown && r.verify == nil && s.Total[result.Redelivered] > 0 {
		add("messages delivered again, each of which may make up for a lost one: %d", s.Total[result.Redelivered])
	}
	if s.ExpectedKnown && r.verify == nil && s.Total[result.Resent] > 0 {
		add("messages sent again, each of which may make up for a lost one: %d; --verify tells them apart",
			s.Total[result.Resent])
	}
	if excess > s.Total[result.Unconfirmed]+s.Total[result.Resent] {
		add("more messages received than completed, by duplicates or another producer: %d", excess)
	}
	if s.Total[result.Foreign] > 0 && !r.plan.FailOnForeign {
		add(aboutForeign, s.Total[result.Foreign])
	}
	if len(r.consumers) > 0 && s.Total[result.Received]+s.Total[result.Foreign] == 0 && s.Err == nil &&
		(!r.role.Produces() ||
			s.Total[result.Completed] > 0) {
		add("no message was received%s", r.aboutTopics())
	}
}

// aboutTopics is what may keep messages from the consumers of a topic.
func (r *run) aboutTopics() string {
	if slices.ContainsFunc(r.consumers, func(c *consumer) bool { return c.spec.Destination.Kind != driver.Topic }) {
		return ""
	}
	return ": a broker that has a queue of the same name, too, may serve the topic's consumers from it, as Artemis does " +
		"over STOMP; try queue://, or another name"
}

// aboutForeign is a warning, or, with --fail-on-foreign, a problem.
const aboutForeign = "messages of another run or tool taken from the destinations and not counted: %d"

// nothingDone adds the reason why no message was sent or completed.
func (r *run) nothingDone(s *stats.Summary, add func(string, ...any)) {
	if len(r.producers) == 0 || s.Total[result.Completed] > 0 || s.Err != nil {
		return
	}
	switch {
	case s.Total[result.Sent] == 0 && r.due == 0 && r.plan.Rated(): // the first message is due at the start
	case s.Total[result.Sent] == 0 && s.Total[result.NoLeave] > 0:
		add("nothing was sent: the broker granted no credit to send; a full queue or disk, or another limit of the broker, " +
			"causes this")
	case s.Total[result.Sent] == 0 && s.Total.InFlight() == 0:
		add("nothing was sent: the producers waited for the broker, or for the network, until the load ended")
	case s.Total[result.Sent] > 0:
		add("nothing was completed: of %d messages sent the broker accepted none", s.Total[result.Sent])
	}
}

// reached is the share of the due messages that must be sent for a rate to count as reached: messages due at the very
// end may be late by a moment.
const reached = 0.99

// aboutRates adds a warning about rates that were not reached.
func (r *run) aboutRates(s *stats.Summary, add func(string, ...any)) {
	// all messages of the count were sent, but late
	if o := &s.Offered; len(r.steps) == 1 && r.unrated() == 0 && s.Total[result.Sent] >= r.due && o.Missed() > 1-reached {
		add("the rate was not reached: before the last message was sent, %d were due in the measured time, %.1f%% more "+
			"than there were", o.Due,
			100*(float64(o.Due)/float64(max(o.Sent, 1))-1))
		return
	}
	if len(r.steps) == 1 && r.unrated() == 0 {
		if float64(s.Total[result.Sent]) < reached*float64(r.due) {
			add("the rate was not reached: %d of the %d messages that were due were sent; unsent messages appear in no "+
				"latency figure", s.Total[result.Sent], r.due)
		}
		return
	}
	for _, step := range r.steps {
		for _, u := range step.uses {
			if due := u.due; !u.reached() {
				add("step %s: the rate of group %s was not reached: %d of the %d messages that were due were sent; "+
					"unsent messages appear in no latency figure", step.plan.Name, u.plan.Name, u.sentInStep, due)
			}
		}
	}
}

// unrated returns the number of groups of the present step that send without a rate.
func (r *run) unrated() (n int) {
	for _, u := range r.step.uses {
		if len(u.producers) > 0 && u.plan.Rate.IsZero() {
			n++
		}
	}
	return n
}

// toReceive returns the message counts of the groups that only receive.
func (r *run) toReceive() (count uint64) {
	for _, step := range r.steps[:r.step.index+1] {
		for _, u := range step.uses {
			if !u.plan.Role.Produces() {
				count += u.quota()
			}
		}
	}
	return count
}

// protocols returns the names of the protocols of the producers or of the consumers.
func (r *run) protocols(side func(*plan.Group) *Endpoint, name func(*driver.Factory) string) string {
	var names []string
	for _, g := range r.groups {
		if e := side(g.plan); e != nil && !slices.Contains(names, name(&e.Factory)) {
			names = append(names, name(&e.Factory))
		}
	}
	return strings.Join(names, " and ")
}

func nameOf(f *driver.Factory) string { return f.Name }

func titleOf(f *driver.Factory) string { return f.Title }

func (r *run) firstError(class driver.Class) error {
	for _, p := range r.producers {
		if err := p.rec.FirstError(class); err != nil {
			return err
		}
	}
	return nil
}
