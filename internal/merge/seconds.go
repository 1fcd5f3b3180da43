package merge

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// fullSecond is the length from which a row counts as a full second, in microseconds, and enoughSeconds how many there
	// must be for the lowest or highest rate to mean anything: as in a run.
	fullSecond    = 700_000
	enoughSeconds = 3
	// jitter is by how much rows of several hosts end apart although they are of one second.
	jitter = 100_000
)

// seconds are the seconds of the measurement in which all parts measured, those of the first part: the rates of all
// parts together.
type seconds struct {
	parts  []*result.Result
	starts []int64                          // of the parts' loads, by one clock
	of     func(*result.Row) *result.Counts // nil for a row without the group
	step   string                           // empty for all
	// a backlog is read: the second of the last message, and those behind it, do not count
	read bool
	next []int // the first row of each part that may be in the second
}

// interval returns when a row of a part began and ended.
func (s *seconds) interval(part int, row *result.Row) (from, to int64) {
	to = s.starts[part] + row.Elapsed
	return to - row.Length, to
}

func (s *seconds) measures(row *result.Row) bool {
	return row.Phase == result.Measure && (s.step == "" || row.Step == s.step)
}

// extremes adds the lowest and highest rates. Receiving counts from the first second at whose start something had been
// received.
func (s *seconds) extremes(f values) {
	if len(s.parts) == 0 {
		return
	}
	s.next = make([]int, len(s.parts))
	first, last, came := s.receipts()
	var completed, received extremes
	for i := range s.parts[0].Rows {
		row := &s.parts[0].Rows[i]
		if !s.measures(row) || row.Length < fullSecond {
			continue
		}
		from, to := s.interval(0, row)
		c, r, ok := s.rates(from, to)
		if !ok {
			continue
		}
		if row.Producers != nil {
			completed.add(c)
		}
		if came && from+jitter >= first && (!s.read || to <= last+jitter) {
			received.add(r)
		}
	}
	completed.into(f, "completed")
	received.into(f, "received")
}

// groupIn returns the counts of a group in a row; nil if it did nothing there.
func groupIn(name string) func(*result.Row) *result.Counts {
	return func(row *result.Row) *result.Counts {
		i := slices.IndexFunc(row.Groups, func(g result.RowGroup) bool { return g.Name == name })
		if i < 0 {
			return nil
		}
		return &row.Groups[i].Counts
	}
}

// receipts returns when the first row with a message received ended, and when the last one began. It is false if there
// is none.
func (s *seconds) receipts() (first, last int64, known bool) {
	for i, p := range s.parts {
		for k := range p.Rows {
			row := &p.Rows[k]
			c := s.of(row)
			if c == nil || c.Consumers == nil || c.Consumers.Received == 0 || s.step != "" && row.Step != s.step {
				continue
			}
			from, to := s.interval(i, row)
			if !known {
				first, last, known = to, from, true
			}
			first, last = min(first, to), max(last, from)
		}
	}
	return first, last, known
}

// rates returns the messages per second of all parts in a second: each row is even in itself. It is false if a part did
// not measure for most of it.
func (s *seconds) rates(from, to int64) (completed, received float64, ok bool) {
	for i, p := range s.parts {
		var covered int64
		var c, r float64
		for k := s.next[i]; k < len(p.Rows); k++ {
			row := &p.Rows[k]
			begin, end := s.interval(i, row)
			if end <= from {
				s.next[i] = k + 1
				continue
			}
			if begin >= to {
				break
			}
			overlap := min(end, to) - max(begin, from)
			if !s.measures(row) || overlap <= 0 {
				continue
			}
			covered += overlap
			share := float64(overlap) / float64(row.Length)
			if n := s.of(row); n != nil && n.Producers != nil {
				c += share * float64(n.Producers.Completed)
			}
			if n := s.of(row); n != nil && n.Consumers != nil {
				r += share * float64(n.Consumers.Received)
			}
		}
		if covered < (to-from)*7/10 {
			return 0, 0, false
		}
		completed += c * 1e6 / float64(covered)
		received += r * 1e6 / float64(covered)
	}
	return completed, received, true
}

// extremes are the lowest and the highest of some rates.
type extremes struct {
	n               int
	lowest, highest float64
}

func (e *extremes) add(rate float64) {
	if e.n == 0 {
		e.lowest, e.highest = rate, rate
	}
	e.n++
	e.lowest, e.highest = min(e.lowest, rate), max(e.highest, rate)
}

func (e *extremes) into(f values, name string) {
	if e.n >= enoughSeconds {
		f[name+".min"], f[name+".max"] = e.lowest, e.highest
	}
}
