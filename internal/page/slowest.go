package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// listed is the number of slowest messages of a page.
const listed = 100

// slow is a traced message, with the rows of its seconds.
type slow struct {
	result.Traced
	pause   int64   // the longest of perfmq
	crowded bool    // other programs kept perfmq from the processors
	broker  float64 // most processors that the broker used
	gc      uint64  // its garbage collections
}

// overlaps reports whether the message was on its way in a span.
func (s *slow) overlaps(from, length int64) bool {
	return s.Begin() < from+length && from < s.Begin()+s.Took()
}

// readSlowest reads the slowest messages of the trace, before the rows.
func (r *Run) readSlowest() error {
	list, err := result.Slowest(r.path, listed)
	for _, t := range list {
		r.slowest = append(r.slowest, slow{Traced: t})
	}
	return err
}

// add notes what the run did in a row.
func (s *slow) add(row *result.Row) {
	if !s.overlaps(row.Time-row.Length, row.Length) {
		return
	}
	s.pause = max(s.pause, row.Tester.PauseMax)
	s.crowded = s.crowded || row.Tester.Crowded()
	if b := row.BrokerSide; b != nil && b.CPU != nil && b.CPUSpan > 0 {
		s.broker = max(s.broker, float64(*b.CPU)/float64(b.CPUSpan))
	}
	if b := row.BrokerSide; b != nil && b.CollectionTime != nil {
		s.gc += *b.CollectionTime
	}
}

// slowTable has the slowest messages of the trace.
func slowTable(r *Run) Table {
	t := Table{
		Title: "Slowest traced messages", Folded: true,
		Head: []string{
			"producer-number", "due, UTC", "send delay ms", "response ms", "transfer ms", "due to received ms",
			"meanwhile", "producer", "consumer",
		},
	}
	if x := r.Result.Trace; x != nil {
		t.Note = fmt.Sprintf("%s of the messages was traced: %s events.", x.Sample, count(x.Events))
	}
	for i := range r.slowest {
		s := &r.slowest[i]
		cell := func(known bool, us int64) string {
			if !known {
				return "-"
			}
			return fmt.Sprintf("%.3f", float64(us)/1e3)
		}
		_, id, _ := strings.Cut(s.ID, "-")
		t.add(id, time.UnixMicro(s.Begin()).UTC().Format("15:04:05.000"),
			cell(s.Due > 0 && s.Sent > 0, s.Sent-s.Due), cell(s.End == result.TraceCompleted, s.Ended-s.Begin()),
			cell(s.Received > 0 && s.Sent > 0, s.Received-s.Sent), cell(s.Received > 0, s.Received-s.Begin()),
			strings.Join(s.meanwhile(r.Result), "; "), s.Producer, s.Consumer)
	}
	return t
}

// meanwhile says what became of the message, and what the run did at that time.
func (s *slow) meanwhile(r *result.Result) (list []string) {
	say := func(condition bool, format string, args ...any) {
		if condition {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(s.Ended > 0 && s.End != result.TraceCompleted, "%s", s.End)
	say(s.Resent > 0, "sent again %s", words.Times(s.Resent))
	say(s.Redelivered > 0, "redelivered %s", words.Times(s.Redelivered))
	say(s.Deliveries > 1, "received %s", words.Times(s.Deliveries))
	for _, x := range r.Stalls {
		say(s.overlaps(x.Time, x.Length), "broker stalled %s (%s)", words.Duration(x.Length), stallSide(&x))
	}
	for _, o := range r.Outages {
		length := max(o.Length, o.Reconnected, 1)
		say(s.overlaps(o.Time, length), "outage %s", words.Duration(length))
	}
	say(s.pause > 0, "perfmq paused %s", words.Duration(s.pause))
	say(s.crowded, "other programs used the processors")
	say(s.broker > 0, "broker used %.2f cores", s.broker)
	say(s.gc > 0, "broker collected garbage for %s", words.Duration(int64(s.gc))) //nolint:gosec // checked when read
	return list
}
