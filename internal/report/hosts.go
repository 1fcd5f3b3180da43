package report

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// hostLines returns a line for each host of the brokers, then one for the spread of each role.
func hostLines(hosts []result.BrokerHost) (lines []string) {
	spreads := result.SpreadOverHosts(hosts)
	for i := range hosts {
		h := &hosts[i]
		text := fmt.Sprintf("host %s: %s", oneLine(h.Name), words.Plural(h.Connections, "connection"))
		for _, s := range spreads {
			if s.Role == "producers" {
				text += fmt.Sprintf("; %s, sent %d, completed %d", words.Plural(h.Producers, "producer"), h.Sent, h.Completed)
				if h.Unconfirmed > 0 {
					text += fmt.Sprintf(", unconfirmed %d", h.Unconfirmed)
				}
			} else {
				text += fmt.Sprintf("; %s, received %d", words.Plural(h.Consumers, "consumer"), h.Received)
			}
		}
		lines = append(lines, text)
	}
	for _, s := range spreads {
		what := "received"
		if s.Role == "producers" {
			what = "completed"
		}
		lines = append(lines, fmt.Sprintf("%s per host: %d / %d / %d (minimum, median, maximum of %d)", what,
			s.Minimum, s.Median, s.Maximum, s.Hosts))
	}
	return lines
}

// hostsOf returns the hosts of a worker, each once.
func hostsOf(w *stats.Worker) (names []string) {
	for i := range w.Hosts {
		if n := len(names); n == 0 || names[n-1] != w.Hosts[i].Host {
			names = append(names, w.Hosts[i].Host)
		}
	}
	return names
}
