//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// onTime is how far the start of an outage may be from the harness's own log.
const onTime = 100 * time.Millisecond

// observation holds the result of a run, the log of the harness and the counts of the broker.
type observation struct {
	expect      expectation
	live, kept  string    // queues
	first, last time.Time // when the failure began, and when it had its effect; zero of one without a moment
	status      int       // exit status of perfmq
	hung        bool      // perfmq did not end by itself
	early       bool      // perfmq ended in the first step, because of a refused message
	due         int64     // messages to the kept queue in the first step
	stored      int64     // by the broker: messages in the kept queue when its producers had ended
	total       int64     // by the broker: messages that the live queue has ever had; -1 if it does not tell
	took        int64     // by the broker: messages that the kept queue took while it was to take none
	left        int64     // by the broker: messages in all queues at the end; -1 if it does not tell
	result      *result.Result
}

// row is a line of the page.
type row struct {
	Deployment, Failure, Protocol string
	Promised, Observed            string
	Ours, Brokers                 string
	Verdict                       string
	Mistakes                      []string `json:",omitempty"` // of perfmq
}

// judge compares perfmq's report of a run with the truth.
func judge(o *observation) row {
	j := judgement{observation: o}
	if o.hung {
		j.wrong("it did not end")
	}
	if !o.result.Complete {
		j.wrong("its result is not complete")
		return j.row("the run did not come to its end")
	}
	j.accounts()
	j.counts()
	j.promise()
	j.status()
	return j.row(j.times())
}

// judgement collects the mistakes of perfmq, and the broken promises of the broker, that an observation shows.
type judgement struct {
	*observation
	mistakes []string
	broken   []string // promises of the broker
}

func (j *judgement) wrong(format string, args ...any) {
	j.mistakes = append(j.mistakes, fmt.Sprintf(format, args...))
}

// queue returns the counts of a queue's producers, and its verification.
func (j *judgement) queue(name string) (sent result.Producers, v result.Verified) {
	for i := range j.result.Workers {
		w := &j.result.Workers[i]
		if p := w.Producers; p != nil && isQueue(w.Destination, name) {
			sent.Sent += p.Sent
			sent.Completed += p.Completed
			sent.Rejected += p.Rejected
			sent.Failed += p.Failed
			sent.Released += p.Released
			sent.Modified += p.Modified
			sent.Unconfirmed += p.Unconfirmed
		}
	}
	if j.result.Verification != nil {
		for _, s := range j.result.Verification.Subscriptions {
			if isQueue(s.Destination, name) {
				v = s.Verified
			}
		}
	}
	return sent, v
}

// isQueue compares a destination with the name of a queue.
func isQueue(destination, name string) bool {
	return strings.TrimPrefix(destination, "queue://") == name
}

// queues are the queues that had producers.
func (j *judgement) queues() (list []string) {
	for _, q := range []string{j.live, j.kept} {
		if p, _ := j.queue(q); p.Sent > 0 {
			list = append(list, q)
		}
	}
	return list
}

// accounts checks that each message has exactly one end, in the counts and in the verification.
func (j *judgement) accounts() {
	if p, _ := j.queue(j.kept); p.Sent == 0 {
		j.wrong("it reports no messages to the queue %s", j.kept)
	}
	for _, q := range j.queues() {
		p, v := j.queue(q)
		if ends := p.Completed + p.Rejected + p.Released + p.Modified + p.Failed + p.Unconfirmed; ends != p.Sent {
			j.wrong("%s: %d sent, %d ended", q, p.Sent, ends)
		}
		if j.early { // nothing was received
			continue
		}
		if v.Expected != p.Completed {
			j.wrong("%s: %d confirmed, %d expected", q, p.Completed, v.Expected)
		}
		if v.UnconfirmedArrived+v.UnconfirmedMissing != p.Unconfirmed {
			j.wrong("%s: %d in doubt, of which %d arrived and %d did not", q, p.Unconfirmed, v.UnconfirmedArrived,
				v.UnconfirmedMissing)
		}
		if v.Expected+v.UnconfirmedArrived+v.RefusedArrived != v.Received+v.Lost+v.Left {
			j.wrong("%s: the verification does not add up: %+v", q, v)
		}
		if v.Damaged+v.Foreign+v.RefusedArrived > 0 {
			j.wrong("%s: damaged %d, foreign %d, refused and arrived %d", q, v.Damaged, v.Foreign, v.RefusedArrived)
		}
	}
}

// counts compares with the broker's own.
func (j *judgement) counts() {
	p, v := j.queue(j.kept)
	switch {
	case j.early:
		if j.stored < int64(p.Completed) || j.stored > int64(p.Completed+p.Unconfirmed) {
			j.wrong("the broker had %d messages, %d were confirmed and %d in doubt", j.stored, p.Completed, p.Unconfirmed)
		}
	case j.expect.blocked || j.expect.refused:
		// More came when the consumers were there.
		if j.stored > int64(p.Completed+p.Unconfirmed) || j.stored == 0 {
			j.wrong("the full queue had %d messages, %d were confirmed", j.stored, p.Completed)
		}
	default:
		least, most := int64(v.Received+v.Left), int64(v.Received+v.Left)
		if v.Left > 0 {
			most += int64(v.UnconfirmedMissing)
		}
		if j.stored < least || j.stored > most {
			j.wrong("the broker had %d messages in the kept queue, %d different ones were received", j.stored, v.Received)
		}
	}
	left, doubt := j.remaining()
	if _, v := j.queue(j.live); j.total >= 0 &&
		(int64(v.Received) > j.total || int64(v.Received+left+doubt) < j.total) {
		j.wrong("the broker had %d messages in the live queue, %d different ones were received", j.total, v.Received)
	}
	if j.left >= 0 && (j.left < int64(left) || j.left > int64(left+doubt)) {
		j.wrong("%d messages are left at the broker, not %d to %d", j.left, left, left+doubt)
	}
	if b := j.result.BrokerCount; b != nil {
		for _, d := range b.Destinations {
			for _, c := range []*result.Compared{d.Added, d.Acknowledged} {
				if c != nil && (c.Count < c.Least || c.Count > c.Most) {
					j.wrong("%s: the broker counts %d, not %d to %d", d.Destination, c.Count, c.Least, c.Most)
				}
			}
		}
	}
}

// promise looks for broken promises of the broker.
func (j *judgement) promise() {
	for _, q := range j.queues() {
		p, v := j.queue(q)
		if v.Lost > 0 && !j.expect.loses {
			j.broken = append(j.broken, fmt.Sprintf("%d confirmed messages lost", v.Lost))
		}
		if v.Left > 0 {
			j.broken = append(j.broken, fmt.Sprintf("%d messages not delivered in time", v.Left))
		}
		if n := v.Duplicates - v.AfterOutage; n > 0 {
			j.broken = append(j.broken, fmt.Sprintf("%d messages doubled", n))
		}
		if n := refused(&p); n > 0 && !j.expect.refused {
			j.broken = append(j.broken, fmt.Sprintf("%d messages refused", n))
		}
	}
	if p, _ := j.queue(j.kept); j.expect.refused && refused(&p) == 0 {
		j.broken = append(j.broken, "no message was refused")
	}
	if j.tookAll() {
		j.broken = append(j.broken, fmt.Sprintf("no producer was held up: the queue took all %d messages", j.stored))
	}
}

// status checks success and exit status: losses, copies and refused messages make a run a failure, and so do workers
// that were not connected again.
func (j *judgement) status() {
	want := 0
	p, _ := j.queue(j.kept)
	if j.lost() > 0 || refused(&p) > 0 {
		want = 1
	}
	for _, q := range j.queues() {
		p, v := j.queue(q)
		if v.Left > 0 || v.Duplicates > v.AfterOutage || p.Unconfirmed > 0 && len(j.result.Outages) == 0 { // time-outs
			want = 1
		}
	}
	for i := range j.result.Outages {
		if len(j.result.Outages[i].NotBack) > 0 {
			want = 1
		}
	}
	if j.observation.status != want {
		j.wrong("exit status %d instead of %d: %s", j.observation.status, want, strings.Join(j.result.Outcome.Problems, "; "))
	}
	if j.result.Outcome.Success != (want == 0) || j.result.Outcome.Status != j.observation.status {
		j.wrong("its result has success %t and status %d, it ended with %d", j.result.Outcome.Success,
			j.result.Outcome.Status, j.observation.status)
	}
}

// remaining returns how many messages the consumers left at the broker, and how many in doubt may be there, too: only
// if there were consumers that did not receive to the end.
func (j *judgement) remaining() (left, doubt uint64) {
	away := false
	for i := range j.result.Outages {
		away = away || len(j.result.Outages[i].NotBack) > 0
	}
	for _, q := range j.queues() {
		_, v := j.queue(q)
		left += v.Left
		if away || v.Left > 0 {
			doubt += v.UnconfirmedMissing
		}
	}
	return left, doubt
}

func (j *judgement) lost() (n uint64) {
	for _, q := range j.queues() {
		_, v := j.queue(q)
		n += v.Lost
	}
	return n
}

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
			j.broken = append(j.broken, "connections broke, and the messages are in doubt")
			said += fmt.Sprintf("; an outage of %.1f s: %s", seconds(out.Length), out.Class)
		}
		return said
	}
	n := len(j.result.Outages)
	if j.expect.unnoticed {
		if n == 0 {
			return "no connection was lost"
		}
		j.broken = append(j.broken, fmt.Sprintf("%d outages", n))
	}
	if j.expect.outage && n != 1 {
		j.wrong("%d outages instead of one", n)
	}
	var said []string
	if s := j.stall(); j.expect.silence && s != nil {
		said = append(said, fmt.Sprintf("a stall of %.1f s, from %s", seconds(s.Length), j.late(s.Time)))
	} else if j.expect.silence && n == 0 && j.took > int64(keptRate*held.Seconds())/2 {
		j.broken = append(j.broken, "no producer was held up")
		said = append(said, fmt.Sprintf("the queue took %d messages meanwhile", j.took))
	} else if j.expect.silence && n == 0 {
		j.wrong("neither a stall nor an outage")
	}
	for i := range j.result.Outages {
		out := &j.result.Outages[i]
		at := "later"
		if j.expect.outage && i == 0 {
			at = "from " + j.late(out.Time)
		}
		text := fmt.Sprintf("an outage of %.1f s, %s", seconds(out.Length), at)
		if out.Recovered > 0 {
			text += fmt.Sprintf(", full rate after %.0f s", seconds(out.Recovered))
		} else {
			text += ", no full rate in the time watched"
		}
		if len(out.NotBack) > 0 {
			text += fmt.Sprintf(", %d workers not back", len(out.NotBack))
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ")
}

// tookAll tells whether a queue that was to be full took all messages.
func (j *judgement) tookAll() bool { return j.expect.blocked && j.stored >= j.due }

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
	if longest == 0 {
		j.wrong("no stall, where the queue was full")
	}
	return fmt.Sprintf("full at %d messages; producers held up, for %.1f s at most", j.stored, seconds(longest))
}

// stall returns the longest stall that began around the failure; nil if there is none.
func (j *judgement) stall() (found *result.Stall) {
	for i := range j.result.Stalls {
		s := &j.result.Stalls[i]
		if off(s.Time, j.first, j.last).Abs() < 5*time.Second && (found == nil || s.Length > found.Length) {
			found = s
		}
	}
	return found
}

// late says how much later than the harness's log something began, and checks it.
func (j *judgement) late(began int64) string {
	if d := off(began, j.first, j.last); d.Abs() > onTime {
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

func (j *judgement) row(observed string) row {
	r := row{Observed: observed, Mistakes: j.mistakes}
	var ours, brokers []string
	for _, q := range j.queues() {
		p, v := j.queue(q)
		which := "kept"
		if q == j.live {
			which = "live"
		}
		text := fmt.Sprintf("%s: %d sent, %d confirmed, %d received, %d lost", which, p.Sent, p.Completed, v.Received, v.Lost)
		if p.Unconfirmed > 0 {
			text += fmt.Sprintf(", %d in doubt (%d arrived)", p.Unconfirmed, v.UnconfirmedArrived)
		}
		if n := refused(&p); n > 0 {
			text += fmt.Sprintf(", %d refused", n)
		}
		if v.Duplicates > 0 {
			text += fmt.Sprintf(", %d redelivered", v.Duplicates)
		}
		ours = append(ours, text)
	}
	brokers = append(brokers, fmt.Sprintf("kept: %d", j.stored))
	if j.total >= 0 {
		brokers = append(brokers, fmt.Sprintf("live: %d", j.total))
	}
	if j.left >= 0 {
		brokers = append(brokers, fmt.Sprintf("left at the end: %d", j.left))
	}
	r.Ours, r.Brokers = strings.Join(ours, "; "), strings.Join(brokers, "; ")
	switch {
	case len(j.mistakes) > 0:
		r.Verdict = "**perfmq is wrong**: " + strings.Join(j.mistakes, "; ")
	case len(j.broken) > 0:
		r.Verdict = "promise broken: " + strings.Join(j.broken, ", ") + "; counts agree"
	default:
		r.Verdict = "kept; counts agree"
	}
	return r
}

// mistakes returns the rows in which perfmq was wrong as an error.
func mistakes(rows []row) error {
	var errs []error
	for i := range rows {
		if r := &rows[i]; len(r.Mistakes) > 0 {
			errs = append(errs, fmt.Errorf("%s, %s, %s: %s", r.Deployment, r.Failure, r.Protocol, strings.Join(r.Mistakes,
				"; ")))
		}
	}
	return errors.Join(errs...)
}
