package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Thresholds of findings.
const (
	// enoughValues is the minimum number of values of a latency whose percentile is compared.
	enoughValues = 100
	// noticeable is the minimum of the longer latency; shorter ones do not matter to users.
	noticeable = 10 * time.Millisecond
	// queueing is the minimum ratio of transfer p99 to ack p99, waiting that of response p99 to ack p99.
	queueing, waiting = 10, 2
	// growing is the minimum growth of a backlog as a share of the messages completed, enoughBacklog the minimum in
	// messages.
	growing, enoughBacklog = 0.01, 100
	// large is the minimum share, of the messages completed, for a backlog that did not grow steadily.
	large = 0.1
	// enoughTime is the minimum length of a measured part whose rates and percentiles are compared.
	enoughTime = 3 * time.Second
	// starved is the share of the other workers' messages below which a worker got too few, enoughEach the minimum number
	// of messages per worker.
	starved, enoughEach = 0.25, 100
	// namedStalls is the maximum number of stalls that a text names.
	namedStalls = 3
)

// Observe adds what the rates, latencies and workers of a run, and the broker's side, show. It does not fail the run.
func Observe(s *stats.Summary) {
	observeStalls(s)
	observeBroker(s)
	if s.Average.Span < enoughTime {
		return
	}
	l := &s.Latencies
	held := s.Total[result.Delayed] > 0 // a delay makes messages wait in the broker; their latency is the lateness
	// Messages that a step sends where it does not receive wait for the step that receives them.
	planned := slices.ContainsFunc(s.Steps, func(step stats.StepSummary) bool {
		return step.Sends && (!step.Receives || s.ExpectedKnown && !step.Delivered)
	})
	if !held && !planned {
		compare(s, "queueing", l[result.Transfer], l[result.Ack], queueing)
	}
	// If perfmq itself was late, a warning says so.
	if float64(s.Total[result.LateSends]) < stats.MaxLateShare*float64(s.Total[result.Sent]) {
		compare(s, "late-sends-waited", l[result.Response], l[result.Ack], waiting)
	}
	if !held {
		observeBacklog(s)
	}
	observeUneven(s)
}

// compare adds a finding if the p99 of l is at least factor times the p99 of than; not for percentiles of too few
// values, nor for a p99 below noticeable.
func compare(s *stats.Summary, kind string, l, than *result.Latency, factor float64) {
	if l == nil || than == nil || l.Count < enoughValues || than.Count < enoughValues {
		return
	}
	long, short := l.Percentile(99), than.Percentile(99)
	times := float64(long) / float64(max(1, short))
	if times >= factor && long >= noticeable.Microseconds() {
		s.Find(kind, "", uint64(times), uint64(times), words.Duration(long), words.Duration(short))
	}
}

// observeStalls adds a finding for the stalls of each side of the run, of a broker and of a group.
func observeStalls(s *stats.Summary) {
	type part struct{ broker, group string }
	parts := []part{{}} // the run first
	of := map[part][]stats.Stall{}
	for _, stall := range s.Stalls.Measured() {
		p := part{stall.Broker, stall.Group}
		if p != (part{}) && of[p] == nil {
			parts = append(parts, p)
		}
		of[p] = append(of[p], stall)
	}
	for _, p := range parts {
		who, whom, subject := "the broker", "", ""
		if p.broker != "" {
			who, subject = "broker "+p.broker, ", broker "+p.broker
		}
		if p.group != "" {
			whom, subject = " group "+p.group, ", group "+p.group+subject
		}
		for _, side := range []struct {
			of  stats.Side
			did string
		}{
			{stats.BothSides, who + " stalled"},
			{stats.SendSide, who + " did not answer" + whom},
			{stats.ReceiveSide, who + " did not deliver"},
		} {
			observeSide(s, of[p], side.of, subject, side.did)
		}
	}
}

func observeSide(s *stats.Summary, all []stats.Stall, side stats.Side, subject, did string) {
	var list []stats.Stall
	var moments []string
	var longest time.Duration
	for _, stall := range all {
		if stall.Side == side {
			list = append(list, stall)
			longest = max(longest, stall.Length)
			moments = append(moments, fmt.Sprintf("at %.3f s (%s) for %.3f s", stall.Start.Seconds(),
				s.Start.Add(stall.Start).Format(time.TimeOnly), stall.Length.Seconds()))
		}
	}
	if len(list) == 0 {
		return
	}
	when := words.First(moments, namedStalls, ", ")
	if period := stats.Period(list); period > 0 {
		when += "; every " + words.Seconds(period)
	}
	if s.Stalls.More > 0 {
		when += fmt.Sprintf("; %d more stalls are not listed", s.Stalls.More)
	}
	f := words.Find("stall", "", uint64(len(list)), did, words.Times(len(list)), words.Seconds(longest), when)
	f.Subject = side.String() + subject
	f.Examples = moments[:min(len(moments), words.MaxExamples)]
	s.Findings = append(s.Findings, f)
}

// observeBroker adds differences between the brokers' counts and the run's, errors in the broker's log, and events of
// its process. Other clients may have used the destination.
func observeBroker(s *stats.Summary) {
	if c := s.BrokerCount; c != nil {
		for i := range c.Destinations {
			d := &c.Destinations[i]
			for _, of := range []struct {
				kind     string
				compared *result.Compared
			}{{result.BrokerFindings + "added", d.Added}, {result.BrokerFindings + "acknowledged", d.Acknowledged}} {
				by, more := of.compared.Differs(), "more"
				if by < 0 {
					by, more = -by, "fewer"
				}
				s.Find(of.kind, d.Destination, uint64(by), by, more) //nolint:gosec // not negative
			}
		}
	}
	side := s.Side
	if side == nil {
		return
	}
	if n := side.Whole.Errors; n != nil {
		s.Find("log-errors", "broker", *n, *n)
	}
	if n := side.Whole.Warnings; n != nil {
		s.Find("log-warnings", "broker", *n, *n)
	}
	for _, e := range side.Events {
		s.Find("process", "broker", 1, e.Text)
	}
}

// observeBacklog adds findings for backlogs that grew. Each of several steps is judged by itself: messages that came in
// the warm-up of a later step are in no measured part. A step that sends where it does not receive leaves a backlog by
// plan.
func observeBacklog(s *stats.Summary) {
	if !s.ExpectedKnown || s.Total[result.Completed] == 0 {
		return
	}
	deliveries := float64(s.Expected) / float64(s.Total[result.Completed]) // of each message
	if len(s.Steps) <= 1 {
		findBacklog(s, &s.Average, s.Latencies[result.Transfer], deliveries, "")
		return
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if !step.Delivered || !step.Receives {
			continue
		}
		// Steps may differ in their subscriptions: no more deliveries than came in this one count, once for each.
		came := float64(step.Total[result.Received]) / float64(max(1, step.Total[result.Completed]))
		findBacklog(s, &step.Average, step.Latencies[result.Transfer], min(deliveries, max(1, came)), step.Name)
	}
}

// findBacklog adds a finding if the backlog (completed minus received) grew in a measured part. There is a rate
// unless the growth was not steady, for example if producers filled the broker's memory and were then blocked. Step
// is empty in a run that has only one.
func findBacklog(s *stats.Summary, a *stats.Average, ages *result.Latency, deliveries float64, step string) {
	if a.Span < enoughTime {
		return
	}
	wanted := deliveries * float64(a.Completed)
	more := wanted - float64(a.Received)
	steady := a.Growth(deliveries) * a.Span.Seconds()
	var kind string
	values := []any{uint64(more)}
	switch {
	case more < enoughBacklog || more < growing*wanted:
		return
	case steady >= more/2 && !stats.Queued(more/wanted, a.Span, ages):
		kind = "received-elsewhere"
	case steady >= more/2:
		kind, values = "backlog-grew", []any{more / a.Span.Seconds(), uint64(more)}
	case more >= large*wanted:
		kind = "backlog"
	default:
		return
	}
	f := words.Find(kind, "", uint64(more), values...)
	if f.Subject = step; step != "" {
		f.Text = "step " + step + ": " + f.Text
	}
	s.Findings = append(s.Findings, f)
}

// observeUneven adds findings for workers that received or sent far fewer messages than others of the same group,
// destination and subscription.
func observeUneven(s *stats.Summary) {
	type key struct {
		group, destination, subscription string
		producing                        bool
	}
	var order []key
	of := map[key][]*stats.WorkerTotal{}
	for i := range s.Workers {
		w := &s.Workers[i]
		at := key{w.Group, w.Destination, w.Subscription, w.Producing}
		if of[at] == nil {
			order = append(order, at)
		}
		of[at] = append(of[at], w)
	}
	for _, at := range order {
		list := of[at]
		slices.SortStableFunc(list, func(a, b *stats.WorkerTotal) int { return cmp.Compare(a.Messages(), b.Messages()) })
		var sum, upper uint64
		var names []string
		for i, w := range list {
			names = append(names, fmt.Sprintf("%s %d", w.Name, w.Messages()))
			sum += w.Messages()
			if i >= len(list)/2 {
				upper += w.Messages()
			}
		}
		if len(list) < 2 || sum < uint64(enoughEach*len(list)) {
			continue
		}
		others := float64(upper) / float64(len(list)-len(list)/2)
		n := 0
		for n < len(list) && float64(list[n].Messages()) < starved*others {
			n++
		}
		if n == 0 {
			continue
		}
		kind := "uneven-consumers"
		if at.producing {
			kind = "uneven-producers"
		}
		f := words.Find(kind, at.destination, uint64(n), n, len(list), names[0], names[len(names)-1])
		f.Examples = names[:min(n, words.MaxExamples)]
		s.Findings = append(s.Findings, f)
	}
}
