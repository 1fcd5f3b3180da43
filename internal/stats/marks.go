package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// marker finds the moments at which counts pass marks.
type marker struct {
	step    string
	of      string         // "completed" or "received"
	counter result.Counter // the same
	marks   []uint64       // marks not passed yet, in ascending order
	start   time.Time
	base    uint64  // as of the start
	rate    float64 // of the last full second; before the first one, of the longest interval
	longest time.Duration
	list    []result.Mark
}

// SetMarks lets the collector find the moments at which the step that begins there passes the marks, which are in
// ascending order: numbers of messages completed, or received. Call it after the last Collect of the step before.
func (c *Collector) SetMarks(step string, received bool, marks []uint64, start time.Time) {
	m := &c.marker
	m.step, m.marks, m.start, m.rate, m.longest = step, marks, start, 0, 0
	if m.of, m.counter = "completed", result.Completed; received {
		m.of, m.counter = "received", result.Received
	}
	m.base = c.total[m.counter]
}

// MarksPassed returns the marks that were passed.
func (c *Collector) MarksPassed() []result.Mark { return c.marker.list }

// add takes an interval.
func (m *marker) add(s *Snapshot) {
	if len(m.marks) == 0 {
		return
	}
	delta, length := s.Get(m.counter), s.To.Sub(s.From)
	rate := float64(delta) / length.Seconds()
	if s.Phase != result.Drain && length >= min(FullSecond, m.longest) {
		m.rate, m.longest = rate, length
	} else if m.rate > 0 {
		rate = m.rate
	}
	total := s.Total.Get(m.counter) - m.base
	for len(m.marks) > 0 && m.marks[0] <= total && delta > 0 && length > 0 {
		share := float64(delta-(total-m.marks[0])) / float64(delta)
		elapsed := s.From.Sub(m.start) + time.Duration(share*float64(length))
		mark := result.Mark{
			Step: m.step, Of: m.of, Messages: m.marks[0], Elapsed: elapsed.Microseconds(), Momentary: rate,
		}
		if elapsed > 0 {
			mark.Average = float64(mark.Messages) / elapsed.Seconds()
		}
		m.list = append(m.list, mark)
		m.marks = m.marks[1:]
	}
}
