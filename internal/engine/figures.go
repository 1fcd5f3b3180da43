package engine

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/stats"
)

// figures are the values of the metrics that thresholds can be about (see [threshold.Metrics]), in their units. What the run has no
// value of is not there.
func (r *run) figures(s *stats.Summary) map[string]float64 {
	f := map[string]float64{}
	count := func(known bool, name string, n uint64) {
		if known {
			f[name] = float64(n)
		}
	}
	m, sends, receives := &s.Measured, r.plan.Role.Produces(), r.plan.Role.Consumes()
	count(sends, "sent", m.Sent)
	count(sends, "completed", m.Completed)
	count(sends, "rejected", m.Rejected)
	count(sends, "released", m.Released)
	count(sends, "modified", m.Modified)
	count(sends, "failed", m.Failed)
	count(sends, "unconfirmed", m.Unconfirmed)
	count(sends, "late", s.Total.LateSends)
	count(receives, "received", m.Received)
	count(receives, "redelivered", m.Redelivered)
	count(receives, "foreign", s.Total.Foreign)
	count(s.ExpectedKnown, "missing", s.Missing)
	count(true, "commits.failed", m.CommitsFailed)
	if v := s.Verification; v != nil {
		count(v.Known, "lost", v.Total.Lost)
		count(v.Known, "left", v.Total.Left)
		count(true, "duplicated", v.Total.Duplicates)
		count(true, "out_of_order", v.Total.Disordered)
		count(true, "damaged", v.Total.Damaged)
	}
	if seconds := s.Average.Span.Seconds(); seconds > 0 {
		for name, n := range map[string]uint64{"sent": s.Average.Sent, "completed": s.Average.Completed, "received": s.Average.Received} {
			f[name+".avg"] = float64(n) / seconds
		}
	}
	for name, l := range map[string]*stats.Lowest{"completed.min": &s.Minimum.Completed, "received.min": &s.Minimum.Received} {
		if l.Known() {
			f[name] = l.PerSecond
		}
	}
	if h := &s.Health; h.Wall > 0 && h.Cores > 0 {
		f["tester.cpu"] = 100 * h.CPU.Seconds() / (h.Wall.Seconds() * float64(h.Cores))
	}
	latencies(f, &s.Latencies)
	return f
}

// latencies adds those of which there is a value, in microseconds.
func latencies(f map[string]float64, l *stats.Latencies) {
	for name, l := range map[string]*stats.Latency{
		"delay": l.Delay, "ack": l.Ack, "response": l.Response, "transfer": l.Transfer, "commit": l.Commit,
	} {
		if l == nil || l.Count() == 0 {
			continue
		}
		f[name+".mean"], f[name+".max"] = l.Mean(), float64(l.Max())
		for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
			f[fmt.Sprintf("%s.p%g", name, p)] = float64(l.Percentile(p))
		}
	}
}
