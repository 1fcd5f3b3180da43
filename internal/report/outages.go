package report

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
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

// outageLengths are the lengths of all outages together, and of the longest.
type outageLengths struct {
	sum, longest time.Duration
	at           time.Time // start of the longest; zero if it is not listed
	open         int       // outages without an end: no message came through after them
}

func lengths(s *stats.Summary) outageLengths {
	l := outageLengths{sum: s.MoreOutages.Length, longest: s.MoreOutages.Longest} // each of these has an end
	for i := range s.Outages {
		o := &s.Outages[i]
		if l.sum += o.Length(); i == 0 && l.longest == 0 || o.Length() > l.longest {
			l.longest, l.at = o.Length(), o.Start
		}
		if o.Length() == 0 {
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
	if m := &s.MoreOutages; m.Count > 0 {
		lines = append(lines, fmt.Sprintf("%s beside the first and the last %d, %s in all; the longest %s; %d in doubt",
			words.Plural(m.Count, "outage"), stats.KeptOutages, words.Seconds(m.Length), words.Seconds(m.Longest), m.InDoubt))
	}
	list := outages(s)
	for i := range list {
		lines = append(lines, words.Outage(&list[i]))
	}
	return lines
}

// moreOutages returns the sums of the outages of a run that are not listed; nil if there are none.
func moreOutages(s *stats.Summary) *result.MoreOutages {
	m := &s.MoreOutages
	if m.Count == 0 {
		return nil
	}
	return &result.MoreOutages{
		Count:  uint64(m.Count), //nolint:gosec // not negative
		Length: m.Length.Microseconds(), Longest: m.Longest.Microseconds(), InDoubt: m.InDoubt,
	}
}

// outages returns the outages of a run.
func outages(s *stats.Summary) (list []result.Outage) {
	for i := range s.Outages {
		o := &s.Outages[i]
		list = append(list, result.Outage{
			Time: o.Start.UnixMicro(), Elapsed: o.Start.Sub(s.Start).Microseconds(), Length: o.Length().Microseconds(),
			Silent: o.Silent.Microseconds(), Recovered: o.Recovered.Microseconds(), Watched: o.Watched.Microseconds(),
			Before:    o.Before,
			Confirmed: o.Confirmed.Microseconds(), Received: o.Received.Microseconds(),
			Tried: o.Tried.Microseconds(), Back: o.Back.Microseconds(), Reconnected: o.Reconnected.Microseconds(),
			Workers: o.Workers, NotBack: o.NotBack,
			Attempts: o.Attempts, LastAttempt: safetext.Bounded(o.Attempt),
			InDoubt: o.InDoubt, Resent: o.Resent, Lost: o.Lost, Doubled: o.Doubled,
			Class: o.Class.String(), Error: safetext.Bounded(o.Error),
			Worst: o.Worst,
		})
	}
	return list
}

// stalls returns the stalls of a run.
func stalls(s *stats.Summary) (list []result.Stall) {
	for i := range s.Stalls.List {
		stall := &s.Stalls.List[i]
		list = append(list, result.Stall{
			Side: stall.Side.String(), Time: s.Start.Add(stall.Start).UnixMicro(), Elapsed: stall.Start.Microseconds(),
			Length: stall.Length.Microseconds(), Warmup: stall.Warmup, Group: stall.Group, Broker: stall.Broker,
		})
	}
	return list
}
