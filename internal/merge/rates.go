package merge

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Times are microseconds. The rates of a step add up if all parts measured together for a share of the time: of the
// longest time of a part, and, in a step that each part ends by itself, of the shortest. A time below shortTime is not
// judged.
const (
	enoughTogether = 0.9
	enoughByItself = 0.5
	shortTime      = 3_000_000
)

// span is a time by the clock of the first part.
type span struct{ from, to int64 }

func (s span) length() int64 { return s.to - s.from }

// within returns the part of s in t, which may be empty.
func (s span) within(t span) span {
	from := max(s.from, t.from)
	return span{from, max(from, min(s.to, t.to))}
}

func (s *shards) spanOf(part int, row *result.Row) span {
	end := s.starts[part] + row.Elapsed
	return span{end - row.Length, end}
}

// together returns the time in which all parts measured a step, the time of its rates, and the share of the time in
// which the parts should have measured together: the step is apart if that is too little. A step without a duration
// ends at each part for itself: its rates are of the time from the first start to the last end, as in a run of one
// process.
func (s *shards) together(step *plannedStep) (common, rated span, share float64, apart bool) {
	common, whole := span{0, math.MaxInt64}, span{math.MaxInt64, 0}
	shortest, longest := int64(math.MaxInt64), int64(0)
	for i, p := range s.parts {
		t := span{math.MaxInt64, 0}
		for _, row := range p.Rows {
			if row.Phase == result.Measure && row.Step == step.Name {
				at := s.spanOf(i, &row)
				t = span{min(t.from, at.from), max(t.to, at.to)}
			}
		}
		measured := max(0, t.length())
		shortest, longest = min(shortest, measured), max(longest, measured)
		common = common.within(t)
		whole = span{min(whole.from, t.from), max(whole.to, t.to)}
	}
	wanted, enough := longest, enoughTogether
	rated = common
	if step.Duration == "" {
		wanted, enough, rated = shortest, enoughByItself, whole.within(whole)
	}
	share = min(1, float64(common.length())/float64(max(1, wanted)))
	_, _, backlog := s.readTime(step.Name)
	return common, rated, share, wanted >= shortTime && share < enough && !backlog
}

// row returns the counts of all parts in a time of a phase of a step, or of a group in it. The messages of a row are
// evenly distributed in it.
func (s *shards) row(step *plannedStep, phase, group string, t span) *result.Row {
	var sum [result.NumCounters]float64
	var live uint64
	for i, part := range s.parts {
		var last uint64 // of the part
		first := sort.Search(len(part.Rows), func(k int) bool { return s.spanOf(i, &part.Rows[k]).to > t.from })
		for k := first; k < len(part.Rows); k++ {
			row := &part.Rows[k]
			at := s.spanOf(i, row)
			if at.from >= t.to {
				break
			}
			if c := step.counts(row, group); c != nil && row.Phase == phase && row.Step == step.Name {
				share := float64(at.within(t).length()) / float64(row.Length)
				for counter, n := range c.Values() {
					sum[counter] += share * float64(n)
				}
				if last = 0; step.alone(group) {
					last = row.Live
				}
			}
		}
		live += last
	}
	list := make([]uint64, len(sum))
	for counter, n := range sum {
		list[counter] = uint64(math.Round(n))
	}
	return &result.Row{
		Phase: phase, Length: t.length(), Time: t.to, Elapsed: t.to - slices.Min(s.starts),
		Counts: result.NewCounts(list, true, true, nil), Live: live,
	}
}

// ofStep returns the lowest and highest rates of the seconds in which all parts measured: the first part divides the
// time into seconds. backlog is when the first message of a backlog was read.
func (s *shards) ofStep(
	step *plannedStep, group string, common span, backlog time.Duration,
) (sum stats.Rates) {
	for _, phase := range []string{result.Warmup, result.Measure} {
		before := s.row(step, phase, group, span{0, common.from})
		before.Phase = result.Warmup // its messages count as received before; its rate does not
		sum.Add(before, 0, 0)
	}
	for i := range s.parts[0].Rows {
		row := &s.parts[0].Rows[i]
		t := s.spanOf(0, row).within(common)
		if row.Phase == result.Measure && row.Step == step.Name && t.length() > 0 {
			sum.Add(s.row(step, result.Measure, group, t), 0, backlog)
		}
	}
	return sum
}

// figures returns the rates of steps, or of a group in them, as a run of one process has them: averages are over the
// time of all steps, also of steps without the group. Rates are missing if the parts did not measure together, or if
// the rows do not list the group.
func (s *shards) figures(steps []plannedStep, group string) *result.Figures {
	var all stats.Rates
	known, allSend, allReceive := true, false, false
	for i := range steps {
		step := &steps[i]
		common, rated, _, apart := s.together(step)
		sends, receives := step.has(group)&threshold.Producers != 0, step.has(group)&threshold.Consumers != 0
		allSend, allReceive, known = allSend || sends, allReceive || receives, known && !apart
		known = known && (step.alone(group) || step.has(group) == 0 || s.listed(group))
		counts := s.row(step, result.Measure, group, rated).Values()
		all.Average.Add(time.Duration(rated.length())*time.Microsecond, counts[:])
		first, last, read := s.readTime(step.Name)
		one := s.ofStep(step, group, common, first)
		if read {
			one.ReadBacklog(first, last)
			if a := &all.Average; len(steps) == 1 { // else it is over the whole time
				a.Read, a.Since, a.Span = true, first, last-first
			}
		}
		if one.Live != nil && (all.Live == nil || *one.Live > *all.Live) {
			all.Live = one.Live
		}
		one.Minimum.Only(sends, receives)
		all.Minimum.Include(&one.Minimum, 1)
		all.Maximum.Include(&one.Maximum, -1)
	}
	return all.FiguresOf(allSend && known, allReceive && known)
}

// readTime returns when the parts read the first and the last message of a backlog, from the first start. It is false
// if the step did not read one.
func (s *shards) readTime(step string) (first, last time.Duration, ok bool) {
	from, to := int64(math.MaxInt64), int64(0)
	for i, p := range s.parts {
		f := stepOf(p, step).Figures
		if f == nil || f.Since == nil {
			return 0, 0, false
		}
		since := s.starts[i] - slices.Min(s.starts) + *f.Since
		from, to = min(from, since), max(to, since+f.Span)
	}
	return time.Duration(from) * time.Microsecond, time.Duration(to) * time.Microsecond, true
}

// setFigures sets the rates of the run and its steps. It is a problem if the parts did not measure together, unless a
// part was ended early.
func (s *shards) setFigures() {
	m := s.merged
	m.Figures = s.sum(s.plan.Steps, func(r *result.Result) *result.Figures { return r.Figures })
	for i := range s.plan.Steps {
		step := &s.plan.Steps[i]
		stepOf(m, step.Name).Figures = s.sum(s.plan.Steps[i:i+1], func(r *result.Result) *result.Figures {
			return stepOf(r, step.Name).Figures
		})
		_, _, share, apart := s.together(step)
		if !apart {
			continue
		}
		text := fmt.Sprintf("step %s: the shards measured together for only %.1f%% of their time: their rates do "+
			"not add up and are not known", step.Name, 100*share)
		if o := &m.Outcome; o.Aborted || o.Interrupted {
			o.Warnings = append(o.Warnings, text)
		} else {
			fail(m, text)
		}
	}
}

// sum returns the rates of steps, with the sums of the parts' targets. It is nil if a part does not know them.
func (s *shards) sum(steps []plannedStep, of func(*result.Result) *result.Figures) *result.Figures {
	f := s.figures(steps, "")
	f.Offered, f.Due, f.Unsent = new(float64), new(uint64), new(uint64)
	for _, p := range s.parts {
		own := of(p)
		if own == nil {
			return nil
		}
		f.Offered = result.AddKnown(f.Offered, own.Offered)
		f.Due, f.Unsent = result.AddKnown(f.Due, own.Due), result.AddKnown(f.Unsent, own.Unsent)
	}
	return f
}
