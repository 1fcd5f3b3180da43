//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// onTime is how far the start of an outage may be from the harness's own log.
const onTime = 100 * time.Millisecond

// times compares outages and stalls with the log of the harness, and describes them for the page.
func (j *judgement) times() string { //nolint:gocyclo // a list of checks
	if j.first.IsZero() {
		said := j.waits()
		for i := range j.result.Outages {
			out := &j.result.Outages[i]
			if !j.expect.refused {
				j.wrong("an outage, where no connection broke: %s", out.Class)
				continue
			}
			j.broken = append(j.broken, "connections broke, and the messages are in doubt")
			said += fmt.Sprintf("; an outage of %.1f s: %s", seconds(out.Length), out.Class)
		}
		return said
	}
	if j.expect.slow {
		return j.latencies()
	}
	n, own := len(j.result.Outages), j.brokersOwn()
	if j.expect.unnoticed {
		if n == 0 {
			return "no connection was lost"
		}
		j.broken = append(j.broken, fmt.Sprintf("%d outages", n))
	}
	if j.expect.doubted {
		return j.doubts()
	}
	if n := n - len(own); j.expect.outage && n != 1 && (n == 0 || !j.expect.several) {
		j.wrong("%d outages instead of one", n)
	}
	var said []string
	if s := j.stall(); j.expect.silence && s != nil {
		said = append(said, fmt.Sprintf("a stall of %.1f s, from %s", seconds(s.Length), j.late(s.Time, j.owed())))
	} else if j.expect.silence && n == 0 && j.took > int64(keptRate*held.Seconds())/2 {
		j.broken = append(j.broken, "no producer was held up")
		said = append(said, fmt.Sprintf("the queue took %d messages meanwhile", j.took))
	} else if j.expect.silence && n == 0 {
		j.wrong("neither a stall nor an outage")
	}
	found := false // that of the failure
	for i := range j.result.Outages {
		out := &j.result.Outages[i]
		at := "later"
		if own[i] {
			at = "when the broker closed connections because of an error of its own"
		} else if j.expect.outage && (!found || j.expect.several) {
			at, found = "from "+j.late(out.Time, 0), true
		}
		text := fmt.Sprintf("an outage of %.1f s, %s", seconds(out.Length), at)
		if j.expect.starts {
			text += came(out.Reconnected, "all connected again", "not all connected again") +
				came(out.Confirmed, "first confirmation", "no confirmation") + came(out.Received, "first delivery", "no delivery")
		}
		text += fullRate(out.Recovered)
		if len(out.NotBack) > 0 {
			text += fmt.Sprintf(", %d workers not back", len(out.NotBack))
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ") + j.copies()
}

// fullRate tells how long after the start of an outage the load had recovered, if it had.
func fullRate(after int64) string {
	if after == 0 {
		return ", no full rate in the time watched"
	}
	return fmt.Sprintf(", full rate after %.0f s", seconds(after))
}

// came tells how long after the start of an outage something came, or that it did not.
func came(after int64, what, not string) string {
	if after == 0 {
		return ", " + not
	}
	return fmt.Sprintf(", %s after %.1f s", what, seconds(after))
}

// tookAll tells whether a queue that was to be full took all messages, but for some that were due at the very end,
// which a busy machine did not send.
func (j *judgement) tookAll() bool { return j.expect.blocked && j.stored >= j.due-j.due/100 }

// neverFull tells whether a queue that was to be full was not: it took all that a busy machine sent in the first step,
// which was less than was due, and took messages to the end of the step. A broker that withholds credit also has all
// that was sent, but takes nothing in the last seconds.
func (j *judgement) neverFull() bool {
	p, _ := j.queue(j.kept)
	switch {
	case !j.expect.blocked && !j.expect.refused, refused(&p) > 0, j.stored >= j.due-j.due/100:
		return false
	case j.expect.blocked && len(j.result.Stalls) > 0:
		return false
	}
	var sent int64
	var took []uint64 // in each second
	for i := range j.result.Rows {
		if row := &j.result.Rows[i]; row.Step == failureStep && row.Producers != nil {
			sent += int64(row.Producers.Sent)
			took = append(took, row.Producers.Completed)
		}
	}
	const last = 3 // seconds, at a rate of hundreds
	return j.stored >= sent && slices.ContainsFunc(took[max(0, len(took)-last):], func(n uint64) bool { return n > 0 })
}

// refused are the messages that the broker did not take.
func refused(p *result.Producers) uint64 { return p.Rejected + p.Failed + p.Released + p.Modified }

// waits tells how a full queue showed.
func (j *judgement) waits() string {
	p, _ := j.queue(j.kept)
	if j.early {
		return fmt.Sprintf("full at %d messages; the broker refused one and closed the connection, which ended the run",
			j.stored)
	}
	if n := refused(&p); n > 0 {
		return fmt.Sprintf("full at %d messages; %d refused", j.stored, n)
	}
	var longest int64
	for _, s := range j.result.Stalls {
		longest = max(longest, s.Length)
	}
	if j.tookAll() {
		return fmt.Sprintf("%d messages taken", j.stored)
	}
	if j.neverFull() {
		return fmt.Sprintf("not full: the machine was too busy to send more than %d of %d messages", j.stored, j.due)
	}
	if longest == 0 {
		j.wrong("no stall, where the queue was full")
	}
	return fmt.Sprintf("full at %d messages; producers held up, for %.1f s at most", j.stored, seconds(longest))
}

// stall returns the longest stall that began around the failure; nil if there is none.
func (j *judgement) stall() (found *result.Stall) {
	for i := range j.result.Stalls {
		s := &j.result.Stalls[i]
		if off(s.Time, j.first, j.last).Abs() < lately && (found == nil || s.Length > found.Length) {
			found = s
		}
	}
	return found
}

// lately is how long before a failure a stall may begin, and from when on answers tell how slow the broker was.
const lately = 5 * time.Second

// owed returns the longest time to an answer in the last seconds before the failure. A stall begins with the last
// answer, and a broker that takes so long to answer may have been silent for as long when it was stopped.
func (j *judgement) owed() time.Duration { return owed(j.result, failureStep, j.first) }

// owed returns that of a step; any if it is empty.
func owed(of *result.Result, step string, first time.Time) (longest time.Duration) {
	for i := range of.Rows {
		r := &of.Rows[i]
		before := first.Sub(time.UnixMicro(r.Time))
		if (step == "" || r.Step == step) && r.Latencies[result.Ack] != nil && before > 0 && before < lately {
			longest = max(longest, time.Duration(r.Latencies[result.Ack].Max)*time.Microsecond)
		}
	}
	return longest
}

// late says how much later than the harness's log something began, and checks it. It may have begun earlier by that
// much.
func (j *judgement) late(began int64, earlier time.Duration) string {
	if d := off(began, j.first, j.last); d > max(onTime, j.allowed) || d < -max(onTime, earlier) {
		j.wrong("it began %v from the harness's log", d)
	}
	return fmt.Sprintf("%+d ms", time.UnixMicro(began).Sub(j.first).Milliseconds())
}

// off returns how far a moment is from an interval; 0 within it.
func off(at int64, first, last time.Time) time.Duration {
	switch t := time.UnixMicro(at); {
	case t.Before(first):
		return t.Sub(first)
	case t.After(last):
		return t.Sub(last)
	}
	return 0
}

func seconds(us int64) float64 { return float64(us) / 1e6 }
