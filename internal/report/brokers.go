package report

import (
	"cmp"
	"fmt"
	"slices"
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
	differ       []string
}

// comparisons returns the known counts of the brokers: messages added and messages acknowledged.
func comparisons(c *result.BrokerCount) (list []comparison) {
	added := comparison{name: "added", ours: "sent"}
	acknowledged := comparison{name: "acknowledged", ours: "received"}
	var sent uint64
	for _, d := range c.Destinations {
		added.add(d.Destination, d.Added)
		acknowledged.add(d.Destination, d.Acknowledged)
		if d.Added != nil {
			sent += d.Sent
		}
	}
	if sent != added.Least {
		added.ours = "accepted"
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
		text += fmt.Sprintf(" to %d", c.Most)
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
	for _, d := range c.Destinations {
		if d.Depth != nil {
			list = append(list, brokerside.Depth{Destination: d.Destination, Messages: *d.Depth})
		}
	}
	return list
}

// writeBrokers writes product and version of each broker, with its name or its side where there are several.
func writeBrokers(b *strings.Builder, brokers []result.Broker) {
	var lines [][2]string
	for _, broker := range brokers {
		line := [2]string{oneLine(strings.TrimSpace(broker.Product + " " + broker.Version))}
		if note := cmp.Or(broker.Name, broker.Side); note != "" && len(brokers) > 1 {
			line[1] = " (" + oneLine(note) + ")"
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		writeText(b, "broker", line[0], line[1])
	}
}
