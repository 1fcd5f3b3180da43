package record

import "github.com/perfmq/perfmq/internal/threshold"

// Judged is a threshold on the median of the repeats of a cell.
type Judged struct {
	Values  map[string]string
	Outcome threshold.Outcome
}

// Medians judges the thresholds on medians, cell by cell, by the repeats that count. A cell without one fails them.
// Cells without an ended run are left out.
func (s *Sweep) Medians() (list []Judged) {
	type key struct {
		cell            int
		step, threshold string
	}
	values := map[key][]float64{}
	at := map[key]int{}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.State != Done {
			continue
		}
		for _, d := range r.Thresholds {
			if !d.Median {
				continue
			}
			t, err := threshold.Parse(d.Threshold)
			if err != nil {
				continue // of another version
			}
			k := key{r.Cell, d.Step, d.Threshold}
			if _, known := at[k]; !known {
				at[k] = len(list)
				list = append(list, Judged{Values: r.Values, Outcome: threshold.Outcome{Step: d.Step, Threshold: t}})
			}
			if d.Measured == nil || !r.Good() {
				continue
			}
			values[k] = append(values[k], *d.Measured)
			list[at[k]].Outcome = t.Judge(Median(values[k]), d.Target)
			list[at[k]].Outcome.Step = d.Step
		}
	}
	return list
}
