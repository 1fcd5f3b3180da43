package report

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/stats"
)

// outcomeOf returns the outcome of a run: "success, after 3 outages (12.4 s)".
func outcomeOf(s *stats.Summary) string {
	text := "fail"
	if s.Success {
		text = "success"
	}
	n := s.OutageCount()
	if n == 0 {
		return text
	}
	text += ", after " + words.Plural(n, "outage")
	switch l := lengths(s); l.open {
	case 0:
		return fmt.Sprintf("%s (%s)", text, words.Seconds(l.sum))
	case n:
		return text + " without an end"
	default:
		return fmt.Sprintf("%s (%s, and %d without an end)", text, words.Seconds(l.sum), l.open)
	}
}

func microsecondsOf(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// outageLengths are the lengths of all outages together, and of the longest.
type outageLengths struct {
	sum, longest time.Duration
	at           time.Time // start of the longest; zero if it is not listed
	open         int       // outages without an end: no message came through after them
}

func lengths(s *stats.Summary) outageLengths {
	var l outageLengths
	if m := s.MoreOutages; m != nil { // each of these has an end
		l.sum, l.longest = microsecondsOf(m.Length), microsecondsOf(m.Longest)
	}
	for i := range s.Outages {
		o := &s.Outages[i]
		length := microsecondsOf(o.Length)
		if l.sum += length; i == 0 && l.longest == 0 || length > l.longest {
			l.longest, l.at = length, time.UnixMicro(o.Time)
		}
		if length == 0 {
			l.open++
		}
	}
	return l
}

// outagesInShort returns the number of outages, their length, and whether the rate recovered.
func outagesInShort(s *stats.Summary) string {
	l, lasting := lengths(s), 0
	for i := range s.Outages {
		if s.Outages[i].Recovered == 0 {
			lasting++
		}
	}
	text := fmt.Sprint(s.OutageCount())
	if l.open > 0 {
		text += fmt.Sprintf(", %d without an end", l.open)
	}
	if l.open < s.OutageCount() {
		text += fmt.Sprintf(", %s in all; the longest %s", words.Seconds(l.sum), words.Seconds(l.longest))
	}
	if !l.at.IsZero() {
		text += ", at " + l.at.Format("15:04:05.000")
	}
	if lasting > 0 {
		text += fmt.Sprintf("; the rate was not seen to recover after %d", lasting)
	}
	return text
}

// outageNow describes the present outage; empty if there is none.
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
