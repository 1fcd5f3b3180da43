package report

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
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
			Name: g.Name, Due: g.Due, Counts: counts(&g.Total, g.Sends, g.Receives),
			Measured: counts(&g.Measured, g.Sends, g.Receives), Latencies: latencies(&g.Latencies),
		})
	}
	return out
}

// rowGroups returns the figures of the groups in an interval, if there are several. Groups beyond MaxRowGroups share
// one entry.
func rowGroups(list []stats.GroupInterval) (out []result.RowGroup) {
	if len(list) < 2 {
		return nil
	}
	var others *stats.GroupInterval
	add := func(g *stats.GroupInterval) {
		l := latencies(&g.Latencies)
		if g.Delta == (stats.Counters{}) && l == (result.Latencies{}) {
			return
		}
		row := result.RowGroup{Name: g.Name, Counts: counts(&g.Delta, g.Sends, g.Receives)}
		if l != (result.Latencies{}) {
			row.Latencies = &l
		}
		out = append(out, row)
	}
	for i := range list {
		switch g := &list[i]; {
		case i < result.MaxRowGroups:
			add(g)
		case others == nil:
			rest := *g
			rest.Name = result.OtherGroups
			others = &rest
		default:
			rest := others.With(*g)
			others = &rest
		}
	}
	if others != nil {
		add(others)
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
	case slices.ContainsFunc(s.Thresholds, func(o threshold.Outcome) bool { return o.Broken() }):
		o.Status = result.StatusThreshold
	case s.Interrupted:
		o.Status = result.StatusInterrupted
	}
	return o
}

func counts(c *stats.Counters, producing, consuming bool) result.Counts {
	return result.NewCounts(c[:], producing, consuming, failuresByClass(c))
}

func workers(s *stats.Summary) (list []result.Worker) {
	for i := range s.Workers {
		w := &s.Workers[i]
		list = append(list, result.Worker{
			Name: w.Name, Destination: w.Destination, BrokerHosts: hostsOf(w),
			Counts: counts(w.Total, w.Producing, !w.Producing),
		})
	}
	return list
}

// latencies returns distributions with their percentiles.
func latencies(l *result.Latencies) result.Latencies {
	sealed := l.Copy()
	sealed.Seal()
	return sealed
}

func tester(h *stats.Health) result.Tester {
	return result.Tester{
		CPU: h.CPU.Microseconds(), Cores: h.Cores, Memory: h.Memory, MemoryPeak: h.MemoryPeak,
		MachineBusy: h.Machine.Microseconds(), MachineAll: h.MachineAll.Microseconds(),
		Pauses: h.Pauses, PauseMax: h.PauseMax.Microseconds(),
		LateCrowded: h.LateCrowded, LatePaused: h.LatePaused,
		ClockForward: h.ClockForward.Microseconds(), ClockBackward: h.ClockBackward.Microseconds(), Saturated: h.Saturated,
	}
}

// VerificationOf returns a verification in the form of results; nil for nil.
func VerificationOf(v *verify.Result) *result.Verification {
	if v == nil {
		return nil
	}
	out := &result.Verification{
		Known: v.Known, Sent: v.Sent, Total: v.Total, Unwatched: v.Unwatched,
		Notes: v.Notes,
	}
	out.Subscriptions = []result.Subscription{}
	for i := range v.Scopes {
		s := &v.Scopes[i]
		out.Subscriptions = append(out.Subscriptions, result.Subscription{
			Destination: s.Destination, Name: s.Subscription, Known: s.Known, Verified: s.Verified,
		})
	}
	return out
}
