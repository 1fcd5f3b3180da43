package result

import (
	"cmp"
	"errors"
	"slices"
)

// rowPlace is the position of a row: rows of the same rowPlace become one.
type rowPlace struct {
	second int64 // from the earliest start
	step   string
	phase  string
}

// mergeRows aligns the rows of results by their starts, as one clock measures them.
func mergeRows(results []*Result, starts []int64) ([]Row, error) {
	merged := map[rowPlace]*Row{}
	first := slices.Min(starts)
	for i, r := range results {
		ahead := starts[i] - first
		apart := r.Start - starts[i] // of the clocks
		offset := (ahead + second/2) / second
		own := map[rowPlace]*Row{} // rows of one result follow each other, rows of several results are side by side
		for i := range r.Rows {
			row := r.Rows[i].clone()
			at := rowPlace{offset + max(0, row.Elapsed-(row.Length+1)/2)/second, row.Step, row.Phase}
			row.Elapsed += offset * second
			row.Time += offset*second - ahead - apart
			row.Arrivals = nil // they only served to compare the clocks
			to := own[at]
			if to == nil {
				own[at] = row
				continue
			}
			if err := to.follow(row); err != nil {
				return nil, err
			}
		}
		for at, row := range own {
			if merged[at] == nil {
				merged[at] = row
				continue
			}
			if err := merged[at].beside(row); err != nil {
				return nil, err
			}
		}
	}
	rows := make([]Row, 0, len(merged))
	for _, row := range merged {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Elapsed, b.Elapsed), cmp.Compare(a.Length, b.Length))
	})
	return rows, nil
}

// clone returns a copy that shares nothing that add changes.
func (r *Row) clone() *Row {
	c := *r
	c.Counts, c.Latencies, c.Leftover, c.Groups, c.Shared = Counts{}, Latencies{}, nil, nil, false
	_ = c.addGroups(r.Groups)                                               // adding to nothing always fits
	_ = errors.Join(c.Counts.add(&r.Counts), c.Latencies.add(&r.Latencies)) // adding to zero always fits
	if r.Leftover != nil {
		c.Leftover = &Latencies{}
		_ = c.Leftover.add(r.Leftover) // the same
	}
	if r.Verified != nil {
		verified := *r.Verified
		c.Verified = &verified
	}
	c.BrokerSide = r.BrokerSide.clone()
	return &c
}

// follow adds the row after r.
func (r *Row) follow(next *Row) error {
	r.Length += next.Elapsed - r.Elapsed
	r.Time, r.Elapsed, r.InFlight, r.Workers = next.Time, next.Elapsed, next.InFlight, next.Workers
	r.Disconnected, r.Outages, r.Backlog, r.Verified = next.Disconnected, next.Outages, next.Backlog, next.Verified
	r.BrokerSide = next.BrokerSide
	r.Tester.Cores, r.Tester.Memory = next.Tester.Cores, next.Tester.Memory
	return r.add(next)
}

// beside adds a row of the same second of another result.
func (r *Row) beside(other *Row) error {
	from := min(r.Elapsed-r.Length, other.Elapsed-other.Length)
	r.Elapsed, r.Time = max(r.Elapsed, other.Elapsed), max(r.Time, other.Time)
	r.Length = r.Elapsed - from
	r.InFlight += other.InFlight
	r.Workers += other.Workers
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
		if err := addAll(r.Verified.counters(), other.Verified.counters()); err != nil {
			return err
		}
	}
	return r.add(other)
}

// add adds counts, latencies and the use of the machine.
func (r *Row) add(other *Row) error {
	if other.Leftover != nil {
		if r.Leftover == nil {
			r.Leftover = &Latencies{}
		}
		if err := r.Leftover.add(other.Leftover); err != nil {
			return err
		}
	}
	return errors.Join(r.Counts.add(&other.Counts), r.Latencies.add(&other.Latencies), r.Tester.add(&other.Tester),
		r.addGroups(other.Groups))
}

// addGroups adds the groups of another row, by name.
func (r *Row) addGroups(part []RowGroup) error {
	for i := range part {
		from := &part[i]
		at := slices.IndexFunc(r.Groups, func(g RowGroup) bool { return g.Name == from.Name })
		if at < 0 {
			r.Groups = append(r.Groups, RowGroup{Name: from.Name})
			at = len(r.Groups) - 1
		}
		to := &r.Groups[at]
		if err := to.add(&from.Counts); err != nil {
			return err
		}
		if from.Latencies == nil {
			continue
		}
		if to.Latencies == nil {
			to.Latencies = &Latencies{}
		}
		if err := to.Latencies.add(from.Latencies); err != nil {
			return err
		}
	}
	return nil
}
