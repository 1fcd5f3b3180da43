package report

import (
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// comparison is one of the broker's counts, summed over the destinations with a known count.
type comparison struct {
	result.Compared
	name, ours   string // the labels of the broker's count and of the run's
	all, unknown int    // destinations
	received     uint64 // set if consumers rejected or released messages on purpose; else 0
	differ       []string
}

// comparisons returns the known counts of the brokers: messages added and messages acknowledged.
func comparisons(c *result.BrokerCount) (list []comparison) {
	added := comparison{name: "added", ours: "sent"}
	acknowledged := comparison{name: "acknowledged", ours: "received"}
	var sent, failed, received uint64
	for i := range c.Destinations {
		d := &c.Destinations[i]
		added.add(d.Destination, d.Added)
		acknowledged.add(d.Destination, d.Acknowledged)
		if d.Acknowledged != nil {
			failed += d.Failed
			received += d.Received
		}
		if d.Added != nil {
			sent += d.Sent
		}
	}
	if sent != added.Most {
		added.ours = "accepted"
	}
	if failed > 0 {
		acknowledged.received = received
	}
	for _, c := range []comparison{added, acknowledged} {
		if c.unknown < c.all {
			list = append(list, c)
		}
	}
	return list
}

func (c *comparison) add(destination string, d *result.Compared) {
	c.all++
	if d == nil {
		c.unknown++
		return
	}
	c.Count += d.Count
	c.Least += d.Least
	c.Most += d.Most
	if by := d.Differs(); by != 0 {
		c.differ = append(c.differ, fmt.Sprintf("%s by %d", destination, by))
	}
}

// text compares the broker's count with the run's: "added 320003, sent 320000: DIFFERS by 3".
func (c *comparison) text() string {
	text := fmt.Sprintf("%s %d, %s %d", c.name, c.Count, c.ours, c.Least)
	if c.Most > c.Least {
		doubt := "not confirmed"
		switch {
		case c.received > 0:
			text, doubt = fmt.Sprintf("%s %d, %s %d", c.name, c.Count, c.ours, c.received),
				"rejected, given back or delivered again"
		case c.name == "acknowledged":
			text, doubt = fmt.Sprintf("%s %d, %s %d", c.name, c.Count, c.ours, c.Most), "delivered again"
		}
		text += fmt.Sprintf(", %s %d", doubt, c.Most-c.Least)
	}
	switch {
	case len(c.differ) == 0 && c.Most > c.Least:
		text += ": possible"
	case len(c.differ) == 0:
		text += ": equal"
	default:
		text += fmt.Sprintf(": DIFFERS by %d", c.Differs())
		if c.all > 1 {
			text += " (" + words.First(c.differ, 3, ", ") + ")"
		}
	}
	if c.unknown > 0 {
		text += fmt.Sprintf(" (of %d of %d destinations)", c.all-c.unknown, c.all)
	}
	return text
}

// writeBrokerCount writes the brokers' counts, and why a count is unknown.
func writeBrokerCount(b *strings.Builder, c *result.BrokerCount) {
	if c == nil {
		return
	}
	const label = "--- broker's count:"
	for _, compared := range comparisons(c) {
		writeList(b, label, []string{compared.text()})
	}
	writeList(b, label, c.Notes)
}

// finalDepths returns the number of messages at each destination at the end of the run.
func finalDepths(c *result.BrokerCount) (list []brokerside.Depth) {
	if c == nil {
		return nil
	}
	for i := range c.Destinations {
		if d := &c.Destinations[i]; d.Depth != nil {
			list = append(list, brokerside.Depth{Destination: d.Destination, Messages: *d.Depth})
		}
	}
	return list
}
