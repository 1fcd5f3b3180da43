package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// failureText returns the counts of classes as text, the largest first: "timeout 10, connection-lost 2".
func failureText(classes map[string]uint64) string {
	var names []string
	for class := range driver.NumClasses {
		if classes[class.String()] > 0 {
			names = append(names, class.String())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(classes[b], classes[a]) })
	for i, name := range names {
		if name == driver.ClassNone.String() {
			names[i] = "unclassified"
		}
		names[i] += fmt.Sprintf(" %d", classes[name])
	}
	return strings.Join(names, ", ")
}

// failure counts the sends that ended in one outcome other than accepted.
type failure struct {
	name    string
	count   uint64
	classes map[string]uint64 // their sum is count
}

// failuresOf returns all failures in the order of the outputs.
func failuresOf(c *result.Counts) (list [5]failure) {
	all := cmp.Or(c.Producers, &result.Producers{}).Failures
	for i, name := range [...]string{"rejected", "released", "modified", "failed", "unconfirmed"} {
		list[i] = failure{name: name, classes: all[name]}
		for _, n := range all[name] {
			list[i].count += n
		}
	}
	return list
}

// rate returns delta per second of the interval, rounded to nearest: intervals are a little longer than a second, and
// 10 msg/s should not show as 9. It is 0 for an interval without length.
func rate(delta uint64, interval time.Duration) uint64 {
	if interval <= 0 {
		return 0
	}
	return uint64(math.Round(float64(delta) * float64(time.Second) / float64(interval)))
}

// coresUsed returns the number of cores used, and of how many.
func coresUsed(h *result.Tester) (used, of string) {
	return fmt.Sprintf("%.2f", h.CPUShare()*float64(h.Cores)), " of " + words.Plural(h.Cores, "core")
}

// oneLine escapes a text, which may come from a broker, for a line of the console.
func oneLine(text string) string { return safetext.Line(text) }

func countersByName(list []driver.Counter) map[string]uint64 {
	counters := make(map[string]uint64, len(list))
	for _, c := range list {
		counters[c.Name] = c.Value
	}
	return counters
}

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

// writeNumbers writes average and highest rates of the measured part. The elapsed time is that from the start of the
// load to the end of the drain, and the messages of each worker are of the whole run.
func (c *Console) writeNumbers(b *strings.Builder, s *stats.Summary) {
	if s.Tester.MemoryPeak > 0 {
		writeText(b, "tester memory", words.Megabytes(float64(s.Tester.MemoryPeak)), " MB (most resident)")
	}
	measured := ""
	if s.Average.Span > 0 {
		measured = fmt.Sprintf(" s (measured %.2f s)", s.Average.Span.Seconds())
	}
	writeText(b, "elapsed", fmt.Sprintf("%.2f", float64(s.End-s.Start)/1e6), cmp.Or(measured, " s"))
	if s.Average.Span > 0 {
		c.writeAverages(b, s)
	}
	c.writePeaks(b, "maximum ", &s.Maximum)
	for i := range s.BrokerSide {
		for _, line := range words.Side(&s.BrokerSide[i]) {
			writeList(b, "--- broker "+line[0]+":", line[1:])
		}
	}
}

func (c *Console) writeAverages(b *strings.Builder, s *stats.Summary) {
	a := &s.Average
	line := func(label string, n uint64, note string) {
		writeText(b, label, fmt.Sprint(rate(n, a.Span)), " msg/sec"+note)
	}
	payload := func(bytes uint64) string {
		return fmt.Sprintf(" (%s MB/s of payload)", words.Megabytes(a.PerSecond(bytes)))
	}
	if c.run.Producing {
		line("average sent", a.Sent, offered(&s.Offered))
		line("average completed", a.Completed, payload(a.CompletedBytes))
	}
	if c.run.Consuming {
		line("average received", a.Received, payload(a.ReceivedBytes))
	}
}

// offered returns the rate that was asked for and the missed share of it, in brackets; empty without a rate.
func offered(o *stats.Offered) string {
	switch {
	case !o.Known():
		return ""
	case o.Span <= 0: // of several steps
		return fmt.Sprintf(" (missed %s of the %d messages due)", words.Percent(o.Missed()), o.Due)
	default:
		return fmt.Sprintf(" (offered %s, missed %s)", perSecond(o.Rate), words.Percent(o.Missed()))
	}
}

// writePeaks writes the lowest or highest rates, and the ends of their seconds: from the start of the load, and by the
// wall clock, to find them in the broker's log.
func (c *Console) writePeaks(b *strings.Builder, label string, m *stats.Peaks) {
	for _, l := range []struct {
		of    string
		known bool
		*result.Extreme
	}{{"completed", c.run.Producing, &m.Completed}, {"received", c.run.Consuming, &m.Received}} {
		if l.known && l.Known() {
			writeText(b, label+l.of, fmt.Sprint(uint64(math.Round(l.PerSecond))),
				fmt.Sprintf(" msg/sec (at %.1f s, %s)", float64(l.Elapsed)/1e6,
					time.UnixMicro(l.Time).Format(time.TimeOnly)))
		}
	}
}

// perSecond returns a rate, with decimals below 100.
func perSecond(v float64) string {
	if v < 100 && v != math.Trunc(v) {
		return words.Digits(v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Verification returns the output of `perfmq verify`: the lines about verification of a console's summary.
func Verification(r *verify.Result, problems []string) string {
	var b strings.Builder
	b.WriteString("--- VERIFICATION\n")
	writeText(&b, "result", words.Outcome(len(problems) == 0), "")
	writeTotal(&b, "total sent", r.Sent, "")
	writeVerification(&b, r)
	writeList(&b, "--- warning:", r.Notes)
	writeList(&b, "--- problem:", problems)
	return b.String()
}

// writeVerification writes the counts of a verification. Expected, once, lost, duplicated, out of order and damaged are
// always written, as far as they can be known; the others only if they are not zero.
func writeVerification(b *strings.Builder, r *verify.Result) {
	if len(r.Scopes) == 0 {
		return
	}
	t := &r.Total
	line := func(always bool, label string, n uint64, kind verify.Kind, notes ...string) {
		if n == 0 {
			if always {
				writeTotal(b, "verified "+label, n, "")
			}
			return
		}
		if first := r.First(kind); first != "" {
			notes = append(notes, "first: "+first)
		}
		writeTotal(b, "verified "+label, n, oneLine(strings.Join(notes, "; ")))
	}
	if r.Known {
		line(true, "expected", t.Expected, "")
	}
	line(true, "once", t.Once, "")
	if r.Known || t.Lost > 0 {
		line(true, "lost", t.Lost, verify.Lost, "accepted by the broker, never received")
	}
	line(false, "late", t.ArrivedLate, "", "after the window, lost until then")
	copies := fmt.Sprintf("copies too many, %d redelivered", t.Redelivered)
	if t.Resent > 0 {
		copies += fmt.Sprintf(", %d resent twice", t.Resent)
	}
	line(true, "duplicated", t.Duplicates, verify.Duplicated, copies)
	line(true, "out of order", t.Disordered, verify.Disordered, fmt.Sprintf("behind a later one, %d redelivered",
		t.DisorderedRedelivered))
	var illegible []string
	if t.Illegible > 0 {
		illegible = append(illegible, fmt.Sprintf("%d beyond recognition", t.Illegible))
	}
	line(true, "damaged", t.Damaged, verify.Damaged, illegible...)
	line(false, "foreign", t.Foreign, "", "of other runs or tools")
	line(false, "left", t.Left, "", "not received when the consumers ended")
	line(false, "early", t.Early, "", "sent before the subscription")
	line(false, "gaps", t.Gaps, "", "below the highest number received")
	line(false, "in doubt", t.UnconfirmedArrived+t.UnconfirmedMissing, "",
		fmt.Sprintf("sent without an answer: %d arrived, %d did not", t.UnconfirmedArrived, t.UnconfirmedMissing))
	line(false, "refused", t.RefusedArrived, verify.Refused, "by the broker, but received")
	line(false, "withheld", t.WithheldArrived, verify.Withheld, "rolled back, but received")
}
