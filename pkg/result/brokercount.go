package result

import (
	"slices"
	"strings"
)

// Differs returns the distance of the count from its range, above or below; 0 if it is within the range, or unknown.
func (c *Compared) Differs() int64 {
	switch {
	case c == nil:
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
	for _, d := range c.Destinations {
		if !slices.ContainsFunc(c.Notes, func(note string) bool { return strings.HasSuffix(note, d.Why) }) {
			add(d.Why)
		}
	}
	return list
}
