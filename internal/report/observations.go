package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Thresholds of findings.
const (
	// missedShare is the minimum share of a rate that was missed.
	missedShare = 0.01
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

// Observations returns findings about the rates, latencies and workers of a run, and about stalls of the broker. They
// do not fail the run.
func Observations(s *stats.Summary) (list []result.Finding) {
	add := func(kind, subject string, n uint64, examples []string, format string, args ...any) {
		list = append(list, result.Finding{
			Kind: kind, Subject: subject, Count: n, Examples: examples,
			Text: fmt.Sprintf(format, args...),
		})
	}
	if o := &s.Offered; o.Missed() > missedShare {
		add(rateMissed, "", o.Unsent(), nil, "the rate was missed by %s: %d of the %d messages that were due were not sent",
			percent(o.Missed()), o.Unsent(), o.Due)
	}
	stalled(s, add)
	if s.Average.Span < enoughTime {
		return list
	}
	l := &s.Latencies
	held := s.Total[result.Delayed] > 0 // a delay makes messages wait in the broker; their latency is the lateness
	// Messages that a step sends where it does not receive wait for the step that receives them.
	planned := slices.ContainsFunc(s.Steps, func(step stats.StepSummary) bool {
		return step.Sends && (!step.Receives || s.ExpectedKnown && !step.Delivered)
	})
	if times, ok := longer(l[result.Transfer], l[result.Ack], queueing); ok && !held && !planned {
		add("queueing", "", times, nil, "transfer p99 is %dx ack p99 (%s, %s): messages queue in the broker",
			times, duration(l[result.Transfer].Percentile(99)), duration(l[result.Ack].Percentile(99)))
	}
	// If the tester itself was late, a warning says so.
	byBroker := float64(s.Total[result.LateSends]) < stats.MaxLateShare*float64(s.Total[result.Sent])
	if times, ok := longer(l[result.Response], l[result.Ack], waiting); ok && byBroker {
		add("late-sends-waited", "", times, nil,
			"response p99 is %dx ack p99 (%s, %s): messages that were due waited to be sent, because the broker or "+
				"--max-pending held them up",
			times, duration(l[result.Response].Percentile(99)), duration(l[result.Ack].Percentile(99)))
	}
	if !held {
		grown(s, add)
	}
	uneven(s.Workers, add)
	return list
}

// rateMissed is also a warning.
const rateMissed = "rate-missed"

type adder func(kind, subject string, n uint64, examples []string, format string, args ...any)

// stalled adds a finding for the stalls of each side of the run, of a broker and of a group.
func stalled(s *stats.Summary, add adder) {
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
		stalledPart(s, of[p], p.broker, p.group, add)
	}
}

// stalledPart adds a finding for the stalls of each side of the run, of a broker or of a group.
func stalledPart(s *stats.Summary, all []stats.Stall, broker, group string, add adder) {
	who, whom, subject, stood := "the broker", "", "", "stood still"
	if broker != "" {
		who, subject, stood = "broker "+broker, ", broker "+broker, "stalled"
	}
	if group != "" {
		whom, subject, stood = " group "+group, ", group "+group+subject, "stalled"
	}
	for _, side := range []struct {
		of             stats.Side
		what, took, to string
	}{
		{stats.BothSides, "nothing was confirmed or received", stood, " for"},
		{stats.SendSide, "no message was confirmed", "did not answer", ""},
		{stats.ReceiveSide, "nothing was received", "did not deliver", " to"},
	} {
		took := who + " " + side.took
		if whom != "" {
			took += side.to + whom
		}
		var list []stats.Stall
		for _, stall := range all {
			if stall.Side == side.of {
				list = append(list, stall)
			}
		}
		if len(list) == 0 {
			continue
		}
		var moments []string
		longest := list[0]
		for _, stall := range list {
			moments = append(moments, fmt.Sprintf("at %.3f s for %.3f s", stall.Start.Seconds(), stall.Length.Seconds()))
			if stall.Length > longest.Length {
				longest = stall
			}
		}
		text := fmt.Sprintf("%s once for %s: %s from %.1f s (%s) on", took, seconds(longest.Length), side.what,
			longest.Start.Seconds(), s.Start.Add(longest.Start).Format(time.TimeOnly))
		if len(list) > 1 {
			text = fmt.Sprintf("%s %d times, for %s at most: %s %s", took, len(list), seconds(longest.Length), side.what,
				strings.Join(moments[:min(len(moments), namedStalls)], ", "))
			switch more := len(moments) - namedStalls; {
			case more == 1:
				text += " and once more"
			case more > 1:
				text += fmt.Sprintf(" and %d times more", more)
			}
			if period := stats.Period(list); period > 0 {
				text += fmt.Sprintf("; every %s", seconds(period))
			}
		}
		if s.Stalls.More > 0 {
			text += fmt.Sprintf("; among the first %d stalls, of %d", len(s.Stalls.List),
				uint64(len(s.Stalls.List))+s.Stalls.More)
		}
		add("stall", side.of.String()+subject, uint64(len(list)), moments[:min(len(moments), maxMoments)], "%s", text)
	}
}

// maxMoments is the maximum number of examples of a finding.
const maxMoments = 10

// longer reports whether the p99 of l is at least factor times the p99 of than, and the ratio. It is false for
// percentiles of too few values, and for a p99 below noticeable.
func longer(l, than *result.Latency, factor float64) (times uint64, ok bool) {
	if l == nil || than == nil || l.Count < enoughValues || than.Count < enoughValues {
		return 0, false
	}
	long, short := float64(l.Percentile(99)), float64(max(1, than.Percentile(99)))
	return uint64(long / short), long >= factor*short && long >= float64(noticeable.Microseconds())
}

// grown adds findings for backlogs that grew. Each of several steps is judged by itself: messages that came in the
// warm-up of a later step are in no measured part. A step that sends where it does not receive leaves a backlog by
// plan.
func grown(s *stats.Summary, add adder) {
	if !s.ExpectedKnown || s.Total[result.Completed] == 0 {
		return
	}
	deliveries := float64(s.Expected) / float64(s.Total[result.Completed]) // of each message
	if len(s.Steps) <= 1 {
		backlog(&s.Average, s.Latencies[result.Transfer], deliveries, "", add)
		return
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if !step.Delivered || !step.Receives {
			continue
		}
		// Steps may differ in their subscriptions: no more deliveries than came in this one count, once for each.
		came := float64(step.Total[result.Received]) / float64(max(1, step.Total[result.Completed]))
		backlog(&step.Average, step.Latencies[result.Transfer], min(deliveries, max(1, came)), step.Name, add)
	}
}

// backlog adds a finding if the backlog (completed minus received) grew in a measured part. There is a rate unless the
// growth was not steady, for example if producers filled the broker's memory and were then blocked. Step is empty in a
// run that has only one.
func backlog(a *stats.Average, ages *result.Latency, deliveries float64, step string, add adder) {
	if a.Span < enoughTime {
		return
	}
	wanted := deliveries * float64(a.Completed)
	more := wanted - float64(a.Received)
	steady := a.Growth(deliveries) * a.Span.Seconds()
	in := ""
	if step != "" {
		in = "step " + step + ": "
	}
	switch {
	case more < enoughBacklog || more < growing*wanted:
	case steady >= more/2 && !stats.Queued(more/wanted, a.Span, ages):
		add("received-elsewhere", step, uint64(more), nil, "%sreceived is below completed by %d messages, but the messages "+
			"received had not waited: another program received the others, or the broker dropped them", in, uint64(more))
	case steady >= more/2:
		add("backlog-grew", step, uint64(more), nil,
			"%sreceived is below completed: the backlog grew by %.0f msg/s, by %d messages in all", in, more/a.Span.Seconds(),
			uint64(more))
	case more >= large*wanted:
		add("backlog", step, uint64(more), nil, "%sreceived is below completed: when the load ended, %d messages more "+
			"waited than when the measured part began", in, uint64(more))
	}
}

// uneven adds findings for workers that received or sent far fewer messages than others of the same group, destination
// and subscription.
func uneven(workers []stats.WorkerTotal, add adder) {
	type key struct {
		group, destination, subscription string
		producing                        bool
	}
	var order []key
	of := map[key][]*stats.WorkerTotal{}
	for i := range workers {
		w := &workers[i]
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
		for i, w := range list {
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
		kind, role, did := "uneven-consumers", "consumer", "got"
		if at.producing {
			kind, role, did = "uneven-producers", "producer", "sent"
		}
		var examples []string
		for _, w := range list[:min(n, maxMoments)] {
			examples = append(examples, fmt.Sprintf("%s %d", w.Name, w.Messages()))
		}
		if n == 1 {
			add(kind, at.destination, 1, examples, "one %s %s %.0f%% of what the others %s: %s, the others %.0f on average",
				role, did,
				100*float64(list[0].Messages())/others, did, examples[0], float64(sum-list[0].Messages())/float64(len(list)-1))
			continue
		}
		add(kind, at.destination, uint64(n), examples,
			"%d of %d %ss %s less than a quarter of what the others %s: %s at least, %s at most", n, len(list),
			role, did, did, examples[0], fmt.Sprintf("%s %d", list[len(list)-1].Name, list[len(list)-1].Messages()))
	}
}

// duration returns microseconds as us, ms or s.
func duration(us int64) string {
	switch v := float64(us); {
	case v >= 1e6:
		return digits(v/1e6) + " s"
	case v >= 1e3:
		return digits(v/1e3) + " ms"
	default:
		return digits(v) + " us"
	}
}

// seconds returns a duration in seconds, with three digits.
func seconds(d time.Duration) string {
	if s := d.Seconds(); s >= 999.5 { // 3600, not 3.6e+03
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// stalls returns the stalls of a run.
func stalls(s *stats.Summary) (list []result.Stall) {
	for i := range s.Stalls.List {
		stall := &s.Stalls.List[i]
		list = append(list, result.Stall{
			Side: stall.Side.String(), Time: s.Start.Add(stall.Start).UnixMicro(), Elapsed: stall.Start.Microseconds(),
			Length: stall.Length.Microseconds(), Warmup: stall.Warmup, Group: stall.Group, Broker: stall.Broker,
		})
	}
	return list
}
