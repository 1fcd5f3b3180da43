package plan

import "time"

// The least that [Plan.Scale] leaves.
const (
	leastDuration = 2 * time.Second
	leastCount    = 100
)

// Scale shortens durations and counts by a factor from 0 to 1, to 2 s and 100 messages at least, if they were more.
// Rates, sizes and workers stay.
func (p *Plan) Scale(factor float64) {
	shorter := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)*factor), min(d, leastDuration))
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		whole := s.Duration
		s.Duration = shorter(s.Duration)
		if whole > 0 { // in proportion, or nothing might be left to measure
			s.Warmup = time.Duration(float64(s.Warmup) * float64(s.Duration) / float64(whole))
		} else {
			s.Warmup = time.Duration(float64(s.Warmup) * factor)
		}
		s.Marks = scaled(s.Marks, factor)
	}
	for _, g := range p.distinct() {
		g.Count = max(uint64(float64(g.Count)*factor), min(g.Count, leastCount))
		g.Rate.Schedule = g.Rate.Scale(factor)
	}
}

// scaled returns the marks times factor, rounded down, without zeros and repetitions.
func scaled(marks []uint64, factor float64) (list []uint64) {
	for _, m := range marks {
		if m = uint64(float64(m) * factor); m > 0 && (len(list) == 0 || m > list[len(list)-1]) {
			list = append(list, m)
		}
	}
	return list
}
