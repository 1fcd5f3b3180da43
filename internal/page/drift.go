package page

import (
	"maps"
	"math"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	enoughMinutes = 10 // that a slope takes
	minute        = 60_000_000
)

// minutes joins the measured points to full minutes.
func (s *series) minutes() (list []point) {
	for i := range s.points {
		p := s.points[i]
		switch n := len(list); {
		case p.phase != result.Measure:
		case n > 0 && list[n-1].length < minute:
			list[n-1].add(&p)
		default:
			p.values = maps.Clone(p.values)
			list = append(list, p)
		}
	}
	return slices.DeleteFunc(list, func(p point) bool { return p.length < minute })
}

// trend returns the mean of values, the slope of the line through them by the least squares, and two standard errors of
// the slope.
func trend(x, y []float64) (mean, slope, within float64) {
	n := float64(len(x))
	center := 0.0
	for i := range x {
		center, mean = center+x[i]/n, mean+y[i]/n
	}
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-center, y[i]-mean
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	slope = xy / xx
	return mean, slope, 2 * math.Sqrt(max(0, yy-slope*xy)/(n-2)/xx)
}

// driftTable tells how the figures of a long run of one step changed.
func driftTable(r *Run) Table {
	t := Table{
		Title: "Drift", Head: []string{"", "mean", "change per hour", "± two standard errors", "so it"},
		Note: "Lines through the minutes after the warm-up, outages included: rates are averages, others the highest " +
			"second. A change within two standard errors is not to be told from chance.",
	}
	minutes := r.series.minutes()
	if len(r.tally.steps) != 1 || len(minutes) < enoughMinutes {
		return t
	}
	drifting := []string{"completed", "received", "response p50", "ack p50", "transfer p50", "memory", "heap"}
	for _, f := range figures() {
		if !slices.Contains(drifting, f.name) {
			continue
		}
		var hours, values []float64
		for i := range minutes {
			if v, known := minutes[i].values[f.name]; known {
				hours, values = append(hours, float64(minutes[i].to)/60/minute), append(values, v.drawn())
			}
		}
		if len(values) < enoughMinutes {
			continue
		}
		mean, slope, within := trend(hours, values)
		says := "stays"
		switch {
		case slope > within:
			says = "rises"
		case slope < -within:
			says = "falls"
		}
		t.Rows = append(t.Rows, []string{f.name + ", " + f.unit, number(mean), number(slope), number(within), says})
	}
	return t
}
