package merge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Times are microseconds.
const (
	second = 1_000_000
	// fullSecond is the length from which a row counts as a full second.
	fullSecond = int64(stats.FullSecond / time.Microsecond)
	// jitter is the maximum distance of the ends of rows that several hosts have of one second.
	jitter = second / 10

	// The share of the measured time in which all parts must have measured for their rates to add up: of the longest time
	// of a part, and, in a step that each part ends by itself, of the shortest. A time below shortTime is not judged.
	enoughTogether = 0.9
	enoughByItself = 0.5
	shortTime      = 3 * second
)

// counter returns all counts of a row, or the counts of a group; nil without counts.
type counter func(*result.Row) *result.Counts

// span is a time.
type span struct{ from, to int64 }

func (s span) length() int64 { return max(0, s.to-s.from) }

// spanOf returns the time of a row of a load that began at start.
func spanOf(row *result.Row, start int64) span {
	return span{start + row.Elapsed - row.Length, start + row.Elapsed}
}

// add adds the messages of a part in a time, as far as it measured the step then. A row is even in itself.
func (f *rates) add(part *result.Result, start int64, step string, t span, of counter) {
	first := sort.Search(len(part.Rows), func(i int) bool { return start+part.Rows[i].Elapsed > t.from })
	for i := first; i < len(part.Rows); i++ {
		row := &part.Rows[i]
		at := spanOf(row, start)
		if at.from >= t.to {
			break
		}
		within := min(at.to, t.to) - max(at.from, t.from)
		if row.Phase != result.Measure || row.Step != step || within <= 0 {
			continue
		}
		f.covered += within
		c := of(row)
		if c == nil {
			continue
		}
		f.producing, f.consuming = f.producing || c.Producers != nil, f.consuming || c.Consumers != nil
		for k, n := range c.Values() {
			f.counts[k] += float64(within) / float64(row.Length) * float64(n)
		}
	}
}

// rates are the messages of all parts in the time in which all of them measured. Rates of other times do not add up.
type rates struct {
	span      int64   // that time
	share     float64 // of the measured time; of several steps, the lowest one
	apart     bool    // that is too little for a rate of all parts
	low, high stats.Peaks

	producing, consuming bool
	covered              int64 // the measured time of a part
	counts               [result.NumCounters]float64
}

// ofStep returns the rates of a step. A step without a duration ends when its messages are sent or read, at each part
// for itself: its time lasts from the first start to the last end, as in a run of one process.
func (s *shards) ofStep(step *plannedStep, of counter) (r rates) {
	common, whole := span{0, math.MaxInt64}, span{math.MaxInt64, 0}
	shortest, longest := int64(math.MaxInt64), int64(0)
	for i, p := range s.parts {
		t := span{math.MaxInt64, 0}
		for k := range p.Rows {
			if row := &p.Rows[k]; row.Phase == result.Measure && row.Step == step.Name {
				at := spanOf(row, s.starts[i])
				t = span{min(t.from, at.from), max(t.to, at.to)}
			}
		}
		shortest, longest = min(shortest, t.length()), max(longest, t.length())
		common = span{max(common.from, t.from), min(common.to, t.to)}
		whole = span{min(whole.from, t.from), max(whole.to, t.to)}
	}
	together, most, enough := common.length(), longest, enoughTogether
	if step.Duration == "" {
		most, enough, common = shortest, enoughByItself, whole
	}
	r.share, r.span = 1, common.length()
	if together < most {
		r.share = float64(together) / float64(most)
	}
	r.apart = most >= shortTime && r.share < enough
	for i, p := range s.parts {
		r.add(p, s.starts[i], step.Name, common, of)
	}
	s.extremes(&r, step, of)
	return r
}

// extremes adds the lowest and highest rates of the seconds in which all parts measured; the first part divides the
// time into seconds. As in a run, a shorter row counts with the one before it. The lowest rate of receiving counts from
// the first second after a receipt on and, of a backlog, until the second of the last message.
func (s *shards) extremes(r *rates, step *plannedStep, of counter) {
	first, last := s.receiving(step.Name, of)
	var t span
	count := func() {
		completed, received, known := s.perSecond(step.Name, t, of)
		if t.length() < fullSecond || !known {
			return
		}
		second := func(rate float64) *result.Extreme {
			return &result.Extreme{Seconds: 1, PerSecond: rate, Time: t.to, Elapsed: t.to - slices.Min(s.starts)}
		}
		if r.producing {
			r.low.Completed.Include(second(completed), 1)
			r.high.Completed.Include(second(completed), -1)
		}
		if r.consuming {
			r.high.Received.Include(second(received), -1)
		}
		if t.from+jitter >= first && (!step.reads() || t.to <= last+jitter) {
			r.low.Received.Include(second(received), 1)
		}
	}
	for i := range s.parts[0].Rows {
		row := &s.parts[0].Rows[i]
		if row.Phase != result.Measure || row.Step != step.Name {
			continue
		}
		next := spanOf(row, s.starts[0])
		if t.length() > 0 && min(t.length(), next.length()) < fullSecond {
			t.to = next.to
			continue
		}
		count()
		t = next
	}
	count()
}

// perSecond returns the rates of all parts in a second. They are not known if a part did not measure for most of it.
func (s *shards) perSecond(step string, t span, of counter) (completed, received float64, known bool) {
	for i, p := range s.parts {
		var f rates
		f.add(p, s.starts[i], step, t, of)
		if f.covered < t.length()*7/10 {
			return 0, 0, false
		}
		completed += f.counts[result.Completed] * second / float64(f.covered)
		received += f.counts[result.Received] * second / float64(f.covered)
	}
	return completed, received, true
}

// receiving returns when the first row of a step with a message received ended, and when the last one began.
func (s *shards) receiving(step string, of counter) (first, last int64) {
	first = math.MaxInt64 - second
	for i, p := range s.parts {
		for k := range p.Rows {
			row := &p.Rows[k]
			c := of(row)
			if row.Step == step && c != nil && c.Consumers != nil && c.Consumers.Received > 0 {
				at := spanOf(row, s.starts[i])
				first, last = min(first, at.to), max(last, at.from)
			}
		}
	}
	return first, last
}

// figures returns the rates of steps, or of a group in them, and the share of the time that they cover. As in a run,
// averages are over the time of all steps, also of steps without the group. Rates are missing if the parts did not
// measure together.
func (s *shards) figures(steps []plannedStep, group string) (*result.Figures, rates) {
	all := rates{share: 1}
	for i := range steps {
		step := &steps[i]
		r := s.ofStep(step, step.counter(group))
		all.span, all.share, all.apart = all.span+r.span, min(all.share, r.share), all.apart || r.apart
		all.producing, all.consuming = all.producing || r.producing, all.consuming || r.consuming
		for k, n := range r.counts {
			all.counts[k] += n
		}
		// The lowest rate is over the steps in which a side takes part, the highest over all steps.
		produces, consumes := step.roles(group)
		r.low.Only(produces, consumes)
		if len(steps) == 1 {
			r.high.Only(produces, consumes)
		}
		all.low.Include(&r.low, 1)
		all.high.Completed.Include(&r.high.Completed, -1)
		all.high.Received.Include(&r.high.Received, -1)
	}
	f := &result.Figures{Span: all.span}
	if all.apart || all.span == 0 {
		return f, all
	}
	for _, a := range []struct {
		to    **float64
		known bool
		of    result.Counter
	}{
		{&f.Sent, all.producing, result.Sent},
		{&f.Completed, all.producing, result.Completed},
		{&f.CompletedBytes, all.producing, result.CompletedBytes},
		{&f.Received, all.consuming, result.Received},
		{&f.ReceivedBytes, all.consuming, result.ReceivedBytes},
	} {
		if n := all.counts[a.of] * second / float64(all.span); a.known {
			*a.to = &n
		}
	}
	f.MinimumCompleted, f.MaximumCompleted = all.low.Completed.IfKnown(), all.high.Completed.IfKnown()
	f.MinimumReceived, f.MaximumReceived = all.low.Received.IfKnown(), all.high.Received.IfKnown()
	return f, all
}

// setFigures sets the figures of the run and its steps. It is a problem if the parts did not measure together, unless a
// part was ended early.
func (s *shards) setFigures() {
	m := s.merged
	m.Figures, _ = s.sum(s.plan.Steps, func(r *result.Result) *result.Figures { return r.Figures })
	for i := range s.plan.Steps {
		name := s.plan.Steps[i].Name
		at := stepOf(m, name)
		if at == nil {
			continue
		}
		var r rates
		at.Figures, r = s.sum(s.plan.Steps[i:i+1], func(r *result.Result) *result.Figures {
			return cmp.Or(stepOf(r, name), &result.Step{}).Figures
		})
		s.apart = s.apart || r.apart
		if !r.apart || at.Figures != nil && at.Figures.Since != nil {
			continue
		}
		text := fmt.Sprintf("step %s: the parts measured together for only %.1f%% of their time: their rates do not "+
			"add up and are not known", name, 100*r.share)
		if o := &m.Outcome; o.Aborted || o.Interrupted {
			o.Warnings = append(o.Warnings, text)
		} else {
			fail(m, text)
		}
	}
}

// sum returns the figures of steps, with the sums over the parts; a single part keeps its own figures. It is nil if a
// part does not know them.
func (s *shards) sum(steps []plannedStep, of func(*result.Result) *result.Figures) (*result.Figures, rates) {
	f, r := s.figures(steps, "")
	if len(s.parts) == 1 {
		return of(s.parts[0]), r
	}
	f.Offered, f.Due, f.Unsent = new(float64), new(uint64), new(uint64)
	backlog := true
	for _, p := range s.parts {
		own := of(p)
		if own == nil {
			return nil, r
		}
		f.Offered = result.AddKnown(f.Offered, own.Offered)
		f.Due, f.Unsent = result.AddKnown(f.Due, own.Due), result.AddKnown(f.Unsent, own.Unsent)
		backlog = backlog && own.Since != nil
	}
	if backlog {
		s.readBacklog(f, of)
	}
	return f, r
}

// readBacklog sets the rates of a backlog: those from its first message to its last.
func (s *shards) readBacklog(f *result.Figures, of func(*result.Result) *result.Figures) {
	t := span{math.MaxInt64, 0}
	var received, bytes float64
	for i, p := range s.parts {
		own := of(p)
		since := s.starts[i] + *own.Since
		t = span{min(t.from, since), max(t.to, since+own.Span)}
		received += *cmp.Or(own.Received, new(float64)) * float64(own.Span)
		bytes += *cmp.Or(own.ReceivedBytes, new(float64)) * float64(own.Span)
	}
	since := t.from - slices.Min(s.starts)
	f.Since, f.Span = &since, t.length()
	f.Sent, f.Completed, f.CompletedBytes, f.Received, f.ReceivedBytes = nil, nil, nil, nil, nil
	if f.Span > 0 {
		received, bytes = received/float64(f.Span), bytes/float64(f.Span)
		f.Received, f.ReceivedBytes = &received, &bytes
	}
}
