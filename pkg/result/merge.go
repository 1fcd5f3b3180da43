package result

import (
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

// Merge returns one result of several runs that ran side by side with the same plan, for example on several load hosts:
// the shards of one run, or independent runs. The results do not change.
//
// Counts and histograms add up without loss. Rows are aligned by the wall clock: to the nearest second from the
// earliest start. The clocks of shards are corrected where their offsets are known, see [Clock]. Merged rows have
// percentiles if all rows were read with [RowHistograms], or if only one of them has values. Verifications add up if
// each knows which messages should have arrived. Otherwise the merged result has no verification, and a warning: the
// numbers in verify.pv must be joined. The same holds for shards, which know only some of the numbers each.
//
// Merge refuses results of different plans or of the same run, and shards of different runs or beside other results,
// with [ErrUnlike]. If shards are missing (see [Missing]), the result has a warning.
func Merge(results ...*Result) (*Result, error) {
	if err := mergeable(results); err != nil {
		return nil, err
	}
	results = slices.Clone(results)
	slices.SortStableFunc(results, byShard)
	first := results[0]
	m := &Result{
		Head: first.Head, Complete: true, Measured: &Counts{}, Expected: new(uint64), Missing: new(uint64),
		Outcome: Outcome{Success: true, Reason: first.Outcome.Reason},
	}
	m.Labels, m.Shard = maps.Clone(first.Labels), nil
	clocks, contradiction := []*Clock(nil), error(nil)
	if first.Shard != nil {
		clocks, contradiction = clocksOf(results)
	}
	starts := startsOf(results, clocks)
	m.Start = slices.Min(starts)
	for i, r := range results {
		if err := m.merge(r.onTimeLine(r.Start-starts[i], starts[i]-m.Start)); err != nil {
			return nil, err
		}
	}
	if first.Shard == nil {
		m.mergeVerification(results)
	} else {
		m.mergeClocks(results, clocks, contradiction)
		if missing := Missing(results...); len(missing) > 0 {
			m.Complete = false
			m.Outcome.Warnings = append(m.Outcome.Warnings, "shards are missing: "+shardsText(missing, first.Shard.Of))
		}
	}
	var err error
	if m.Rows, err = mergeRows(results, starts); err != nil {
		return nil, err
	}
	return m, m.mergeFigures(results, starts)
}

// mergeFigures sets the figures. It is a problem if the parts did not measure together, unless a part was ended early.
func (r *Result) mergeFigures(parts []*Result, starts []int64) (err error) {
	if r.Figures, err = mergedFigures(parts, starts, ""); err != nil {
		return err
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Figures, err = mergedFigures(parts, starts, s.Name); err != nil {
			return err
		}
		t := MeasureTogether(parts, starts, s.Name, func(*Row) *Counts { return nil })
		if !t.Apart || s.Figures != nil && s.Figures.Since != nil {
			continue
		}
		text := fmt.Sprintf("step %s: the parts measured together for only %.1f%% of their time: their rates do not "+
			"add up and are not known", s.Name, 100*t.Share)
		o := &r.Outcome
		if o.Aborted || o.Interrupted {
			o.Warnings = append(o.Warnings, text)
			continue
		}
		o.Problems, o.Success = append(o.Problems, text), false
		o.Status = Graver(o.Status, StatusFailed)
	}
	return nil
}

func mergeable(results []*Result) error {
	switch {
	case len(results) == 0:
		return fmt.Errorf("%w: there is none", ErrUnlike)
	case len(results) > maxMerged:
		return fmt.Errorf("%w: there are more than %d", ErrUnlike, maxMerged)
	}
	seen := map[string]bool{}
	for _, r := range results {
		if err := r.checkShard(results[0]); err != nil {
			return err
		}
		if r.PlanHash != results[0].PlanHash {
			return fmt.Errorf("%w: run %s has another plan than run %s", ErrUnlike, r.RunID, results[0].RunID)
		}
		for _, part := range r.parts() {
			id := part.RunID
			if part.Shard != nil {
				id = fmt.Sprintf("%s, shard %d", part.RunID, part.Shard.Number)
			}
			if seen[id] {
				return fmt.Errorf("%w: run %s is there twice", ErrUnlike, id)
			}
			seen[id] = true
		}
	}
	return nil
}

// parts returns the runs that a result consists of.
func (r *Result) parts() []Part {
	if len(r.Parts) > 0 {
		return r.Parts
	}
	return []Part{{RunID: r.RunID, Host: r.Host, Start: r.Start, End: r.End, Shard: r.Shard, Thresholds: r.Thresholds}}
}

// merge adds a part, except its rows and its verification.
func (r *Result) merge(part *Result) (err error) {
	r.Parts = append(r.Parts, part.parts()...)
	r.Thresholds = nil // each applies to its part, and stays with that
	r.Complete = r.Complete && part.Complete
	r.End = max(r.End, part.End)
	r.Warmup = max(r.Warmup, part.Warmup)
	for key, value := range r.Labels { // only labels common to all results stay
		if part.Labels[key] != value {
			delete(r.Labels, key)
		}
	}
	r.Outcome.merge(&part.Outcome, part.name())
	if err := errors.Join(r.Total.add(&part.Total), r.Latencies.add(&part.Latencies),
		r.Tester.add(&part.Tester)); err != nil {
		return err
	}
	r.Tester.Cores += part.Tester.Cores
	r.Tester.Memory += part.Tester.Memory
	r.Tester.MemoryPeak += part.Tester.MemoryPeak
	if r.Measured == nil || part.Measured == nil {
		r.Measured = nil
	} else if err = r.Measured.add(part.Measured); err != nil {
		return err
	}
	if r.Expected, err = addKnown(r.Expected, part.Expected); err != nil {
		return err
	}
	if r.Missing, err = addKnown(r.Missing, part.Missing); err != nil {
		return err
	}
	if err := errors.Join(addTo(&r.MoreStalls, part.MoreStalls), r.mergeOutages(part)); err != nil {
		return err
	}
	if part.MoreStalls > 0 && len(part.Parts) < 2 {
		r.Outcome.Warnings = append(r.Outcome.Warnings, fmt.Sprintf("%s: %d stalls are not listed, beside the first %d",
			part.name(), part.MoreStalls, len(part.Stalls)))
	}
	for name, n := range part.Protocol {
		sum := r.Protocol[name]
		if err := addTo(&sum, n); err != nil {
			return err
		}
		if r.Protocol == nil {
			r.Protocol = map[string]uint64{}
		}
		r.Protocol[name] = sum
	}
	r.mergeOfHost(part)
	r.Limit = mergedLimit(r.Limit, part.Limit, part.name())
	r.mergeFindings(part)
	for _, b := range part.Brokers {
		if !slices.Contains(r.Brokers, b) {
			r.Brokers = append(r.Brokers, b)
		}
	}
	return errors.Join(r.mergeSteps(part), r.mergeErrors(part))
}

// addKnown adds two numbers; the sum is known only if both are.
func addKnown(a, b *uint64) (*uint64, error) {
	if a == nil || b == nil {
		return nil, nil //nolint:nilnil // an unknown number
	}
	sum := *a
	return &sum, addTo(&sum, *b)
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

func (r *Result) mergeSteps(part *Result) error {
	for i := range part.Steps {
		from := &part.Steps[i]
		at := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Name == from.Name })
		if at < 0 {
			r.Steps = append(r.Steps, Step{Name: from.Name, Reason: from.Reason, Start: from.Start})
			at = len(r.Steps) - 1
		}
		to := &r.Steps[at]
		to.Reason = mergedReason(to.Reason, from.Reason)
		to.Limit = mergedLimit(to.Limit, from.Limit, part.name())
		to.Start, to.End = min(to.Start, from.Start), max(to.End, from.End)
		err := errors.Join(to.Counts.add(&from.Counts), to.Latencies.add(&from.Latencies), to.mergeGroups(from.Groups))
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) mergeGroups(part []Group) error {
	for i := range part {
		from := &part[i]
		at := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == from.Name })
		if at < 0 {
			s.Groups = append(s.Groups, Group{Name: from.Name})
			at = len(s.Groups) - 1
		}
		if err := s.Groups[at].Add(from); err != nil {
			return err
		}
	}
	return nil
}

// mergedExamples is the number of examples of one kind that a merged result keeps.
const mergedExamples = 10

func examples(to, from []string) []string {
	return append(slices.Clone(to), from[:min(len(from), max(0, mergedExamples-len(to)))]...)
}

func (r *Result) mergeErrors(part *Result) error {
	for _, from := range part.Errors {
		at := slices.IndexFunc(r.Errors, func(f Failure) bool { return f.Class == from.Class })
		if at < 0 {
			r.Errors = append(r.Errors, Failure{Class: from.Class})
			at = len(r.Errors) - 1
		}
		to := &r.Errors[at]
		to.Examples = examples(to.Examples, from.Examples)
		if err := addTo(&to.Count, from.Count); err != nil {
			return err
		}
	}
	return nil
}

// mergeFindings keeps the findings of each host separate: their texts contain numbers.
func (r *Result) mergeFindings(part *Result) {
	for _, f := range part.Findings {
		if strings.HasPrefix(f.Kind, BrokerFindings) { // the broker has counted the messages of all parts
			continue
		}
		if len(part.Parts) == 0 {
			f.Text = part.name() + ": " + f.Text
		}
		r.Findings = append(r.Findings, f)
	}
}

func (r *Result) mergeVerification(results []*Result) {
	sum := &Verification{Known: true}
	verified := 0
	for _, part := range results {
		v := part.Verification
		if v == nil {
			continue
		}
		verified++
		sum.Known = sum.Known && v.Known
		err := errors.Join(addTo(&sum.Sent, v.Sent), addAll(sum.Total.counters(), v.Total.counters()))
		sum.Known = sum.Known && err == nil
		sum.Subscriptions = append(sum.Subscriptions, v.Subscriptions...)
		sum.Unwatched = append(sum.Unwatched, v.Unwatched...)
		for _, note := range v.Notes {
			sum.Notes = append(sum.Notes, part.Host.Name+": "+note)
		}
	}
	switch {
	case verified == 0:
	case verified == len(results) && sum.Known:
		r.Verification = sum
	default:
		r.Outcome.Warnings = append(r.Outcome.Warnings, "the verifications do not add up, since not every part knows what "+
			"was to arrive: join the numbers with perfmq verify and the folders of all parts")
	}
}
