package report

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
)

// outcomeOf returns the verdict on a run. `artemis perf` knows success and fail alone: runs that its commands make, and
// a signal ends, keep these words.
func outcomeOf(s *stats.Summary) string {
	v := words.VerdictOf(&s.Result)
	if v.Mark == words.MarkFailed || v.Mark == words.MarkInterrupted {
		v.Word = words.Outcome(s.Outcome.Success)
	}
	return v.String()
}

// outageNow describes the present outage; empty without one.
func outageNow(p *stats.OutageProgress) string {
	switch {
	case p == nil || p.Since == 0:
		return ""
	case p.Down == 0:
		return fmt.Sprintf("%.1f s, all workers connected again, no message yet", p.Since.Seconds())
	default:
		return fmt.Sprintf("%.1f s, %s not connected", p.Since.Seconds(), words.Plural(p.Down, "worker"))
	}
}

// outageLines returns a line for each listed outage, and before these a line if not all are listed.
func outageLines(s *stats.Summary) (lines []string) {
	if m := s.MoreOutages; m != nil {
		lines = append(lines, fmt.Sprintf("beside the first and the last %[2]d: %[1]s; %[3]d in doubt",
			words.Outages(nil, m), stats.KeptOutages, m.InDoubt))
	}
	for _, o := range s.Outages {
		lines = append(lines, words.Outage(&o))
	}
	return lines
}
