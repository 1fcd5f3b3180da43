//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// maxAck is the longest median ack time before a failure: the load of a trial keeps no broker of an idle machine busy.
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
	if n := len(j.result.Outages); j.expect.outage && n == 0 && !j.loaded().IsZero() && j.loaded().Before(j.last) {
		return "the load was over before the failure had its effect"
	}
	acks := j.medians(func(l *result.Latencies) *result.Latency { return l[result.Ack] }, time.Time{}, j.begins())
	if len(acks) > 0 && median(acks) > maxAck.Microseconds() {
		return "the median ack time before the failure was " + millis(median(acks))
	}
	t, h := &j.result.Tester, healthOf(j.result)
	switch {
	case h.Crowded():
		return busyText(&h)
	case t.Pauses > 0:
		return fmt.Sprintf("perfmq was paused %d times, for %s at most", t.Pauses, millis(t.PauseMax))
	case h.Late(h.LateOwn()) || h.Late(h.LateCrowded) || h.Late(h.LatePaused):
		return fmt.Sprintf("perfmq sent %d of %d messages late", h.LateSends, h.Sent)
	}
	return ""
}

// healthOf returns the use of the machine during a run.
func healthOf(r *result.Result) stats.Health {
	t := &r.Tester
	h := stats.Health{
		CPU: micros(t.CPU), Machine: micros(t.MachineBusy), MachineAll: micros(t.MachineAll),
		LateCrowded: t.LateCrowded, LatePaused: t.LatePaused,
	}
	if p := r.Total.Producers; p != nil {
		h.LateSends, h.Sent = p.Late, p.Sent
	}
	return h
}

func busyText(h *stats.Health) string {
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

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
