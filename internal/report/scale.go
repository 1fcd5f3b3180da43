package report

import (
	"math"
	"strings"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/pkg/result"
)

// scale divides the latencies of a run into columns on a logarithmic scale.
type scale struct {
	columns       int
	lowest, above float64 // microseconds; above is greater than the highest value
}

func newScale(columns int) *scale { return &scale{columns: max(columns, 0), lowest: math.Inf(1)} }

// cover widens the scale to all values of l.
func (s *scale) cover(l *result.Latency) {
	for _, bar := range l.Histogram.Bars() {
		v := math.Max(float64(bar.UpTo), 1)
		s.lowest, s.above = math.Min(s.lowest, v), math.Max(s.above, v+1)
	}
}

// title returns the bounds of the scale.
func (s *scale) title() string {
	from, to := words.Duration(int64(s.lowest)), words.Duration(int64(s.above))
	if gap := s.columns - len(from) - len(to); gap > 0 {
		return from + strings.Repeat(" ", gap) + to
	}
	return ""
}

// histogram returns a bar for each column, relative to the column with the most values.
func (s *scale) histogram(l *result.Latency) string {
	if s.columns <= 0 {
		return ""
	}
	counts := make([]float64, s.columns)
	width := math.Log(s.above / s.lowest)
	highest := 0.0
	for _, bar := range l.Histogram.Bars() {
		at := 0
		if width > 0 {
			at = int(float64(s.columns) * math.Log(math.Max(float64(bar.UpTo), 1)/s.lowest) / width)
		}
		at = min(max(at, 0), s.columns-1)
		counts[at] += float64(bar.Count)
		highest = max(highest, counts[at])
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, s.columns)
	for i, n := range counts {
		line[i] = ' '
		if n > 0 {
			line[i] = bars[int(math.Ceil(n/highest*float64(len(bars))))-1]
		}
	}
	return string(line)
}
