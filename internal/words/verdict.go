package words

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// VerdictMark is the kind of a verdict: outputs choose a color, a sign or an element by it.
type VerdictMark string

// The marks, one for each exit status of a run that had a load, and one for a success that is not green.
const (
	MarkSuccess     VerdictMark = "success"
	MarkOutage      VerdictMark = "outage" // a success after outages
	MarkThreshold   VerdictMark = "threshold"
	MarkFailed      VerdictMark = "failed"
	MarkInterrupted VerdictMark = "interrupted" // ended by the user, or killed: the plan did not come to its end
)

// Verdict is the outcome of a run.
type Verdict struct {
	Mark VerdictMark
	// Word is success, threshold failed, failed, interrupted or unfinished.
	Word string
	// After names the outages and their effects, if there are any: "after 1 outage of 40 s: 0 lost, 15 in doubt, 2
	// duplicated".
	After string
}

// String returns the verdict in a line.
func (v Verdict) String() string { return strings.TrimSpace(v.Word + " " + v.After) }

// VerdictOf returns the verdict on a run. The graver outcome wins: failed before threshold failed, and that before
// interrupted.
func VerdictOf(r *result.Result) Verdict {
	v := Verdict{Mark: MarkSuccess, Word: "success", After: afterOutages(r)}
	switch o := &r.Outcome; {
	case !r.Complete && len(o.Problems) == 0:
		v.Mark, v.Word = MarkInterrupted, "unfinished"
	case !o.Success:
		v.Mark, v.Word = MarkFailed, "failed"
	case o.Aborted || slices.ContainsFunc(r.Thresholds, func(t result.Threshold) bool { return !t.Kept }):
		v.Mark, v.Word = MarkThreshold, "threshold failed"
	case o.Interrupted:
		v.Mark, v.Word = MarkInterrupted, "interrupted"
	case v.After != "":
		v.Mark = MarkOutage
	}
	return v
}

// afterOutages names the outages, and what became of the messages, as far as it is known. Outages of several hosts at
// the same time count once.
func afterOutages(r *result.Result) string {
	if len(r.Outages) == 0 {
		return ""
	}
	metrics := r.Metrics()
	text := "after outages"
	if n, known := metrics["outage.count"]; known {
		text = "after " + Plural(uint64(n), "outage")
	}
	switch longest, known := metrics["outage.max"]; {
	case !known:
		text += " (not all have an end)"
	case metrics["outage.count"] == 1:
		text += " of " + length(longest)
	default:
		text += ", the longest " + length(longest)
	}
	var effects []string
	for _, effect := range [][2]string{
		{"lost", "lost"}, {"missing", "missing"}, {"in_doubt", "in doubt"}, {"duplicated", "duplicated"},
	} {
		if n, known := metrics[effect[0]]; known && (effect[0] != "missing" || r.Verification == nil) {
			effects = append(effects, fmt.Sprintf("%.0f %s", n, effect[1]))
		}
	}
	return text + ": " + strings.Join(effects, ", ")
}

// length returns a length in microseconds; whole seconds have no decimals.
func length(us float64) string {
	if us < 1e6 || us >= 1e8 {
		return Duration(int64(us))
	}
	return seconds(int64(us))
}
