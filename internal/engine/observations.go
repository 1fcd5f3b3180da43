package engine

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// namedStalls is the maximum number of stalls that a text names.
const namedStalls = 3

// Observe adds findings on the stalls of a run and the broker's side. It does not fail the run.
func Observe(s *stats.Summary) {
	observeStalls(s)
	observeBroker(s)
}

// observeStalls adds a finding for the stalls of each side of the run, of a broker and of a group.
func observeStalls(s *stats.Summary) {
	type part struct{ broker, group, side string }
	var parts []part
	stalls := map[part][]result.Stall{}
	for _, stall := range s.Stalls {
		if stall.Warmup {
			continue
		}
		p := part{stall.Broker, stall.Group, stall.Side}
		if stalls[p] == nil {
			parts = append(parts, p)
		}
		stalls[p] = append(stalls[p], stall)
	}
	for _, p := range parts {
		who, whom, subject := "the broker", "", p.side
		if p.group != "" {
			whom, subject = " group "+p.group, subject+", group "+p.group
		}
		if p.broker != "" {
			who, subject = "broker "+p.broker, subject+", broker "+p.broker
		}
		did := who + " stalled"
		switch p.side {
		case stats.SendSide:
			did = who + " did not answer" + whom
		case stats.ReceiveSide:
			did = who + " did not deliver"
		}
		findStalls(s, stalls[p], subject, did)
	}
	s.Find("more-stalls", "", s.Unlisted, s.Unlisted)
}

// findStalls adds a finding for the stalls of one part.
func findStalls(s *stats.Summary, list []result.Stall, subject, did string) {
	var moments []string
	var longest time.Duration
	for _, stall := range list {
		start, length := microseconds(stall.Elapsed), microseconds(stall.Length)
		longest = max(longest, length)
		moments = append(moments, fmt.Sprintf("at %.3f s (%s) for %.3f s", start.Seconds(),
			time.UnixMicro(s.Start).Add(start).Format(time.TimeOnly), length.Seconds()))
	}
	when := words.First(moments, namedStalls, ", ")
	f := words.Find("stall", "", uint64(len(moments)), did, words.Times(len(moments)), words.Seconds(longest), when)
	f.Subject = subject
	f.Examples = moments[:min(len(moments), words.MaxExamples)]
	s.Findings = append(s.Findings, f)
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// observeBroker adds differences between the brokers' counts and the run's, errors in the broker's log, and events of
// its process. Other clients may have used the destination.
func observeBroker(s *stats.Summary) {
	if c := s.BrokerCount; c != nil {
		for _, d := range c.Destinations {
			for _, c := range []struct {
				kind     string
				compared *result.Compared
			}{{result.BrokerFindings + "added", d.Added}, {result.BrokerFindings + "acknowledged", d.Acknowledged}} {
				by, more := c.compared.Differs(), "more"
				if by < 0 {
					by, more = -by, "fewer"
				}
				s.Find(c.kind, d.Destination, uint64(by), by, more) //nolint:gosec // not negative
			}
		}
	}
	for _, side := range s.BrokerSide {
		if n := side.Whole.Errors; n != nil {
			s.Find("log-errors", "broker", *n, *n)
		}
		if n := side.Whole.Warnings; n != nil {
			s.Find("log-warnings", "broker", *n, *n)
		}
		for _, e := range side.Events {
			s.Find("process", "broker", 1, e.Text)
		}
	}
}
