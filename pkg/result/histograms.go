package result

import "fmt"

// histograms reads the lines of latencies.hdr beside the rows: a line for each latency of each row.
type histograms struct {
	result *Result
	summed bool       // the result is the sum of its rows: there is no result.json
	visit  func(*Row) // called with each row, which then loses its histograms; nil keeps them
	next   int        // the row after the one whose lines are wanted
	step   int        // of that row
	wanted []wanted

	decoder decoder
}

// wanted is a line that must follow.
type wanted struct {
	tag  string
	row  *Latency
	sums []**Latency
}

// advance proceeds to the next row with latencies, if there is one.
func (h *histograms) advance() {
	rows := h.result.Rows
	for len(h.wanted) == 0 {
		if h.next > 0 {
			h.leave(&rows[h.next-1])
		}
		if h.next == len(rows) {
			return
		}
		row := &rows[h.next]
		if h.summed && h.next > 0 && row.Step != rows[h.next-1].Step {
			h.step++
		}
		h.next++
		prefix := ""
		if row.Phase == Warmup {
			prefix = warmupTag
		}
		h.want(prefix, &row.Latencies)
		if row.Leftover != nil {
			h.want(warmupTag, row.Leftover)
		}
	}
}

// leave visits a row, and drops its histograms.
func (h *histograms) leave(row *Row) {
	if h.visit == nil {
		return
	}
	h.visit(row)
	all := row.Latencies[:]
	if row.Leftover != nil {
		all = append(all, row.Leftover[:]...)
	}
	for _, l := range all {
		if l != nil {
			l.Histogram = nil
		}
	}
}

// want records the lines that the latencies of a row require.
func (h *histograms) want(prefix string, l *Latencies) {
	for _, k := range kinds {
		if l[k.Kind] == nil {
			continue
		}
		w := wanted{tag: prefix + k.Tag, row: l[k.Kind]}
		if h.summed && prefix == "" {
			w.sums = []**Latency{&h.result.Latencies[k.Kind], &h.result.Steps[h.step].Latencies[k.Kind]}
		}
		h.wanted = append(h.wanted, w)
	}
}

// readLine reads the next line of the log. Lines after the last row belong to a row that was never written.
func (h *histograms) readLine(text string) error {
	if len(h.wanted) == 0 {
		return errEnough
	}
	tag, values, err := h.parse(text)
	if err != nil {
		return err
	}
	w := h.wanted[0]
	if tag != w.tag {
		return fmt.Errorf("the latency is %q; the row in %s has %q", tag, RowsFile, w.tag)
	}
	read := *w.row
	read.Histogram = values
	if err := read.check(); err != nil {
		return err
	}
	for _, sum := range w.sums {
		if *sum == nil {
			*sum = &Latency{Histogram: &Histogram{}}
		}
		(*sum).Merge(&read)
		(*sum).percentiles()
	}
	w.row.Histogram = values
	if h.wanted = h.wanted[1:]; len(h.wanted) == 0 {
		h.advance()
	}
	return nil
}
