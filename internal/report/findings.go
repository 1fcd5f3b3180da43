package report

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// findings returns the findings of a run: outcomes of messages, then the verification, the broker, the tester, and
// observations.
func (r *Result) findings(s *stats.Summary) []result.Finding {
	var list findingList
	t := &s.Total
	list.add(true, "rejected", t[result.Rejected], "messages rejected by the broker")
	list.add(true, "released", t[result.Released], "messages given back by the broker")
	list.add(true, "modified", t[result.Modified], "messages given back by the broker as modified")
	list.add(true, "failed", t[result.Failed], "messages that failed")
	list.add(true, "unconfirmed", t[result.Unconfirmed],
		"messages sent but not confirmed: the broker may have them or not")
	list.add(r.options.FailOnForeign, "foreign", t[result.Foreign],
		"messages of another run or tool taken from the destinations")
	if s.Verification != nil {
		list.verified(s.Verification, r.options.Allow)
	} else {
		list.add(true, "missing", s.Missing, "messages not received when the drain ended")
		list.add(false, "redelivered", t[result.Redelivered], "messages that the broker delivered again")
	}
	list.add(false, "negative-transfer", t[result.NegativeTransfers],
		"transfer times below zero, left out: the clocks of producer and consumer differ")
	list.add(false, "negative-age", t[result.NegativeAges],
		"b2c or s2c times below zero, left out: the clocks of producer, broker and consumer differ")
	list.add(false, "out-of-range", t[result.OutOfRange], "latencies above 24 hours, counted as that")
	list.counted(s.BrokerCount)
	list.side(s.Side)
	list.tester(s)
	return append(list, Observations(s)...)
}

// VerifiedFindings returns the findings of a verification.
func VerifiedFindings(v *verify.Result, allow verify.Allow) []result.Finding {
	var list findingList
	list.verified(v, allow)
	return list
}

type findingList []result.Finding

// add adds a finding about the whole run, unless n is 0.
func (l *findingList) add(failure bool, kind string, n uint64, text string) {
	l.at("", failure, kind, n, nil, text)
}

func (l *findingList) at(subject string, failure bool, kind string, n uint64, examples []verify.Message, text string) {
	if n == 0 {
		return
	}
	f := result.Finding{Kind: kind, Count: n, Subject: subject, Failure: failure, Text: fmt.Sprintf("%s: %d", text, n)}
	for _, m := range examples {
		f.Examples = append(f.Examples, fmt.Sprintf("producer-%d %d", m.Producer, m.Number))
	}
	*l = append(*l, f)
}

// verified adds the findings of the verification, each at its subscription.
func (l *findingList) verified(v *verify.Result, allow verify.Allow) {
	for i := range v.Scopes {
		s := &v.Scopes[i]
		for _, f := range []struct {
			failure bool
			kind    string
			n       uint64
			of      verify.Kind
			text    string
		}{
			{!allow.Lost, "lost", s.Lost, verify.Lost, "messages lost: accepted by the broker, never received"},
			{true, "left", s.Left, "", "messages accepted by the broker and not received when the consumers ended"},
			{!allow.Duplicates, "duplicated", s.Duplicates, verify.Duplicated, "copies beyond the first of each message"},
			{!allow.Disorder, "out-of-order", s.Disordered, verify.Disordered, "messages received out of order"},
			{!allow.Damaged, "damaged", s.Damaged, verify.Damaged, "messages damaged"},
			{true, "refused-arrived", s.RefusedArrived, verify.Refused, "messages refused by the broker, but received"},
			{true, "withheld-arrived", s.WithheldArrived, verify.Withheld, "messages rolled back, but received"},
			{
				false, "unconfirmed-arrived", s.UnconfirmedArrived, verify.Unconfirmed,
				"messages sent without an answer of the broker, and received",
			},
		} {
			l.at(s.Name(), f.failure, f.kind, f.n, s.Examples[f.of], f.text)
		}
	}
	for _, destination := range v.Unwatched {
		l.at(destination, true, "unwatched", 1, nil, "destinations with messages and without a consumer")
	}
}

// tester adds the findings about the tester itself.
func (l *findingList) tester(s *stats.Summary) {
	const subject = "tester"
	h := &s.Health
	if n := h.LateOwn(); h.Late(n) {
		l.at(subject, false, "late-sends", n, nil, "messages sent late through the tester's own fault")
	}
	l.at(subject, false, "pause", h.Pauses, nil, "times in which the tester stood still")
	for _, step := range []struct {
		kind string
		by   int64
	}{{"clock-forward", h.ClockForward.Microseconds()}, {"clock-backward", h.ClockBackward.Microseconds()}} {
		n := uint64(max(0, step.by)) //nolint:gosec // not negative
		l.at(subject, false, step.kind, n, nil, "microseconds by which the wall clock was set during the run")
	}
	for _, w := range s.Saturation {
		l.at(w.Worker, false, "saturated", uint64(max(0, w.Seconds)), nil, //nolint:gosec // not negative
			fmt.Sprintf("full seconds in which the worker never waited, of %d", w.Of))
	}
}
