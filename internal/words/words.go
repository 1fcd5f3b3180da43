// Package words puts the facts of a run into words: findings, and numbers with their units. The console, pages, merges
// and docs all use it, so that one thing has one wording.
package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/pkg/result"
)

// Kind is a kind of findings.
type Kind struct {
	// Name is [result.Finding.Kind].
	Name     string
	Severity string
	// Text is the sentence, a format of [fmt.Sprintf] for the values of the finding.
	Text string
}

// Kinds returns all kinds of findings, in the order of the docs. A new kind is a row here, and the place where it is
// found.
func Kinds() []Kind { return kinds }

// MaxExamples is the maximum number of examples of a finding.
const MaxExamples = 10

// Find returns a finding. Count is its number of occurrences, or of the messages concerned. The values fill the kind's
// sentence.
func Find(kind, subject string, count uint64, values ...any) result.Finding {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	k := &kinds[i]
	text := k.Text
	if len(values) > 0 {
		text = fmt.Sprintf(k.Text, values...)
	}
	if subject != "" && subject != Perfmq && !strings.Contains(text, subject) {
		text = subject + ": " + text
	}
	return As(result.Finding{Kind: kind, Count: count, Subject: subject, Text: text}, k.Severity)
}

// Perfmq is the subject of findings about perfmq itself.
const Perfmq = "tester"

// As returns the finding with another severity.
func As(f result.Finding, severity string) result.Finding {
	f.Severity, f.Failure = severity, severity == result.Problem
	return f
}

// First returns the first texts of a list, and the number of the others.
func First(list []string, n int, separator string) string {
	text := strings.Join(list[:min(n, len(list))], separator)
	if more := len(list) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Plural returns a number of things: "1 outage", "2 outages".
func Plural[N int | uint64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Times returns a number of occurrences: "once", "2 times".
func Times[N int | uint64](n N) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Percent returns a share of 1 in percent. Rounding never turns a share into 0% or 100%.
func Percent(share float64) string {
	switch v := 100 * share; {
	case share > 0 && v < 0.01:
		return "< 0.01 %"
	case share < 1 && v > 99.99:
		return "> 99.99 %"
	default:
		return fmt.Sprintf("%.2f %%", v)
	}
}

// Wrap breaks a text into lines of at most that width, between words; a longer word has a line of its own.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line+word) < width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// Table lays out rows, of which the first has the titles; the first column is flush left. Columns that exceed the width
// stand in a table below, after the key columns once more.
func Table(width, keys int, rows [][]string) string {
	lines, wide := make([]string, len(rows)), -2
	for i := range rows[0] {
		pad := 0
		for _, row := range rows {
			pad = max(pad, utf8.RuneCountInString(row[i])+2)
		}
		if wide += pad; i > keys && wide > width {
			for j, row := range rows {
				rows[j] = slices.Concat(row[:keys], row[i:])
			}
			return strings.Join(lines, "\n") + "\n\n" + Table(width, keys, rows)
		}
		if i == 0 {
			pad = 2 - pad
		}
		for j, row := range rows {
			lines[j] += fmt.Sprintf("%*s", pad, row[i])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Duration returns a time, in microseconds, as µs, ms or s, and from 100 s on as in 1m40s.
func Duration(us int64) string {
	switch v := float64(us); {
	case v >= 1e8:
		return (time.Duration(us) * time.Microsecond).Round(time.Second).String()
	case v >= 1e6:
		return Digits(v/1e6) + " s"
	case v >= 1e3:
		return Digits(v/1e3) + " ms"
	default:
		return fmt.Sprintf("%d µs", us)
	}
}

// Seconds returns a duration in seconds, with three digits.
func Seconds(d time.Duration) string {
	if s := d.Seconds(); s >= 999.5 { // 3600, not 3.6e+03
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

func seconds(us int64) string { return Seconds(time.Duration(us) * time.Microsecond) }

// Megabytes returns bytes as MB (10^6 bytes), with three digits.
func Megabytes(bytes float64) string { return Digits(bytes / 1e6) }

// Digits returns a number with three digits, or more if its integer part has more.
func Digits(v float64) string {
	switch {
	case v >= 99.95 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.01:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// Short returns a number. Numbers of five digits or more are shortened to three digits and k, M or G.
func Short(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= 9999.5 && v >= 0.9995*unit.size {
			return Digits(v/unit.size) + unit.name
		}
	}
	if v != math.Trunc(v) && v < 100 {
		return Digits(v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Clock returns the time of day of a moment, to find it in a log.
func Clock(t time.Time) string { return t.Format("15:04:05.000") }

// someLogins is the least number of logins of which a percentile and a rate say something.
const someLogins = 10

// Outage returns a sentence about an outage, without the latencies around it. Texts of brokers in it are not escaped.
func Outage(o *result.Outage) string {
	text := "at " + Clock(time.UnixMicro(o.Time))
	if o.Length > 0 {
		text += " for " + seconds(o.Length)
	}
	separator := ": "
	for _, part := range []struct {
		said bool
		text string
	}{
		{o.Length == 0, "no message came through after it"},
		{o.Back > 0 && o.Tried == 0, "the broker was back after " + seconds(o.Back)},
		{o.Back > 0 && o.Tried > 0, "the broker came back between " + seconds(o.Tried) + " and " + seconds(o.Back)},
		{
			len(o.NotBack) > 0 && o.LastBack == 0,
			fmt.Sprintf("%d of %s not connected again", len(o.NotBack), Plural(len(o.Workers), "worker")),
		},
		{len(o.NotBack) > 0 && o.LastBack > 0, fmt.Sprintf("%d of %s connected again, the last after %s",
			len(o.Workers)-len(o.NotBack), Plural(len(o.Workers), "worker"), seconds(o.LastBack))},
		{
			len(o.NotBack) == 0 && o.Reconnected > 0,
			Plural(len(o.Workers), "worker") + " connected again after " + seconds(o.Reconnected),
		},
		{o.Logins >= someLogins, fmt.Sprintf("login p99 %s, at most %d logins a second",
			Duration(o.LoginP99), o.LoginRate)},
		{o.Attempts > 0, Plural(o.Attempts, "attempt") + " failed"},
		{len(o.NotBack) > 0 && o.LastAttempt != "", "the last: " + o.LastAttempt},
		{o.Recovered > 0, "rate recovered after " + seconds(o.Recovered)},
		{o.Recovered == 0 && o.Watched > 0, "rate not recovered in the " + seconds(o.Watched) + " that were left"},
		{o.Silent >= 1e6, "nothing had come for " + seconds(o.Silent) + " before it"},
		{o.InDoubt > 0, fmt.Sprintf("%d in doubt", o.InDoubt)},
		{o.Resent > 0, fmt.Sprintf("%d resent", o.Resent)},
		{o.Lost > 0, fmt.Sprintf("%d lost", o.Lost)},
		{o.Doubled > 0, fmt.Sprintf("%d duplicated", o.Doubled)},
		{true, o.Class + ": " + o.Error},
	} {
		if part.said {
			text += separator + part.text
			separator = "; "
		}
	}
	return text
}

// Outages returns the number of outages, their lengths and whether the rate recovered; empty without outages. The list
// lacks the outages that more sums up; more may be nil.
func Outages(list []result.Outage, more *result.MoreOutages) string {
	sums := *cmp.Or(more, &result.MoreOutages{})
	open, lasting := 0, 0
	for _, o := range list {
		sums.Length, sums.Longest = sums.Length+o.Length, max(sums.Longest, o.Length)
		if o.Length == 0 {
			open++
		}
		if o.Recovered == 0 {
			lasting++
		}
	}
	n := int(sums.Count) + len(list) //nolint:gosec // a number of outages
	if n == 0 {
		return ""
	}
	text := Plural(n, "outage")
	switch {
	case open == n:
	case n == 1:
		text += " of " + seconds(sums.Length)
	default:
		text += fmt.Sprintf(", %s in all, the longest %s", seconds(sums.Length), seconds(sums.Longest))
	}
	if open > 0 {
		text += fmt.Sprintf("; %d without an end", open)
	}
	if lasting > 0 {
		text += fmt.Sprintf("; the rate was not seen to recover after %d", lasting)
	}
	return text
}

// Outcome is the result of a run in a word, as `artemis perf` has it.
func Outcome(success bool) string {
	if success {
		return "success"
	}
	return "fail"
}

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

// Side returns the use of a broker and its host as pairs of a label and a text, as far as it was measured. Texts of the
// broker in it are not escaped.
func Side(s *result.BrokerSide) (lines [][2]string) {
	u := &s.Whole
	perCPU, perSecond := 1/float64(max(1, u.CPUSpan)), 1e6/float64(max(1, u.Span))
	cpu := with(measured(u.CPU, "%.2f cores", perCPU), measured(s.CPUMost, " (at most %.2f)", 1))
	collections := with(measured(u.Collections, "%.0f collections", 1), measured(u.CollectionTime, " in %.1f ms", 1e-3))
	for _, line := range [][][2]string{
		{
			{"process"},
			{"cpu %s", cpu},
			{"memory %s MB", megabytes(u.Memory, 1)},
			{"heap %s MB", megabytes(u.Heap, 1)},
			{"%s", collections},
			{"threads %s", measured(u.Threads, "%.0f", 1)},
			{"open files %s", measured(u.Files, "%.0f", 1)},
		},
		{
			{"host"},
			{"load %s", measured(u.Load, "%.2f", 1)},
			{"disk %s %% busy at most", measured(u.DiskBusy, "%.1f", 100)},
			{"read %s MB/s", megabytes(u.DiskRead, perSecond)},
			{"written %s MB/s", megabytes(u.DiskWritten, perSecond)},
			{"network in %s MB/s", megabytes(u.NetIn, perSecond)},
			{"out %s MB/s", megabytes(u.NetOut, perSecond)},
			{"loopback %s MB/s", megabytes(u.Loopback, perSecond)},
		},
		{{"log"}, {"errors %s", measured(u.Errors, "%.0f", 1)}, {"warnings %s", measured(u.Warnings, "%.0f", 1)}},
		{{"first error"}, {"%s", s.FirstError}},
		{{"first warning"}, {"%s", s.FirstWarning}},
	} {
		var parts []string
		for _, v := range line[1:] {
			if v[1] != "" {
				parts = append(parts, fmt.Sprintf(v[0], v[1]))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, [2]string{line[0][0], strings.Join(parts, ", ")})
		}
	}
	for _, e := range s.Events {
		lines = append(lines, [2]string{"event", time.UnixMicro(e.Time).Format(time.DateTime) + " " + e.Text})
	}
	for _, note := range s.Notes {
		lines = append(lines, [2]string{"note", note})
	}
	return lines
}

// measured returns a value times a factor; "" if it was not measured.
func measured[T float64 | uint64](v *T, format string, factor float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, factor*float64(*v))
}

// with returns a text and more about it, if there is one.
func with(text, more string) string {
	if text == "" {
		return ""
	}
	return text + more
}

func megabytes(v *uint64, factor float64) string {
	if v == nil {
		return ""
	}
	return Megabytes(factor * float64(*v))
}

// Mark returns a sentence about a mark, with its step if there are several.
func Mark(m *result.Mark, steps bool) string {
	text := fmt.Sprintf("%d %s after %v: average %.0f msg/sec, at that moment %.0f msg/sec", m.Messages, m.Of,
		time.Duration(m.Elapsed*1000).Round(time.Millisecond), m.Average, m.Momentary)
	if steps {
		text = m.Step + ": " + text
	}
	return text
}

// Opening is a count of connections that a group opened as its load.
type Opening struct {
	Name, Note string
	N          uint64
}

// Openings returns the counts of connections: opened, and of the others what is not zero.
func Openings(c *result.Counts) []Opening {
	n := c.Values()
	list := []Opening{
		{"opened", "", n[result.Opened]},
		{"refused", "by the broker or the network", n[result.OpenRefused]},
		{"timed out", "no answer within --connect-timeout", n[result.OpenTimedOut]},
		{"unmade", "perfmq's machine had no port, file or memory", n[result.OpenUnmade]},
		{"abandoned", "due, and cut short by the end of the load", n[result.OpenAbandoned]},
		{"closed", "by plan", n[result.ConnectionsClosed]},
		{"lost", "ended by the broker or the network", n[result.ConnectionsLost]},
	}
	return append(list[:1], slices.DeleteFunc(list[1:], func(o Opening) bool { return o.N == 0 })...)
}
