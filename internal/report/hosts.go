package report

import (
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/pkg/result"
)

// hostLines returns a line for each host of the brokers.
func hostLines(hosts []result.BrokerHost) (lines []string) {
	producers := slices.ContainsFunc(hosts, func(h result.BrokerHost) bool { return h.Producers > 0 })
	consumers := slices.ContainsFunc(hosts, func(h result.BrokerHost) bool { return h.Consumers > 0 })
	for _, h := range hosts {
		text := fmt.Sprintf("host %s: %s", oneLine(h.Name), words.Plural(h.Connections, "connection"))
		if producers {
			text += fmt.Sprintf("; %s, sent %d, completed %d", words.Plural(h.Producers, "producer"), h.Sent,
				h.Completed)
		}
		if h.Unconfirmed > 0 {
			text += fmt.Sprintf(", unconfirmed %d", h.Unconfirmed)
		}
		if consumers {
			text += fmt.Sprintf("; %s, received %d", words.Plural(h.Consumers, "consumer"), h.Received)
		}
		lines = append(lines, text)
	}
	return lines
}
