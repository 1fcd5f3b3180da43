package report

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/stats"
)

// outcomeOf returns the outcome of a run: "success, after 3 outages (12.4 s)".
func outcomeOf(s *stats.Summary) string {
	text, n := words.Outcome(s.Success), s.OutageCount()
	if n == 0 {
		return text
	}
	text += ", after " + words.Plural(n, "outage")
	switch sum, _, _, open := lengths(s); open {
	case 0:
		return fmt.Sprintf("%s (%s)", text, words.Seconds(sum))
	case n:
		return text + " without an end"
	default:
		return fmt.Sprintf("%s (%s, and %d without an end)", text, words.Seconds(sum), open)
	}
}

func microsecondsOf(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// lengths returns the lengths of all outages together and of the longest, the start of the longest (zero if it is not
// listed), and the number of outages without an end: no message came through after them.
func lengths(s *stats.Summary) (sum, longest time.Duration, at time.Time, open int) {
	if m := s.MoreOutages; m != nil { // each of these has an end
		sum, longest = microsecondsOf(m.Length), microsecondsOf(m.Longest)
	}
	for i := range s.Outages {
		o := &s.Outages[i]
		length := microsecondsOf(o.Length)
		if sum += length; i == 0 && longest == 0 || length > longest {
			longest, at = length, time.UnixMicro(o.Time)
		}
		if length == 0 {
			open++
		}
	}
	return sum, longest, at, open
}

// outagesInShort returns the number of outages, their length, and whether the rate recovered.
func outagesInShort(s *stats.Summary) string {
	sum, longest, at, open := lengths(s)
	lasting := 0
	for i := range s.Outages {
		if s.Outages[i].Recovered == 0 {
			lasting++
		}
	}
	text := fmt.Sprint(s.OutageCount())
	if open > 0 {
		text += fmt.Sprintf(", %d without an end", open)
	}
	if open < s.OutageCount() {
		text += fmt.Sprintf(", %s in all; the longest %s", words.Seconds(sum), words.Seconds(longest))
	}
	if !at.IsZero() {
		text += ", at " + at.Format("15:04:05.000")
	}
	if lasting > 0 {
		text += fmt.Sprintf("; the rate was not seen to recover after %d", lasting)
	}
	return text
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

// outageLines returns a line for each outage, and before these one for all that are not listed: not all lines are
// written.
func outageLines(s *stats.Summary) (lines []string) {
	if m := s.MoreOutages; m != nil {
		lines = append(lines, fmt.Sprintf("%s beside the first and the last %d, %s in all; the longest %s; %d in doubt",
			words.Plural(m.Count, "outage"), stats.KeptOutages, words.Seconds(microsecondsOf(m.Length)),
			words.Seconds(microsecondsOf(m.Longest)), m.InDoubt))
	}
	for i := range s.Outages {
		lines = append(lines, words.Outage(&s.Outages[i]))
	}
	return lines
}
