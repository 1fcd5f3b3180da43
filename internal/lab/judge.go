//go:build unix

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// observation holds the result of a run, the log of the harness and the counts of the broker.
type observation struct {
	expect      expectation
	live, kept  string        // queues
	first, last time.Time     // the failure began, and had its effect; zero of a failure without a moment
	status      int           // exit status of perfmq
	hung        bool          // perfmq did not end by itself
	early       bool          // perfmq ended in the first step, because of a refused message
	due         int64         // messages to the kept queue in the first step
	stored      int64         // by the broker: messages in the kept queue when its producers had ended
	total       int64         // by the broker: messages that the live queue has ever had; -1: not known
	left        int64         // by the broker: messages in all queues at the end; -1: not known
	allowed     time.Duration // how late an outage may be noticed, if that is more than onTime
	result      *result.Result
}

// tally holds the counts of a queue.
type tally struct {
	name, which string
	sent        result.Producers
	result.Verified
}

// judgement collects the mistakes of perfmq, and the broken promises of the broker, that an observation shows.
type judgement struct {
	*observation
	queues     []*tally // those that had producers
	live, kept tally
	mistakes   []string
	broken     []string // promises of the broker
}

// judge compares perfmq's report of a run with the truth. The cells of its row are the last three before the verdict.
func judge(o *observation) row {
	j := &judgement{observation: o}
	j.live, j.kept = j.tally("live", o.live), j.tally("kept", o.kept)
	for _, q := range []*tally{&j.live, &j.kept} {
		if q.sent.Sent > 0 {
			j.queues = append(j.queues, q)
		}
	}
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
	j.success()
	r := j.row(j.times())
	if why := j.unfit(); why != "" && !o.hung {
		r.State, r.Verdict, r.Mistakes = notJudged, "not judged: "+why, nil
	}
	return r
}

func (j *judgement) wrong(format string, args ...any) {
	j.mistakes = append(j.mistakes, fmt.Sprintf(format, args...))
}

func (j *judgement) breaks(format string, args ...any) {
	j.broken = append(j.broken, fmt.Sprintf(format, args...))
}

// tally adds the counts of a queue's producers, and finds its verification.
func (j *judgement) tally(which, name string) tally {
	t := tally{name: name, which: which}
	for i := range j.result.Workers {
		w := &j.result.Workers[i]
		if p := w.Producers; p != nil && isQueue(w.Destination, name) {
			t.sent.Sent += p.Sent
			t.sent.Completed += p.Completed
			t.sent.Rejected += p.Rejected
			t.sent.Failed += p.Failed
			t.sent.Released += p.Released
			t.sent.Modified += p.Modified
			t.sent.Unconfirmed += p.Unconfirmed
		}
	}
	if j.result.Verification != nil {
		for _, s := range j.result.Verification.Subscriptions {
			if isQueue(s.Destination, name) {
				t.Verified = s.Verified
			}
		}
	}
	return t
}

// isQueue compares a destination with the name of a queue.
func isQueue(destination, name string) bool {
	return strings.TrimPrefix(destination, "queue://") == name
}

// refused are the messages that the broker did not take.
func refused(p *result.Producers) uint64 { return p.Rejected + p.Failed + p.Released + p.Modified }

// accounts checks that each message has exactly one end, in the counts and in the verification.
func (j *judgement) accounts() {
	if j.kept.sent.Sent == 0 {
		j.wrong("it reports no messages to the queue %s", j.kept.name)
	}
	for _, q := range j.queues {
		p := &q.sent
		if ends := p.Completed + refused(p) + p.Unconfirmed; ends != p.Sent {
			j.wrong("%s: %d sent, %d ended", q.name, p.Sent, ends)
		}
		if j.early { // nothing was received
			continue
		}
		if q.Expected != p.Completed {
			j.wrong("%s: %d confirmed, %d expected", q.name, p.Completed, q.Expected)
		}
		if q.UnconfirmedArrived+q.UnconfirmedMissing != p.Unconfirmed {
			j.wrong("%s: %d in doubt, of which %d arrived and %d did not", q.name, p.Unconfirmed, q.UnconfirmedArrived,
				q.UnconfirmedMissing)
		}
		if q.Expected+q.UnconfirmedArrived+q.RefusedArrived != q.Received+q.Lost+q.Left {
			j.wrong("%s: the verification does not add up: %+v", q.name, q.Verified)
		}
		if q.Damaged+q.Foreign+q.RefusedArrived > 0 {
			j.wrong("%s: damaged %d, foreign %d, refused and arrived %d", q.name, q.Damaged, q.Foreign,
				q.RefusedArrived)
		}
	}
}

// counts compares with the broker's own.
func (j *judgement) counts() { //nolint:gocyclo // a list of checks
	p, received := &j.kept.sent, int64(j.kept.Received+j.kept.Left)
	switch most := int64(p.Completed + p.Unconfirmed); {
	case j.early:
		if j.stored < int64(p.Completed) || j.stored > most {
			j.wrong("the broker had %d messages, %d were confirmed and %d in doubt", j.stored, p.Completed, p.Unconfirmed)
		}
	case j.expect.blocked || j.expect.refused: // more came when the consumers were there
		if j.stored > most || j.stored == 0 {
			j.wrong("the full queue had %d messages, %d were confirmed", j.stored, p.Completed)
		}
	case j.stored < received || j.stored > received && j.kept.Left == 0,
		j.stored > received+int64(j.kept.UnconfirmedMissing):
		j.wrong("the broker had %d messages in the kept queue, %d different ones were received", j.stored,
			j.kept.Received)
	}
	left, doubt := j.remaining()
	if n := int64(j.live.Received); j.total >= 0 && (n > j.total || n+left+doubt < j.total) {
		j.wrong("the broker had %d messages in the live queue, %d different ones were received", j.total, n)
	}
	if j.left >= 0 && (j.left < left && !j.expect.loses || j.left > left+doubt) {
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

// remaining returns the number of messages that the consumers left at the broker, and of messages in doubt that may be
// there, too: only if some consumers did not receive to the end.
func (j *judgement) remaining() (left, doubt int64) {
	away := false
	for i := range j.result.Outages {
		away = away || len(j.result.Outages[i].NotBack) > 0
	}
	for _, q := range j.queues {
		left += int64(q.Left)
		if away || q.Left > 0 {
			doubt += int64(q.UnconfirmedMissing)
		}
	}
	return left, doubt
}

// promise looks for broken promises of the broker.
func (j *judgement) promise() {
	for _, q := range j.queues {
		if q.Lost > 0 && !j.expect.loses {
			j.breaks("%d confirmed messages lost", q.Lost)
		}
		if q.Left > 0 && !j.expect.loses {
			gone := ""
			if n := int64(q.Received+q.Foreign+q.Left) - j.total; j.total >= 0 && q == &j.live && n > 0 {
				gone = fmt.Sprintf(", %d of which the broker does not have", n)
			}
			j.breaks("%d messages not delivered in time%s", q.Left, gone)
		}
		if n := q.Duplicates - q.AfterOutage; n > 0 {
			j.breaks("%d messages doubled", n)
		}
		if n := q.Damaged + q.Foreign; n > 0 {
			j.breaks("%d messages delivered, which differ from all that were sent", n)
		}
		if n := q.RefusedArrived; n > 0 {
			j.breaks("%d messages refused, and delivered", n)
		}
		if n := refused(&q.sent); n > 0 && !j.expect.refused {
			j.breaks("%d messages refused", n)
		}
	}
	if j.expect.refused && refused(&j.kept.sent) == 0 && !j.neverFull() {
		j.breaks("no message was refused")
	}
	if j.tookAll() {
		j.breaks("no producer was held up: the queue took all %d messages", j.stored)
	}
}

// success checks success and exit status. A run fails by losses, copies, refused messages, and workers that were not
// connected again. It does not fail by a message without an answer, unless the producer was blocked to the end.
func (j *judgement) success() {
	fails := j.early
	var doubt, explained uint64
	for _, q := range j.queues {
		doubt += q.sent.Unconfirmed
		fails = fails || refused(&q.sent)+q.Lost+q.Left > 0 || q.Duplicates > q.AfterOutage
	}
	for i := range j.result.Outages {
		explained += j.result.Outages[i].InDoubt
		fails = fails || len(j.result.Outages[i].NotBack) > 0
	}
	want := 0
	if fails || j.expect.blocked && doubt > explained {
		want = 1
	}
	is := &j.result.Outcome
	if j.status != want {
		j.wrong("exit status %d instead of %d: %s", j.status, want, strings.Join(is.Problems, "; "))
	}
	if is.Success != (want == 0) || is.Status != j.status {
		j.wrong("its result has success %t and status %d, it ended with %d", is.Success, is.Status, j.status)
	}
}

func (j *judgement) row(observed string) row {
	var ours []string
	for _, q := range j.queues {
		text := fmt.Sprintf("%s: %d sent, %d confirmed, %d received, %d lost", q.which, q.sent.Sent, q.sent.Completed,
			q.Received, q.Lost)
		for _, more := range []struct {
			n    uint64
			text string
		}{
			{q.Left, fmt.Sprintf(", %d not received in time", q.Left)},
			{q.sent.Unconfirmed, fmt.Sprintf(", %d in doubt (%d arrived)", q.sent.Unconfirmed, q.UnconfirmedArrived)},
			{refused(&q.sent), fmt.Sprintf(", %d refused", refused(&q.sent))},
			{q.Duplicates, fmt.Sprintf(", %d redelivered", q.Duplicates)},
		} {
			if more.n > 0 {
				text += more.text
			}
		}
		ours = append(ours, text)
	}
	brokers := fmt.Sprintf("kept: %d", j.stored)
	if j.total >= 0 {
		brokers += fmt.Sprintf("; live: %d", j.total)
	}
	if j.left >= 0 {
		brokers += fmt.Sprintf("; left at the end: %d", j.left)
	}
	r := row{
		Cells: []string{observed, strings.Join(ours, "; "), brokers}, Mistakes: j.mistakes,
		State: promiseKept, Verdict: "kept; counts agree",
	}
	switch {
	case len(j.mistakes) > 0:
		r.State, r.Verdict = perfmqWrong, "**perfmq is wrong**: "+strings.Join(j.mistakes, "; ")
	case len(j.broken) > 0:
		r.State, r.Verdict = promiseBroken, "promise broken: "+strings.Join(j.broken, ", ")+"; counts agree"
	}
	return r
}
