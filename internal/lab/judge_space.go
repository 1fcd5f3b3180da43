//go:build unix

package main

import (
	"fmt"
	"strings"
	"time"
)

// space describes for the page what perfmq saw of a full disk, and checks when.
func (j *judgement) space() string {
	said := j.said
	if j.early {
		said = append(said, "an error of the broker ended the run")
	}
	var n uint64
	for _, q := range j.queues() {
		p, _ := j.queue(q)
		n += refused(&p)
	}
	if n > 0 {
		said = append(said, fmt.Sprintf("%d messages refused", n))
	}
	var longest int64
	for _, s := range j.result.Stalls {
		if time.UnixMicro(s.Time).After(j.first.Add(-onTime)) {
			longest = max(longest, s.Length)
		}
	}
	if longest > 0 {
		said = append(said, fmt.Sprintf("a stall of %.1f s", seconds(longest)))
	}
	if outages := j.result.Outages; len(outages) > 0 {
		first := &outages[0]
		began := time.UnixMicro(first.Time)
		if d := off(first.Time, j.first, j.last); d < -onTime {
			j.wrong("an outage began %v before the disk was filled", -d)
		}
		if late := began.Sub(j.ended); !j.ended.IsZero() && late > onTime {
			j.wrong("the outage began %v after the broker had ended itself", late)
		}
		text := fmt.Sprintf("an outage of %.1f s from %+.1f s on", seconds(first.Length), began.Sub(j.first).Seconds())
		if n := len(outages); n > 1 {
			text += fmt.Sprintf(", and %d more", n-1)
		}
		last := &outages[len(outages)-1]
		if last.Recovered > 0 {
			text += fmt.Sprintf(", full rate %.1f s after the beginning of the last", seconds(last.Recovered))
		}
		if n := len(last.NotBack); n > 0 {
			text += fmt.Sprintf(", %d workers not back", n)
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ")
}

// slack is by how much less or more than perfmq a broker may count in a destination whose disk was full: messages that
// it has lost or refused.
func (j *judgement) slack(destination string) (less, more uint64) {
	if !j.expect.space {
		return 0, 0
	}
	for _, q := range j.queues() {
		if isQueue(destination, q) {
			p, v := j.queue(q)
			return v.Lost + v.Left, refused(&p)
		}
	}
	return 0, 0
}
