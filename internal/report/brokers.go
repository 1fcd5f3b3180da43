package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// writeBrokers writes product and version of each broker. If they differ, each line names the broker or its side.
func writeBrokers(b *strings.Builder, brokers []result.Broker) {
	var lines, notes []string
	for _, broker := range brokers {
		text := oneLine(strings.TrimSpace(broker.Product + " " + broker.Version))
		note := cmp.Or(oneLine(broker.Name), broker.Side)
		at := slices.Index(lines, text)
		switch {
		case at < 0:
			lines, notes = append(lines, text), append(notes, note)
		case note != "" && !slices.Contains(strings.Split(notes[at], ", "), note):
			notes[at] += ", " + note
		}
	}
	for i, line := range lines {
		note := ""
		if len(lines) > 1 && notes[i] != "" {
			note = " (" + notes[i] + ")"
		}
		writeText(b, "--- broker:", line, note)
	}
}
