//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// observation holds the result of a run, the log of the harness and the counts of the broker.
type observation struct {
	expect      expectation
	live, kept  string        // queues
	first, last time.Time     // when the failure began, and when it had its effect; zero of one without a moment
	over        time.Time     // when it ended; zero where that does not matter
	status      int           // exit status of perfmq
	hung        bool          // perfmq did not end by itself
	early       bool          // perfmq ended in the first step, because of a refused message
	due         int64         // messages to the kept queue in the first step
	stored      int64         // by the broker: messages in the kept queue when its producers had ended
	total       int64         // by the broker: messages that the live queue has ever had; -1 if it does not tell
	took        int64         // by the broker: messages that the kept queue took while it was to take none
	left        int64         // by the broker: messages in all queues at the end; -1 if it does not tell
	allowed     time.Duration // how late an outage may be noticed, if that is more than onTime
	// copied: by the slave: messages in all queues while its master was away; nil if it was not asked.
	copied *int64
	// closed: by the broker's log: when it closed connections because of an error of its own.
	closed []time.Time
	result *result.Result
}

// row is a line of the page.
type row struct {
	Deployment, Failure, Protocol string
	Promised, Observed            string
	Ours, Brokers                 string
	Verdict                       string
	State                         state
	Mistakes                      []string `json:",omitempty"` // of perfmq
	origin
}

// state is the verdict of a row in a word.
type state string

const (
	promiseKept   state = "kept"
	promiseBroken state = "broken"
	perfmqWrong   state = "**wrong**"
	nothingShown  state = "nothing shown"
	notJudged     state = "not judged"
	notCarriedOut state = "not carried out"
)

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
	r := j.row(j.times())
	if why := j.unfit(); why != "" && !o.hung {
		r.State, r.Verdict, r.Mistakes = notJudged, "not judged: "+why, nil
	}
	return r
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
func (j *judgement) counts() { //nolint:gocyclo // a list of checks
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
	if j.left >= 0 && (j.left < int64(left) && !j.expect.loses || j.left > int64(left+doubt)) {
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
		if v.Left > 0 && !j.expect.loses {
			text := fmt.Sprintf("%d messages not delivered in time", v.Left)
			if gone := int64(v.Received+v.Foreign+v.Left) - j.total; j.total >= 0 && q == j.live && gone > 0 {
				text += fmt.Sprintf(", %d of which the broker does not have", gone)
			}
			j.broken = append(j.broken, text)
		}
		if n := v.Duplicates - v.AfterOutage; n > 0 {
			j.broken = append(j.broken, fmt.Sprintf("%d messages doubled", n))
		}
		if n := v.Damaged + v.Foreign; n > 0 {
			j.broken = append(j.broken, fmt.Sprintf("%d messages delivered, which differ from all that were sent", n))
		}
		if n := v.RefusedArrived; n > 0 {
			j.broken = append(j.broken, fmt.Sprintf("%d messages refused, and delivered", n))
		}
		if n := refused(&p); n > 0 && !j.expect.refused {
			j.broken = append(j.broken, fmt.Sprintf("%d messages refused", n))
		}
	}
	if p, _ := j.queue(j.kept); j.expect.refused && refused(&p) == 0 && !j.neverFull() {
		j.broken = append(j.broken, "no message was refused")
	}
	if j.tookAll() {
		j.broken = append(j.broken, fmt.Sprintf("no producer was held up: the queue took all %d messages", j.stored))
	}
}

// status checks success and exit status: losses, copies and refused messages make a run a failure, and so do workers
// that were not connected again. Messages without an answer do not where their producers have sent others later that
// were confirmed. Those do that a broker answers, but does not confirm, and those of producers held up to the end.
func (j *judgement) status() {
	want := 0
	if j.lost() > 0 || j.early {
		want = 1
	}
	var doubt, explained uint64
	for _, q := range j.queues() {
		p, v := j.queue(q)
		doubt += p.Unconfirmed
		if refused(&p) > 0 || v.Left > 0 || v.Duplicates > v.AfterOutage {
			want = 1
		}
	}
	for i := range j.result.Outages {
		explained += j.result.Outages[i].InDoubt
		if len(j.result.Outages[i].NotBack) > 0 {
			want = 1
		}
	}
	if (j.expect.doubted || j.expect.blocked) && doubt > explained {
		want = 1
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
		if v.Left > 0 {
			text += fmt.Sprintf(", %d not received in time", v.Left)
		}
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
		r.State, r.Verdict = perfmqWrong, "**perfmq is wrong**: "+strings.Join(j.mistakes, "; ")
	case len(j.broken) > 0:
		r.State, r.Verdict = promiseBroken, "promise broken: "+strings.Join(j.broken, ", ")+"; counts agree"
	case j.neverFull():
		r.State, r.Verdict = nothingShown, "nothing shown; counts agree"
	default:
		r.State, r.Verdict = promiseKept, "kept; counts agree"
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
