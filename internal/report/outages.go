package report

import (
	"fmt"
	"strings"
	"time"

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
	if n := len(s.Outages); n > 0 {
		var sum time.Duration
		for i := range s.Outages {
			sum += s.Outages[i].Length()
		}
		text += fmt.Sprintf(", after %s (%s)", plural(n, "outage"), seconds(sum))
	}
	return text
}

// outagesInShort returns the number of outages, their length, and whether the rate recovered.
func outagesInShort(list []stats.Outage) string {
	var sum time.Duration
	var longest *stats.Outage
	lasting := 0
	for i := range list {
		o := &list[i]
		if sum += o.Length(); longest == nil || o.Length() > longest.Length() {
			longest = o
		}
		if o.Recovered == 0 {
			lasting++
		}
	}
	text := fmt.Sprintf("%d, %s in all; the longest %s, at %s", len(list), seconds(sum), seconds(longest.Length()),
		longest.Start.Format("15:04:05.000"))
	if lasting > 0 {
		text += fmt.Sprintf("; the rate was not seen to recover after %d", lasting)
	}
	return text
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// outageNow describes the present outage; empty if there is none.
func outageNow(p *stats.OutageProgress) string {
	switch {
	case p == nil || p.Since == 0:
		return ""
	case p.Down == 0:
		return fmt.Sprintf("%.1f s, all workers connected again, no message yet", p.Since.Seconds())
	default:
		return fmt.Sprintf("%.1f s, %s not connected", p.Since.Seconds(), plural(p.Down, "worker"))
	}
}

// outageLines returns a line for each outage.
func outageLines(s *stats.Summary) (lines []string) {
	for i := range s.Outages {
		lines = append(lines, outageLine(&s.Outages[i]))
	}
	return lines
}

func outageLine(o *stats.Outage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s", o.Start.Format("15:04:05.000"))
	if length := o.Length(); length > 0 {
		fmt.Fprintf(&b, " for %s", seconds(length))
	}
	var came []string
	for _, sign := range []struct {
		after time.Duration
		what  string
	}{{o.Confirmed, "first confirmation"}, {o.Received, "first receipt"}} {
		if sign.after > 0 {
			came = append(came, sign.what+" after "+seconds(sign.after))
		}
	}
	if len(came) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(came, ", "))
	} else {
		b.WriteString(": no message came through after it")
	}
	switch {
	case len(o.NotBack) > 0:
		fmt.Fprintf(&b, "; %d of %s not connected again", len(o.NotBack), plural(len(o.Workers), "worker"))
	case o.Reconnected > 0:
		fmt.Fprintf(&b, "; %s connected again after %s", plural(len(o.Workers), "worker"), seconds(o.Reconnected))
	}
	if o.Attempts > 0 {
		fmt.Fprintf(&b, ", %s failed", plural(int(min(o.Attempts, 1<<31)), "attempt")) //nolint:gosec // bounded
	}
	b.WriteString(recovery(o))
	if o.Silent >= noteworthySilence {
		fmt.Fprintf(&b, "; nothing had come for %s before it", seconds(o.Silent))
	}
	if o.InDoubt > 0 {
		fmt.Fprintf(&b, "; %d in doubt", o.InDoubt)
	}
	if o.Resent > 0 {
		fmt.Fprintf(&b, ", %d resent", o.Resent)
	}
	if o.Lost > 0 {
		fmt.Fprintf(&b, "; %d lost", o.Lost)
	}
	if o.Doubled > 0 {
		fmt.Fprintf(&b, "; %d delivered again", o.Doubled)
	}
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
		return "; rate recovered after " + seconds(o.Recovered)
	case o.Watched > 0:
		return fmt.Sprintf("; rate not recovered in the %s that were left", seconds(o.Watched))
	default:
		return ""
	}
}

// worst returns the highest latencies around an outage.
func worst(w *stats.Worst) string {
	var parts []string
	for _, l := range []struct {
		name string
		us   int64
	}{{"response", w.Response}, {"ack", w.Ack}, {"transfer", w.Transfer}} {
		if l.us > 0 && (l.name != "ack" || w.Response == 0) {
			parts = append(parts, fmt.Sprintf("%s up to %s", l.name, seconds(time.Duration(l.us)*time.Microsecond)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// outages returns the outages of a run.
func outages(s *stats.Summary) (list []result.Outage) {
	for i := range s.Outages {
		o := &s.Outages[i]
		list = append(list, result.Outage{
			Time: o.Start.UnixMicro(), Elapsed: o.Start.Sub(s.Start).Microseconds(), Length: o.Length().Microseconds(),
			Silent: o.Silent.Microseconds(), Recovered: o.Recovered.Microseconds(), Watched: o.Watched.Microseconds(),
			Before:    result.Rates{Completed: o.Before.Completed, Received: o.Before.Received},
			Confirmed: o.Confirmed.Microseconds(), Received: o.Received.Microseconds(),
			Reconnected: o.Reconnected.Microseconds(),
			Workers:     o.Workers, NotBack: o.NotBack, Attempts: o.Attempts, InDoubt: o.InDoubt, Class: o.Class.String(),
			Resent: o.Resent, Lost: o.Lost, Doubled: o.Doubled,
			Error: safetext.Bounded(o.Error),
			Worst: result.Worst{Ack: o.Worst.Ack, Response: o.Worst.Response, Transfer: o.Worst.Transfer},
		})
	}
	return list
}
