package result

import "fmt"

// groups reads the rows and the lines of latencies.hdr side by side. Rows of a group share their lines.
type groups struct {
	result *Result
	summed bool // the result is the sum of its rows: there is no result.json
	keep   bool
	from   int   // the first row that is not in a group yet
	step   int   // of the group
	rows   []Row // of the group
	wanted []wanted
	behind bool // a line of the last group lacks the values of the last row

	decoder decoder
}

// wanted is a line that must follow.
type wanted struct {
	tag   string
	count int64
	rows  []*Latency // of the rows of the group
	sums  []**Latency
}

// next proceeds to the next group; there may be none, or one without latencies.
func (g *groups) next() {
	all := g.result.Rows
	for len(g.wanted) == 0 && g.from < len(all) {
		to := g.from + 1
		for to < len(all) && all[to].Shared {
			to++
		}
		if g.summed && g.from > 0 && all[g.from].Step != all[g.from-1].Step {
			g.step++
		}
		g.rows = all[g.from:to]
		g.from = to
		first := &g.rows[0]
		prefix := ""
		if first.Phase == Warmup {
			prefix = warmupTag
		}
		g.wantLines(prefix, func(r *Row) *Latencies { return &r.Latencies })
		if first.Leftover != nil {
			g.wantLines(warmupTag, func(r *Row) *Latencies { return r.Leftover })
		}
	}
}

// wantLines records the lines that the latencies of the group require.
func (g *groups) wantLines(prefix string, latencies func(*Row) *Latencies) {
	for _, k := range kinds {
		if latencies(&g.rows[0])[k.Kind] == nil {
			continue
		}
		w := wanted{tag: prefix + k.Tag}
		for i := range g.rows {
			if l := latencies(&g.rows[i]); l != nil && l[k.Kind] != nil {
				w.rows = append(w.rows, l[k.Kind])
				w.count += l[k.Kind].Count
			}
		}
		if g.summed && prefix == "" {
			w.sums = []**Latency{&g.result.Latencies[k.Kind], &g.result.Steps[g.step].Latencies[k.Kind]}
		}
		g.wanted = append(g.wanted, w)
	}
}

// last reports whether this is the last group.
func (g *groups) last() bool { return g.from == len(g.result.Rows) }

// readLine reads the next line of the log. Lines after the last row belong to a row that was never written.
func (g *groups) readLine(text string) error {
	if len(g.wanted) == 0 {
		return errEnough
	}
	tag, h, err := g.parse(text)
	if err != nil {
		return err
	}
	w := g.wanted[0]
	if tag != w.tag {
		return fmt.Errorf("the latency is %q; the row in %s has %q", tag, RowsFile, w.tag)
	}
	n := len(w.rows) - 1
	if g.summed && g.last() && n > 0 && h.count < w.count && h.count == w.count-w.rows[n].Count {
		w.rows, w.count, g.behind = w.rows[:n], h.count, true
	}
	if h.count != w.count {
		return fmt.Errorf("the histogram has %d values; the rows in %s have %d", h.count, RowsFile, w.count)
	}
	if err := w.addTo(h, g.keep); err != nil {
		return err
	}
	if g.wanted = g.wanted[1:]; len(g.wanted) == 0 {
		g.next()
	}
	return nil
}

// addTo adds the histogram to the rows and sums.
func (w *wanted) addTo(h *Histogram, keep bool) error {
	var joined Latency
	for _, l := range w.rows {
		bare := *l
		bare.Histogram = nil
		joined.Merge(&bare)
	}
	joined.Histogram = h
	if err := joined.check(); err != nil {
		return err
	}
	for _, sum := range w.sums {
		if *sum == nil {
			*sum = &Latency{Histogram: &Histogram{}}
		}
		(*sum).Merge(&joined)
		(*sum).percentiles()
	}
	if keep && len(w.rows) == 1 {
		w.rows[0].Histogram = h
	}
	return nil
}
