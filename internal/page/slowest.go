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

// tracedRuns is the largest number of runs whose traces a page joins: a producer and a consumer of their own.
const tracedRuns = 2

// slow is a traced message, with the rows of its seconds.
type slow struct {
	result.Traced
	pause   int64   // the longest of perfmq
	own     int64   // its garbage collections
	crowded bool    // other programs kept perfmq from the processors
	broker  float64 // most processors that the broker used
	gc      uint64  // its garbage collections
}

// overlaps reports whether the message was on its way in a span.
func (s *slow) overlaps(from, length int64) bool {
	return s.Begin() < from+length && from < s.Begin()+s.Took()
}

// readSlowest reads the slowest messages of the traces, before the rows.
func (p *Page) readSlowest() error {
	var dirs []string
	for _, r := range p.Runs {
		dirs = append(dirs, r.path)
	}
	if len(dirs) > tracedRuns {
		return nil
	}
	list, err := result.Slowest(listed, dirs...)
	for _, t := range list {
		p.slowest = append(p.slowest, slow{Traced: t})
	}
	return err
}

// add notes what the run did in a row.
func (s *slow) add(row *result.Row) {
	if !s.overlaps(row.Time-row.Length, row.Length) {
		return
	}
	s.pause = max(s.pause, row.Tester.PauseMax)
	s.own += row.Tester.GCPause
	s.crowded = s.crowded || row.Tester.Crowded()
	if b := row.BrokerSide; b != nil && b.CPU != nil && b.CPUSpan > 0 {
		s.broker = max(s.broker, float64(*b.CPU)/float64(b.CPUSpan))
	}
	if b := row.BrokerSide; b != nil && b.CollectionTime != nil {
		s.gc += *b.CollectionTime
	}
}

// slowTable has the slowest messages of the traces.
func (p *Page) slowTable() Table {
	t := Table{
		Title: "Slowest traced messages", Folded: true,
		Head: []string{
			"producer-number", "due, UTC", "send delay ms", "response ms", "transfer ms", "due to received ms",
			"meanwhile", "producer", "consumer",
		},
	}
	var notes []string
	for _, r := range p.Runs {
		if x := r.Result.Trace; x != nil && len(p.slowest) > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s of the messages, %s events.", r.Name, x.Sample, count(x.Events)))
		}
	}
	if len(notes) > 1 {
		notes = append(notes, "The clocks of the runs are taken to agree.")
	}
	t.Note = strings.Join(notes, " ")
	for i := range p.slowest {
		s := &p.slowest[i]
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
			strings.Join(s.meanwhile(p.Runs), "; "), s.Producer, s.Consumer)
	}
	return t
}

// meanwhile says what became of the message, and what the runs did at that time.
func (s *slow) meanwhile(runs []*Run) (list []string) {
	say := func(condition bool, format string, args ...any) {
		if condition {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(s.Ended > 0 && s.End != result.TraceCompleted, "%s", s.End)
	say(s.Resent > 0, "sent again %s", words.Times(s.Resent))
	say(s.Redelivered > 0, "redelivered %s", words.Times(s.Redelivered))
	say(s.Deliveries > 1, "received %s", words.Times(s.Deliveries))
	for _, r := range runs {
		for _, x := range r.Result.Stalls {
			say(s.overlaps(x.Time, x.Length), "broker stalled %s (%s)", words.Duration(x.Length), stallSide(&x))
		}
		for _, o := range r.Result.Outages {
			length := max(o.Length, o.Reconnected, 1)
			say(s.overlaps(o.Time, length), "outage %s", words.Duration(length))
		}
	}
	say(s.pause > 0, "perfmq paused %s", words.Duration(s.pause))
	say(s.own > 0, "perfmq collected garbage for %s", words.Duration(s.own))
	say(s.crowded, "other programs used the processors")
	say(s.broker > 0, "broker used %.2f cores", s.broker)
	say(s.gc > 0, "broker collected garbage for %s", words.Duration(int64(s.gc))) //nolint:gosec // checked when read
	return list
}
