package report

import (
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// groups returns the groups of a step, if there are several.
func groups(list []stats.StepSummary) (out []result.Group) {
	if len(list) < 2 {
		return nil
	}
	for i := range list {
		g := &list[i]
		out = append(out, result.Group{
			Name: g.Name, Due: g.Due, Counts: g.Total.Counts(g.Sends, g.Receives),
			Measured: g.Measured.Counts(g.Sends, g.Receives), Latencies: g.Latencies,
		})
	}
	return out
}

// limit returns nil if the limit was not judged.
func limit(l *result.Limit) *result.Limit {
	if l.Kind == "" {
		return nil
	}
	return l
}

// outcome returns how the run ended. Its status ignores failures of other outputs.
func outcome(s *stats.Summary) result.Outcome {
	o := result.Outcome{
		Success: s.Success, Reason: s.Reason, Interrupted: s.Interrupted, Aborted: s.Aborted,
		Problems: s.Problems(), Warnings: s.Warnings(), LeftBehind: s.LeftBehind,
	}
	switch {
	case !s.Success:
		o.Status = result.StatusFailed
	case threshold.Fail(s.Thresholds):
		o.Status = result.StatusThreshold
	case s.Interrupted:
		o.Status = result.StatusInterrupted
	}
	return o
}
