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
	m.Labels, m.Shard, m.Clock = maps.Clone(first.Labels), nil, nil
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
	if t := part.Trace; t != nil {
		if r.Trace == nil {
			r.Trace = &Trace{Sample: t.Sample}
		}
		addTo(&r.Trace.Events, t.Events)
		addTo(&r.Trace.Dropped, t.Dropped)
	}
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
		to := named(&r.Steps, from.Name, stepName)
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

// String returns the shard as --shard names it: 2/5.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Of) }

// Missing names the missing shards of a run, the first ten of them: 2/5, 4/5. It is empty if all are there.
func Missing(shards ...*Result) string {
	const most = 10
	var names []string
	for s := (Shard{1, shards[0].Shard.Of}); s.Number <= s.Of; s.Number++ {
		if !slices.ContainsFunc(shards, func(r *Result) bool { return r.Shard.Number == s.Number }) {
			names = append(names, s.String())
		}
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// warnedError is the error of transfer times, in microseconds, from which on a warning reports it.
const warnedError = 1000

// mergeClocks sets the clock offsets of shards, or reports why they are unknown.
func (r *Result) mergeClocks(shards []*Result, known []*Clock, contradiction error) {
	const off = "; transfer times of messages between hosts are off by that"
	warn := func(text string) { r.Outcome.Warnings = append(r.Outcome.Warnings, text) }
	if contradiction != nil {
		warn("by how much the clocks of the hosts differ is not known: " + contradiction.Error() + off +
			", and the times of the hosts are not corrected")
		return
	}
	worst, differing := 0, 0
	var unknown []string
	for i, c := range known {
		r.Parts[i].Clock = c
		if c == nil {
			unknown = append(unknown, shards[i].name())
		} else if most := c.bound(); most > warnedError {
			differing++
			if most > known[worst].bound() {
				worst = i
			}
		}
	}
	if differing > 0 {
		warn(fmt.Sprintf("%s; of the clocks of the %d hosts that differ, or may, by more than %d ms it differs the most%s; "+
			"other times, rows and the verification are corrected",
			known[worst].text(shards[worst].name(), shards[0].name()), differing, warnedError/1000, off))
	}
	if len(unknown) > 0 {
		warn("by how much their clocks differ from that of " + shards[0].name() +
			" is not known, since no messages went both ways or the clocks drifted: " +
			strings.Join(unknown[:min(10, len(unknown))], ", "))
	}
}

// name returns the name of a part's host, and its shard, for texts.
func (r *Result) name() string { return fmt.Sprintf("%s (shard %d)", r.Host.Name, r.Shard.Number) }

// mergeRows aligns the rows of results by their starts, as one clock measures them.
func mergeRows(results []*Result, starts []int64) []Row {
	merged := spots{}
	first := slices.Min(starts)
	for i, r := range results {
		ahead := starts[i] - first
		apart := r.Start - starts[i] // of the clocks
		offset := (ahead + second/2) / second
		own := spots{} // rows of one result follow each other, rows of several results are side by side
		for i := range r.Rows {
			row := r.Rows[i].clone()
			at := spotOf(row, offset)
			row.Elapsed += offset * second
			row.Time += offset*second - ahead - apart
			row.Arrivals = nil // they only served to compare the clocks
			own.put(at, row, (*Row).follow)
		}
		for at, row := range own {
			merged.put(at, row, (*Row).beside)
		}
	}
	rows := make([]Row, 0, len(merged))
	for _, row := range merged.inTime() {
		rows = append(rows, *row)
	}
	return rows
}

// spot is where a row belongs in a merged result.
type spot struct {
	second      int64 // from the earliest start
	step, phase string
}

// spotOf returns the spot of a row of a part whose start was so many seconds after the earliest.
func spotOf(r *Row, offset int64) spot {
	return spot{offset + max(0, r.Elapsed-(r.Length+1)/2)/second, r.Step, r.Phase}
}

// spots has one row for each spot.
type spots map[spot]*Row

// put adds a row: join adds it to an earlier one of its spot.
func (s spots) put(at spot, row *Row, join func(earlier, row *Row)) {
	if s[at] == nil {
		s[at] = row
	} else {
		join(s[at], row)
	}
}

// inTime returns the rows in the order of time.
func (s spots) inTime() []*Row {
	return slices.SortedFunc(maps.Values(s), func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Elapsed, b.Elapsed), cmp.Compare(a.Length, b.Length))
	})
}

// clone returns a copy that shares nothing that add changes.
func (r *Row) clone() *Row {
	c := *r
	c.Counts, c.Latencies, c.Leftover, c.Groups = Counts{}, Latencies{}, nil, nil
	c.Tester = Tester{Cores: r.Tester.Cores, Memory: r.Tester.Memory, MemoryPeak: r.Tester.MemoryPeak}
	c.add(r)
	if r.Verified != nil {
		c.Verified = new(*r.Verified)
	}
	return &c
}

// Join returns the row and the one after it as one. Neither changes.
func (r *Row) Join(next *Row) *Row {
	joined := r.clone()
	joined.follow(next)
	return joined
}

// follow adds the row after r.
func (r *Row) follow(next *Row) {
	r.Length += next.Elapsed - r.Elapsed
	r.Time, r.Elapsed, r.InFlight, r.Workers, r.Live = next.Time, next.Elapsed, next.InFlight, next.Workers, next.Live
	r.Disconnected, r.Outages, r.Backlog, r.Verified = next.Disconnected, next.Outages, next.Backlog, next.Verified
	r.BrokerSide = next.BrokerSide
	r.Tester.Cores, r.Tester.Memory = next.Tester.Cores, next.Tester.Memory
	r.add(next)
}

// beside adds a row of the same second of another result.
func (r *Row) beside(other *Row) {
	from := min(r.Elapsed-r.Length, other.Elapsed-other.Length)
	r.Elapsed, r.Time = max(r.Elapsed, other.Elapsed), max(r.Time, other.Time)
	r.Length = r.Elapsed - from
	r.InFlight += other.InFlight
	r.Workers += other.Workers
	r.Live += other.Live
	r.Disconnected += other.Disconnected
	// hosts see the same outages
	r.Outages = max(r.Outages, other.Outages)
	if r.Backlog == nil || other.Backlog != nil && *other.Backlog > *r.Backlog { // of the same broker
		r.Backlog = other.Backlog
	}
	if r.BrokerSide == nil { // from the first host that watched a broker
		r.BrokerSide = other.BrokerSide
	}
	r.Tester.Cores += other.Tester.Cores
	r.Tester.Memory += other.Tester.Memory
	if other.Verified != nil {
		if r.Verified == nil {
			r.Verified = &Progress{}
		}
		r.Verified.Add(other.Verified)
	}
	r.add(other)
}

// add adds counts, latencies and the use of the machine.
func (r *Row) add(other *Row) {
	r.Add(&other.Counts)
	r.Latencies.add(&other.Latencies)
	r.Leftover = addLatencies(r.Leftover, other.Leftover)
	r.Tester.add(&other.Tester)
	for i := range other.Groups {
		r.AddGroup(&other.Groups[i])
	}
}

// AddGroup adds the figures of a group to those of its name.
func (r *Row) AddGroup(from *RowGroup) {
	to := named(&r.Groups, from.Name, func(g *RowGroup) *string { return &g.Name })
	to.Add(&from.Counts)
	to.Latencies = addLatencies(to.Latencies, from.Latencies)
}

func addLatencies(to, from *Latencies) *Latencies {
	if from == nil {
		return to
	}
	if to == nil {
		to = &Latencies{}
	}
	to.add(from)
	return to
}

// named returns the item of a name, and appends it if it is missing.
func named[T any](list *[]T, name string, nameOf func(*T) *string) *T {
	for i := range *list {
		if item := &(*list)[i]; *nameOf(item) == name {
			return item
		}
	}
	*list = append(*list, *new(T))
	item := &(*list)[len(*list)-1]
	*nameOf(item) = name
	return item
}

// startsOf returns when the loads of results began, by the clock of the first one as far as the offsets are known.
func startsOf(results []*Result, clocks []*Clock) []int64 {
	starts := make([]int64, len(results))
	for i, r := range results {
		starts[i] = r.Start
		if clocks[i] != nil {
			starts[i] -= int64(clocks[i].Start.Ahead)
		}
	}
	return starts
}

// onTimeLine returns the result with its times converted to the merged result: moments by the reference clock, which
// its own clock is ahead of, and times since the earliest start of a load, which was before its own start by earlier.
// Its rows do not change, and its part keeps the times of its own clock.
func (r *Result) onTimeLine(ahead, earlier int64) *Result {
	c := *r
	c.Parts = []Part{{RunID: r.RunID, Host: r.Host, Start: r.Start, End: r.End, Shard: r.Shard, Limit: r.Limit}}
	move := func(moment *int64) { *moment = max(0, *moment-ahead) }
	move(&c.End)
	c.Steps, c.Stalls, c.Outages = slices.Clone(r.Steps), slices.Clone(r.Stalls), slices.Clone(r.Outages)
	for i := range c.Steps {
		move(&c.Steps[i].Start)
		move(&c.Steps[i].End)
	}
	for i := range c.Stalls {
		move(&c.Stalls[i].Time)
		c.Stalls[i].Elapsed += earlier
	}
	for i := range c.Outages {
		move(&c.Outages[i].Time)
		c.Outages[i].Elapsed += earlier
	}
	c.BrokerSide = slices.Clone(r.BrokerSide)
	for i := range c.BrokerSide {
		events := slices.Clone(c.BrokerSide[i].Events)
		for k := range events {
			move(&events[k].Time)
		}
		c.BrokerSide[i].Events = events
	}
	return &c
}

// mergeOfHost joins the lists that each host has, with the host's name; and with its shard where several processes of
// one host, or of hosts with the same name, may have noticed the same event.
func (r *Result) mergeOfHost(part *Result) {
	host := part.Host.Name
	r.Workers = ofHost(r.Workers, part.Workers, host, func(w *Worker) *string { return &w.Host })
	r.Commands = ofHost(r.Commands, part.Commands, host, func(c *Command) *string { return &c.Host })
	r.Stalls = ofHost(r.Stalls, part.Stalls, part.name(), func(s *Stall) *string { return &s.Host })
	r.Marks = ofHost(r.Marks, part.Marks, host, func(m *Mark) *string { return &m.Host })
	r.Outages = ofHost(r.Outages, part.Outages, part.name(), func(o *Outage) *string { return &o.Host })
	r.BrokerSide = ofHost(r.BrokerSide, part.BrokerSide, part.name(), func(s *BrokerSide) *string { return &s.Host })
}

// ofHost appends items with the name of their host.
func ofHost[T any](to, from []T, host string, hostOf func(*T) *string) []T {
	for _, item := range from {
		*hostOf(&item) = host
		to = append(to, item)
	}
	return to
}
