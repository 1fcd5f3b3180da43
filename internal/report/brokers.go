package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

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
