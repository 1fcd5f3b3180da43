package sweep

import (
	"maps"
	"slices"
	"strconv"
)

// within is how far below the best rate a cell may be to be as good: 5%.
const within = 0.05

// Knee is where a curve of rates over an axis turns: before it more of the axis brings more, behind it only later
// answers.
type Knee struct {
	Axis string
	// Fixed are the values of the other axes.
	Fixed map[string]string
	// Rate and Latency are the figures that were looked at; Latency is empty if there is none.
	Rate, Latency string
	// Best is the value of the axis with the highest rate, and Value the smallest one that is within 5% of it: the knee.
	Best, Value         string
	BestRate, ValueRate float64
	// Doubled is the smallest value at which the latency is twice that at the smallest value of the axis, or more; empty
	// if it is nowhere.
	Doubled string
	// Limit is the bound of the rate at Best; without a kind if that is not known.
	Limit Limit
	// AtLeast: rates of the curve are the least that they may be, as the tester was the limit of a search: the knee may be
	// elsewhere.
	AtLeast bool
	// Open: the best cell is the last one of the axis, and no other is within 5%: the curve still rises.
	Open bool
}

// Ordered tells whether the values of an axis are numbers that rise, three of them at least.
func (a *Axis) Ordered() bool {
	if len(a.Values) < 3 {
		return false
	}
	last := 0.0
	for i, text := range a.Values {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || i > 0 && v <= last {
			return false
		}
		last = v
	}
	return true
}

// Knees returns the knee of each curve over an axis: one for each combination of the other axes, and for each step that
// has a rate.
func (s *Sweep) Knees() (list []Knee) {
	at := slices.IndexFunc(s.Axes, func(a Axis) bool { return a.Name == s.Knee })
	if s.Knee == "" || at < 0 {
		return nil
	}
	axis := s.Axes[at]
	others := slices.Delete(slices.Clone(s.Axes), at, at+1)
	rows := s.Rows()
	for _, fixed := range Cells(others, nil) {
		for _, step := range append([]string{""}, s.Steps...) {
			if k, ok := kneeOf(rows, axis, fixed, step); ok {
				list = append(list, k)
			}
		}
	}
	return list
}

// rateOf returns the figure that the rate of a step is judged by: what a search found; else the received messages,
// since a rate that only queues is none, or, without consumers, the accepted ones; empty if there is none.
func rateOf(rows []Row, step string) string {
	for _, metric := range []string{Found, "received.avg", "completed.avg"} {
		name := Name(step, metric)
		if slices.ContainsFunc(rows, func(r Row) bool { _, has := r.Figures[name]; return has }) {
			return name
		}
	}
	return ""
}

// kneeOf looks at one curve. It has none with less than three points.
func kneeOf(rows []Row, axis Axis, fixed map[string]string, step string) (k Knee, ok bool) {
	rate := rateOf(rows, step)
	k = Knee{Axis: axis.Name, Fixed: fixed, Rate: rate}
	var points []*Row
	for _, v := range axis.Values {
		want := maps.Clone(fixed)
		want[axis.Name] = v
		for i := range rows {
			if _, has := rows[i].Figures[rate]; has && maps.Equal(rows[i].Values, want) {
				points = append(points, &rows[i])
			}
		}
	}
	if len(points) < 3 {
		return k, false
	}
	best := slices.MaxFunc(points, func(a, b *Row) int {
		if a.Figures[rate].Median > b.Figures[rate].Median {
			return 1
		}
		return -1
	})
	k.Best, k.BestRate, k.Limit = best.Values[axis.Name], best.Figures[rate].Median, best.Limits[step]
	k.AtLeast = slices.ContainsFunc(points, func(r *Row) bool { return r.Bound(rate) != "" })
	for _, p := range points {
		if r := p.Figures[rate].Median; r >= (1-within)*k.BestRate {
			k.Value, k.ValueRate = p.Values[axis.Name], r
			k.Open = p == points[len(points)-1]
			break
		}
	}
	for _, metric := range []string{"ack.p50", "transfer.p50"} {
		name := Name(step, metric)
		first, has := points[0].Figures[name]
		if !has || first.Median <= 0 || points[0].Values[axis.Name] != axis.Values[0] {
			continue
		}
		k.Latency = name
		for _, p := range points[1:] {
			if f, has := p.Figures[name]; has && k.Doubled == "" && f.Median >= 2*first.Median {
				k.Doubled = p.Values[axis.Name]
			}
		}
		break
	}
	return k, true
}
