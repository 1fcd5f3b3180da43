package report

import (
	"fmt"
	"strings"
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
		lines = append(lines, moreOutagesLine(m))
	}
	for i := range s.Outages {
		lines = append(lines, outageLine(&s.Outages[i]))
	}
	return lines
}

func moreOutagesLine(m *stats.MoreOutages) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s beside the first and the last %d, %s in all; the longest %s", words.Plural(m.Count, "outage"),
		stats.KeptOutages, words.Seconds(m.Length), words.Seconds(m.Longest))
	messages(&b, m.InDoubt, 0, 0, 0)
	return b.String()
}

// messages appends what became of messages in an outage.
func messages(b *strings.Builder, inDoubt, resent, lost, doubled uint64) {
	if inDoubt > 0 {
		fmt.Fprintf(b, "; %d in doubt", inDoubt)
	}
	if resent > 0 {
		fmt.Fprintf(b, ", %d resent", resent)
	}
	if lost > 0 {
		fmt.Fprintf(b, "; %d lost", lost)
	}
	if doubled > 0 {
		fmt.Fprintf(b, "; %d delivered again", doubled)
	}
}

func outageLine(o *stats.Outage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s", o.Start.Format("15:04:05.000"))
	if length := o.Length(); length > 0 {
		fmt.Fprintf(&b, " for %s", words.Seconds(length))
	}
	var came []string
	switch {
	case o.Back > 0 && o.Tried > 0:
		came = append(came, fmt.Sprintf("the broker came back between %s and %s", words.Seconds(o.Tried),
			words.Seconds(o.Back)))
	case o.Back > 0:
		came = append(came, "the broker was back after "+words.Seconds(o.Back))
	}
	for _, sign := range []struct {
		after time.Duration
		what  string
	}{{o.Confirmed, "first confirmation"}, {o.Received, "first receipt"}} {
		if sign.after > 0 {
			came = append(came, sign.what+" after "+words.Seconds(sign.after))
		}
	}
	if o.Length() == 0 {
		came = append(came, "no message came through after it")
	}
	fmt.Fprintf(&b, ": %s", strings.Join(came, ", "))
	switch {
	case len(o.NotBack) > 0:
		fmt.Fprintf(&b, "; %d of %s not connected again", len(o.NotBack), words.Plural(len(o.Workers), "worker"))
	case o.Reconnected > 0:
		fmt.Fprintf(&b, "; %s connected again after %s", words.Plural(len(o.Workers), "worker"), words.Seconds(o.Reconnected))
	}
	if o.Attempts > 0 {
		fmt.Fprintf(&b, ", %s failed", words.Plural(int(min(o.Attempts, 1<<31)), "attempt")) //nolint:gosec // bounded
		if len(o.NotBack) > 0 {
			fmt.Fprintf(&b, " (the last: %s)", o.Attempt)
		}
	}
	b.WriteString(recovery(o))
	if o.Silent >= noteworthySilence {
		fmt.Fprintf(&b, "; nothing had come for %s before it", words.Seconds(o.Silent))
	}
	messages(&b, o.InDoubt, o.Resent, o.Lost, o.Doubled)
	b.WriteString(worst(&o.Worst))
	fmt.Fprintf(&b, "; %s: %s", o.Class, o.Error)
	return b.String()
}

// noteworthySilence is the minimum silence before an outage that its line mentions.
const noteworthySilence = time.Second

// recovery says whether the rates from before an outage were reached again.
func recovery(o *stats.Outage) string {
	switch {
	case o.Recovered > 0:
		return fmt.Sprintf("; rate recovered after %s, %s after the broker was back", words.Seconds(o.Recovered),
			words.Seconds(o.Recovery()))
	case o.Watched > 0:
		return fmt.Sprintf("; rate not recovered in the %s that were left", words.Seconds(o.Watched))
	default:
		return ""
	}
}

// worst returns the highest latencies around an outage.
func worst(w *result.Worst) string {
	var parts []string
	for _, l := range []struct {
		name string
		us   int64
	}{{"response", w.Response}, {"ack", w.Ack}, {"transfer", w.Transfer}} {
		if l.us > 0 && (l.name != "ack" || w.Response == 0) {
			parts = append(parts, fmt.Sprintf("%s up to %s", l.name, words.Seconds(time.Duration(l.us)*time.Microsecond)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
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
