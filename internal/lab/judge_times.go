//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// onTime is the largest difference between the start of an outage and the harness's own log.
const onTime = 100 * time.Millisecond

// times compares outages and stalls with the log of the harness, and describes them for the page.
func (j *judgement) times() string {
	if j.first.IsZero() {
		said := j.waits()
		for i := range j.result.Outages {
			out := &j.result.Outages[i]
			if !j.expect.refused {
				j.wrong("an outage, where no connection broke: %s", out.Class)
				continue
			}
			j.breaks("connections broke, and the messages are in doubt")
			said += fmt.Sprintf("; an outage of %.1f s: %s", seconds(out.Length), out.Class)
		}
		return said
	}
	n := len(j.result.Outages)
	if j.expect.unnoticed {
		if n == 0 {
			return "no connection was lost"
		}
		j.breaks("%d outages", n)
	}
	if j.expect.outage && n != 1 && (n == 0 || !j.expect.several) {
		j.wrong("%d outages instead of one", n)
	}
	var said []string
	if s := j.stall(); j.expect.silence && s != nil {
		said = append(said, fmt.Sprintf("a stall of %.1f s, from %s", seconds(s.Length), j.late(s.Time, j.owed())))
	} else if j.expect.silence && n == 0 {
		j.wrong("neither a stall nor an outage")
	}
	found := false // that of the failure
	for i := range j.result.Outages {
		out := &j.result.Outages[i]
		at := "later"
		if j.expect.outage && (!found || j.expect.several) {
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
	return strings.Join(said, "; ")
}

// fullRate describes the recovery of the load after an outage.
func fullRate(after int64) string {
	if after == 0 {
		return ", no full rate in the time watched"
	}
	return fmt.Sprintf(", full rate after %.0f s", seconds(after))
}

// came describes the time from the start of an outage to an event; 0: it did not happen.
func came(after int64, what, not string) string {
	if after == 0 {
		return ", " + not
	}
	return fmt.Sprintf(", %s after %.1f s", what, seconds(after))
}

// tookAll: the queue should have been full, and took all messages. A busy machine may not have sent the last ones.
func (j *judgement) tookAll() bool { return j.expect.blocked && j.stored >= j.due-j.due/100 }

// neverFull: a queue should have been full, and was not. It took all that a busy machine sent in the first step,
// which was less than was due, and took messages to the end of the step. A broker that withholds credit also has all
// that was sent, but takes nothing in the last seconds.
func (j *judgement) neverFull() bool {
	p := &j.kept.sent
	switch {
	case !j.expect.blocked && !j.expect.refused, refused(p) > 0, j.stored >= j.due-j.due/100:
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

// waits tells how a full queue showed.
func (j *judgement) waits() string {
	p := &j.kept.sent
	if j.early {
		return fmt.Sprintf("full at %d messages; the broker refused one and closed the connection, which ended the run",
			j.stored)
	}
	if n := refused(p); n > 0 {
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

// stall returns the longest stall that began around the failure; nil without one.
func (j *judgement) stall() (found *result.Stall) {
	for i := range j.result.Stalls {
		s := &j.result.Stalls[i]
		if off(s.Time, j.first, j.last).Abs() < lately && (found == nil || s.Length > found.Length) {
			found = s
		}
	}
	return found
}

// lately is the time before a failure in which a stall may begin, and in which answers show the speed of the broker.
const lately = 5 * time.Second

// owed returns the longest time to an answer in the last seconds before the failure. A stall begins with the last
// answer, and a broker that takes so long to answer may have been silent for as long when it was stopped.
func (j *judgement) owed() time.Duration { return owed(j.result, failureStep, j.first) }

// owed returns the longest time to an answer in a step; in any if step is empty.
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

// late checks the start of an outage or a stall against the harness's log, and describes the difference. It may have
// begun earlier by a given time.
func (j *judgement) late(began int64, earlier time.Duration) string {
	if d := off(began, j.first, j.last); d > max(onTime, j.allowed) || d < -max(onTime, earlier) {
		j.wrong("it began %v from the harness's log", d)
	}
	return fmt.Sprintf("%+d ms", time.UnixMicro(began).Sub(j.first).Milliseconds())
}

// off returns the distance of a moment from an interval; 0 within it.
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

// acksBefore returns the median ack times of the seconds of the load before a moment.
func (j *judgement) acksBefore(to time.Time) (list []int64) {
	for i := range j.result.Rows {
		r := &j.result.Rows[i]
		l := r.Latencies[result.Ack]
		if r.Step != failureStep || r.Phase != "measure" || l == nil || l.Percentiles == nil {
			continue
		}
		if !time.UnixMicro(r.Time).After(to) {
			list = append(list, l.P50)
		}
	}
	return list
}

func millis(us int64) string { return fmt.Sprintf("%.1f ms", float64(us)/1e3) }

const (
	// maxAck is the longest median ack time before a failure: a trial's load keeps no broker of an idle machine busy.
	maxAck = 50 * time.Millisecond
	// atFirst is that time of a failure without a moment, such as a queue that becomes full.
	atFirst = 3 * time.Second
)

// unfit returns why the machine was too busy for a judgement; empty if it was not. A session that allows late outages
// accepts a busy machine where that shows no mistake.
func (j *judgement) unfit() string {
	if j.allowed > onTime && len(j.mistakes) == 0 {
		return ""
	}
	if j.neverFull() {
		return fmt.Sprintf("perfmq sent no more than %d of %d messages", j.stored, j.due)
	}
	if n := len(j.result.Outages); j.expect.outage && n == 0 && !j.loaded().IsZero() && j.loaded().Before(j.last) {
		return "the load was over before the failure had its effect"
	}
	acks := j.acksBefore(j.begins())
	if len(acks) > 0 && median(acks) > maxAck.Microseconds() {
		return "the median ack time before the failure was " + millis(median(acks))
	}
	t, sends := &j.result.Tester, cmp.Or(j.result.Total.Producers, &result.Producers{})
	switch {
	case t.Crowded():
		return busyText(t)
	case t.Pauses > 0:
		return fmt.Sprintf("perfmq was paused %d times, for %s at most", t.Pauses, millis(t.PauseMax))
	case result.Late(sends.Late, sends.Sent):
		return fmt.Sprintf("perfmq sent %d of %d messages late", sends.Late, sends.Sent)
	}
	return ""
}

func busyText(h *result.Tester) string {
	return fmt.Sprintf("the machine was %.0f%% busy, %.0f%% with other programs than perfmq", 100*h.MachineShare(),
		100*h.OthersShare())
}

// begins returns when the failure began.
func (j *judgement) begins() time.Time {
	if !j.first.IsZero() {
		return j.first
	}
	for i := range j.result.Rows {
		if r := &j.result.Rows[i]; r.Step == failureStep {
			return time.UnixMicro(r.Time - r.Length).Add(atFirst)
		}
	}
	return j.first
}

// loaded returns when the step of the failure ended; the zero time without rows of it.
func (j *judgement) loaded() (end time.Time) {
	for i := range j.result.Rows {
		if r := &j.result.Rows[i]; r.Step == failureStep {
			end = time.UnixMicro(r.Time)
		}
	}
	return end
}
