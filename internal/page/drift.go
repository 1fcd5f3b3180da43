package page

import (
	"math"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// enoughMinutes is how many minutes a slope takes at least, and fullMinute how long the rows of one must be.
	enoughMinutes = 10
	fullMinute    = 50_000_000
	minute        = 60_000_000
)

// drift has the sums for lines through the means of minutes, so that its size does not depend on the length of a run.
type drift struct {
	number int64 // of the minute
	length int64 // of its rows so far
	lines  []leastSquares
}

func (d *drift) add(r *result.Row) {
	if n := (r.Elapsed - r.Length/2) / minute; n != d.number {
		d.next(n)
	}
	d.length += r.Length
	seconds := float64(r.Length) / 1e6
	if r.Producers != nil {
		d.value("completed, messages/s", float64(r.Producers.Completed), seconds)
	}
	if r.Consumers != nil {
		d.value("received, messages/s", float64(r.Consumers.Received), seconds)
	}
	for _, name := range []string{"response", "ack", "transfer"} {
		if l := r.Latencies.Get(name); l != nil {
			d.value(name+" time, mean, ms", float64(l.Sum)/1e3, float64(l.Count))
		}
	}
	if b := r.BrokerSide; b != nil && b.Memory != nil {
		d.value("memory of the broker, MB", float64(*b.Memory)/1e6, 1)
	}
	if b := r.BrokerSide; b != nil && b.Heap != nil {
		d.value("heap of the broker, MB", float64(*b.Heap)/1e6, 1)
	}
	if r.Tester.Memory > 0 {
		d.value("memory of the tester, MB", float64(r.Tester.Memory)/1e6, 1)
	}
}

// value adds a value to the mean of the present minute.
func (d *drift) value(name string, sum, weight float64) {
	i := slices.IndexFunc(d.lines, func(l leastSquares) bool { return l.name == name })
	if i < 0 {
		i, d.lines = len(d.lines), append(d.lines, leastSquares{name: name})
	}
	l := &d.lines[i]
	l.sum, l.weight = l.sum+sum, l.weight+weight
}

// next ends a minute.
func (d *drift) next(number int64) {
	for i := range d.lines {
		l := &d.lines[i]
		if l.weight > 0 && d.length >= fullMinute {
			l.add(float64(d.number)/60, l.sum/l.weight)
		}
		l.sum, l.weight = 0, 0
	}
	d.number, d.length = number, 0
}

// leastSquares has the sums for a line through points. Values are kept as differences from the first, which are small.
type leastSquares struct {
	name                  string
	sum, weight           float64 // in the present minute
	n, first              float64
	sx, sy, sxx, sxy, syy float64
}

func (l *leastSquares) add(x, y float64) {
	if l.n == 0 {
		l.first = y
	}
	y -= l.first
	l.n, l.sx, l.sy, l.sxx, l.sxy, l.syy = l.n+1, l.sx+x, l.sy+y, l.sxx+x*x, l.sxy+x*y, l.syy+y*y
}

// slope returns the slope of the line, and two standard errors of it.
func (l *leastSquares) slope() (slope, within float64) {
	xx, xy, yy := l.sxx-l.sx*l.sx/l.n, l.sxy-l.sx*l.sy/l.n, l.syy-l.sy*l.sy/l.n
	slope = xy / xx
	return slope, 2 * math.Sqrt(max(0, yy-slope*xy)/(l.n-2)/xx)
}

// driftTable tells how the figures of a long run of one step changed.
func driftTable(r *Run) Table {
	t := Table{
		Title: "Drift", Head: []string{"", "mean", "change per hour", "± two standard errors", "so it"},
		Note: "Lines through the means of full minutes after the warm-up, outages included. A change within two standard " +
			"errors is not to be told from chance.",
	}
	if len(r.tally.steps) != 1 {
		return t
	}
	for i := range r.tally.drift.lines {
		l := &r.tally.drift.lines[i]
		if l.n < enoughMinutes {
			continue
		}
		slope, within := l.slope()
		says := "stays"
		switch {
		case slope > within:
			says = "rises"
		case slope < -within:
			says = "falls"
		}
		t.Rows = append(t.Rows, []string{l.name, number(l.first + l.sy/l.n), number(slope), number(within), says})
	}
	return t
}
