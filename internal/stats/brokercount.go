package stats

import (
	"slices"
	"strings"
)

// BrokerCount holds the brokers' own counts of the messages of a run.
type BrokerCount struct {
	Destinations []DestinationCount
	Notes        []string // why a broker did not answer, or not always
}

// DestinationCount holds the broker's counts for a destination, and the run's own counts there.
type DestinationCount struct {
	Destination  string
	Sent         uint64   // by the run, with any outcome
	Added        Compared // messages that the broker got, against messages accepted, or sent without an answer
	Received     uint64   // by the run, foreign messages included
	Failed       uint64   // given back or rejected by consumers, on purpose
	Acknowledged Compared // messages that the broker counts as consumed, against messages received
	Depth        uint64   // at the end
	DepthKnown   bool
	Unreached    bool   // the broker was unreachable for a while, and may have reset its counters since
	Why          string // the reason why values are unknown
}

// Compared is a count of the broker's and its range according to the run.
type Compared struct {
	Known       bool
	Count       uint64
	Least, Most uint64 // the range that the run allows
}

// Differs returns how far the count is above or below its range; 0 if it is within the range, or unknown.
func (c *Compared) Differs() int64 {
	switch {
	case !c.Known:
		return 0
	case c.Count > c.Most:
		return int64(c.Count - c.Most) //nolint:gosec // far below
	case c.Count < c.Least:
		return -int64(c.Least - c.Count) //nolint:gosec // far below
	default:
		return 0
	}
}

// Unknown returns the reasons why values are unknown, each once.
func (c *BrokerCount) Unknown() (list []string) {
	add := func(text string) {
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, note := range c.Notes {
		add(note)
	}
	for i := range c.Destinations {
		if why := c.Destinations[i].Why; !slices.ContainsFunc(c.Notes,
			func(note string) bool { return strings.HasSuffix(note, why) }) {
			add(why)
		}
	}
	return list
}
