package result

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrUnlike is in the error of [Merge] for results that do not belong together.
var ErrUnlike = errors.New("the results do not belong together")

// second is the length of a row, in microseconds.
const second = 1_000_000

// Merge returns one result of the shards of a run. The shards do not change.
//
// Counts and histograms add up without loss. Rows are aligned by the wall clock: to the nearest second from the
// earliest start. Clocks are corrected where their offsets are known, see [Clock]. Merged rows have percentiles if all
// rows were read with [ReadHistograms], or if only one of them has values. The merged result has no verification and no
// figures: each shard knows a part of the messages, and rates of different times do not add up.
//
// Merge refuses results that are not shards of one run, with [ErrUnlike]. If shards are missing (see [Missing]), the
// result has a warning.
func Merge(shards ...*Result) (*Result, error) {
	if err := mergeable(shards); err != nil {
		return nil, err
	}
	shards = slices.Clone(shards)
	slices.SortFunc(shards, ByShard)
	first := shards[0]
	m := &Result{
		Head: first.Head, Complete: true, Measured: &Counts{}, Expected: new(uint64), Missing: new(uint64),
		Outcome: Outcome{Success: true, Reason: first.Outcome.Reason},
	}
	m.Labels, m.Shard = maps.Clone(first.Labels), nil
	clocks, contradiction := clocksOf(shards)
	starts := startsOf(shards, clocks)
	m.Start = slices.Min(starts)
	for i, r := range shards {
		m.merge(r.onTimeLine(r.Start-starts[i], starts[i]-m.Start))
	}
	m.mergeClocks(shards, clocks, contradiction)
	if missing := Missing(shards...); missing != "" {
		m.Complete = false
		m.Outcome.Warnings = append(m.Outcome.Warnings, "shards are missing: "+missing)
	}
	m.Rows = mergeRows(shards, starts)
	return m, nil
}

// ByShard orders shards by their numbers.
func ByShard(a, b *Result) int { return cmp.Compare(a.Shard.Number, b.Shard.Number) }

func mergeable(shards []*Result) error {
	if len(shards) == 0 || len(shards) > maxMerged {
		return fmt.Errorf("%w: there are %d, and not 1 to %d", ErrUnlike, len(shards), maxMerged)
	}
	first, seen := shards[0], map[int]bool{}
	for _, r := range shards {
		switch {
		case r.Shard == nil:
			return fmt.Errorf("%w: run %s is not divided into shards", ErrUnlike, r.RunID)
		case r.RunID != first.RunID || r.Shard.Of != first.Shard.Of || r.Shard.Number < 1 || r.Shard.Number > r.Shard.Of:
			return fmt.Errorf("%w: shard %s of run %s and shard %s of run %s", ErrUnlike, first.Shard, first.RunID, r.Shard,
				r.RunID)
		case r.PlanHash != first.PlanHash:
			return fmt.Errorf("%w: shard %s has another plan than shard %s", ErrUnlike, r.Shard, first.Shard)
		case seen[r.Shard.Number]:
			return fmt.Errorf("%w: shard %s is there twice", ErrUnlike, r.Shard)
		}
		seen[r.Shard.Number] = true
	}
	return nil
}

// merge adds a part, except its rows and its verification.
func (r *Result) merge(part *Result) {
	r.Parts = append(r.Parts, part.Parts...)
	r.Complete = r.Complete && part.Complete
	r.End = max(r.End, part.End)
	r.Warmup = max(r.Warmup, part.Warmup)
	for key, value := range r.Labels { // only labels common to all results stay
		if part.Labels[key] != value {
			delete(r.Labels, key)
		}
	}
	r.Outcome.merge(&part.Outcome, part.name())
	r.Total.Add(&part.Total)
	r.Latencies.add(&part.Latencies)
	r.Tester.add(&part.Tester)
	r.Tester.Cores += part.Tester.Cores
	r.Tester.Memory += part.Tester.Memory
	r.Tester.MemoryPeak += part.Tester.MemoryPeak
	r.Measured = addKnownCounts(r.Measured, part.Measured)
	r.Expected, r.Missing = AddKnown(r.Expected, part.Expected), AddKnown(r.Missing, part.Missing)
	r.mergeOutages(part)
	addTo(&r.MoreStalls, part.MoreStalls)
	if part.MoreStalls > 0 {
		r.Outcome.Warnings = append(r.Outcome.Warnings, fmt.Sprintf("%s: %d stalls are not listed, beside the first %d",
			part.name(), part.MoreStalls, len(part.Stalls)))
	}
	r.Protocol = addCounts(r.Protocol, part.Protocol)
	r.mergeOfHost(part)
	r.Limit = mergedLimit(r.Limit, part.Limit, part.name())
	r.mergeFindings(part)
	for _, b := range part.Brokers {
		if !slices.Contains(r.Brokers, b) {
			r.Brokers = append(r.Brokers, b)
		}
	}
	r.mergeSteps(part)
	for _, from := range part.Errors {
		to := named(&r.Errors, from.Class, func(f *Failure) *string { return &f.Class })
		to.Examples = append(slices.Clone(to.Examples),
			from.Examples[:min(len(from.Examples), max(0, mergedExamples-len(to.Examples)))]...)
		addTo(&to.Count, from.Count)
	}
}

// mergedExamples is the number of examples of one kind that a merged result keeps.
const mergedExamples = 10

// AddKnown adds two numbers; the sum is known only if both are.
func AddKnown[T uint64 | float64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// addKnownCounts adds to the first counts. The sum is known only if both are.
func addKnownCounts(to, from *Counts) *Counts {
	if to == nil || from == nil {
		return nil
	}
	to.Add(from)
	return to
}

func (o *Outcome) merge(other *Outcome, host string) {
	o.Success = o.Success && other.Success
	o.Status = Graver(o.Status, other.Status)
	o.Reason = mergedReason(o.Reason, other.Reason)
	o.Interrupted, o.Aborted = o.Interrupted || other.Interrupted, o.Aborted || other.Aborted
	if other.Aborted {
		o.Warnings = append(o.Warnings, host+": ended early by a threshold, so that a part of its load was not offered")
	}
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&o.Problems, other.Problems}, {&o.Warnings, other.Warnings}, {&o.LeftBehind, other.LeftBehind}} {
		for _, text := range list.from {
			*list.to = append(*list.to, host+": "+text)
		}
	}
}

func mergedReason(a, b string) string {
	if a != b {
		return "different reasons"
	}
	return a
}

// mergedLimit returns the limit, if there is one, that held for most of the time, and its host.
func mergedLimit(to, from *Limit, host string) *Limit {
	if from == nil || to != nil && (from.Kind == LimitNone || to.Kind != LimitNone && to.Share >= from.Share) {
		return to
	}
	l := *from
	if l.Kind != LimitNone {
		l.Text = host + ": " + l.Text
	}
	return &l
}

func (r *Result) mergeSteps(part *Result) {
	for _, from := range part.Steps {
		to := named(&r.Steps, from.Name, func(s *Step) *string { return &s.Name })
		if to.Start == 0 {
			to.Reason, to.Start, to.Measured = from.Reason, from.Start, &Counts{}
		}
		to.Reason = mergedReason(to.Reason, from.Reason)
		to.Limit = mergedLimit(to.Limit, from.Limit, part.name())
		to.Start, to.End = min(to.Start, from.Start), max(to.End, from.End)
		to.Counts.Add(&from.Counts)
		to.Measured = addKnownCounts(to.Measured, from.Measured)
		to.Latencies.add(&from.Latencies)
		for _, group := range from.Groups {
			named(&to.Groups, group.Name, func(g *Group) *string { return &g.Name }).Add(&group)
		}
	}
}

// mergeFindings keeps the findings of each host separate: their texts contain numbers.
func (r *Result) mergeFindings(part *Result) {
	for _, f := range part.Findings {
		if strings.HasPrefix(f.Kind, BrokerFindings) { // the broker has counted the messages of all parts
			continue
		}
		f.Text = part.name() + ": " + f.Text
		r.Findings = append(r.Findings, f)
	}
}
