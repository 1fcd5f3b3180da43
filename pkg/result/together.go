package result

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// The share of the measured time in which all parts must have measured for their rates to add up: of the longest time
// of a part, and, in a step that each part ends by itself, of the shortest. A time below shortTime is not judged.
const (
	enoughTogether = 0.9
	enoughByItself = 0.5
	shortTime      = 3 * second
)

// Together are the messages of several results in the time in which all of them measured. Rates of other times do not
// add up.
type Together struct {
	// Span is that time in microseconds.
	Span int64
	// Share is the share of the measured time in which all parts measured; of several steps, the lowest one.
	Share float64
	// Apart: that is too little for a rate of all parts.
	Apart bool

	producing, consuming          bool
	sent, completed, received     float64
	completedBytes, receivedBytes float64
}

// span is a time in microseconds.
type span struct{ from, to int64 }

// MeasureTogether returns the messages of a step or, without a name, of all steps. Starts are the starts of the loads
// of the parts, by one clock. Counts returns the counts of a row, nil for none.
//
// A step without a duration ends when its messages are sent or read, at each part for itself: its time lasts from the
// first start to the last end, as that of one process does. Share is of the time of the part that measured longest, or,
// in such a step, shortest.
func MeasureTogether(parts []*Result, starts []int64, step string, counts func(*Row) *Counts) (all Together) {
	var steps []string
	for _, p := range parts {
		for i := range p.Steps {
			if name := p.Steps[i].Name; (step == "" || name == step) && !slices.Contains(steps, name) {
				steps = append(steps, name)
			}
		}
	}
	all.Share = 1
	for _, name := range steps {
		var common, whole []span
		shortest, longest := int64(math.MaxInt64), int64(0)
		for i, p := range parts {
			times := p.measured(name, starts[i])
			shortest, longest = min(shortest, length(times)), max(longest, length(times))
			whole = union(whole, times)
			if i == 0 {
				common = times
			}
			common = overlap(common, times)
		}
		together, of, enough := length(common), longest, enoughTogether
		if parts[0].endsByItself(name) {
			of, enough, common = shortest, enoughByItself, whole
		}
		if together < of {
			all.Share = min(all.Share, float64(together)/float64(of))
		}
		all.Apart = all.Apart || of >= shortTime && float64(together) < enough*float64(of)
		all.Span += length(common)
		for i, p := range parts {
			all.add(p, name, starts[i], common, counts)
		}
	}
	return all
}

// Averages are the average rates of that time; none if the parts were apart.
func (t *Together) Averages() (a Averages) {
	if t.Span <= 0 || t.Apart {
		return a
	}
	rate := func(there bool, n float64) *float64 {
		if !there {
			return nil
		}
		n *= second / float64(t.Span)
		return &n
	}
	a.Sent, a.Completed = rate(t.producing, t.sent), rate(t.producing, t.completed)
	a.Received = rate(t.consuming, t.received)
	a.CompletedBytes, a.ReceivedBytes = rate(t.producing, t.completedBytes), rate(t.consuming, t.receivedBytes)
	return a
}

// endsByItself tells whether a step of the plan has no duration.
func (r *Result) endsByItself(step string) bool {
	var plan struct {
		Steps []struct{ Name, Duration string }
	}
	if err := json.Unmarshal(r.Plan, &plan); err != nil {
		return false
	}
	for _, s := range plan.Steps {
		if s.Name == step {
			return s.Duration == ""
		}
	}
	return false
}

// measured returns the times of the measured rows of a step, in order.
func (r *Result) measured(step string, start int64) (times []span) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Phase != Measure || row.Step != step {
			continue
		}
		t := span{start + row.Elapsed - row.Length, start + row.Elapsed}
		if n := len(times); n > 0 && t.from <= times[n-1].to {
			times[n-1].to = max(times[n-1].to, t.to)
			continue
		}
		times = append(times, t)
	}
	return times
}

func length(times []span) (sum int64) {
	for _, t := range times {
		sum += t.to - t.from
	}
	return sum
}

// union returns the times that are in one of the lists.
func union(a, b []span) (all []span) {
	for _, t := range slices.SortedFunc(slices.Values(slices.Concat(a, b)), func(a, b span) int {
		return cmp.Compare(a.from, b.from)
	}) {
		if n := len(all); n > 0 && t.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, t.to)
			continue
		}
		all = append(all, t)
	}
	return all
}

// overlap returns the times that are in both lists.
func overlap(a, b []span) (both []span) {
	for len(a) > 0 && len(b) > 0 {
		if t := (span{max(a[0].from, b[0].from), min(a[0].to, b[0].to)}); t.from < t.to {
			both = append(both, t)
		}
		if a[0].to < b[0].to {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// add adds the messages of a part in these times. A row is even in itself.
func (t *Together) add(part *Result, step string, start int64, times []span, counts func(*Row) *Counts) {
	for i := range part.Rows {
		row := &part.Rows[i]
		if row.Phase != Measure || row.Step != step {
			continue
		}
		from, to := start+row.Elapsed-row.Length, start+row.Elapsed
		at, _ := slices.BinarySearchFunc(times, from, func(s span, from int64) int { return cmp.Compare(s.to, from) })
		var within int64
		for ; at < len(times) && times[at].from < to; at++ {
			within += max(0, min(to, times[at].to)-max(from, times[at].from))
		}
		share, c := float64(within)/float64(row.Length), counts(row)
		if c == nil {
			continue
		}
		if p := c.Producers; p != nil {
			t.producing = true
			t.sent += share * float64(p.Sent)
			t.completed += share * float64(p.Completed)
			t.completedBytes += share * float64(p.CompletedBytes)
		}
		if c := c.Consumers; c != nil {
			t.consuming = true
			t.received += share * float64(c.Received)
			t.receivedBytes += share * float64(c.ReceivedBytes)
		}
	}
}
