package report

import "github.com/perfmq/perfmq/pkg/driver"

// collectOutages emits the figures of outages; none without --reconnect.
func (c *collector) collectOutages(emit emitter) {
	p := c.outages
	if p == nil {
		return
	}
	emit.counter("outages_total", uint64(p.Count)) //nolint:gosec // not negative
	emit.seconds("outage_seconds_total", p.Length)
	emit.gauge("outage_age_seconds", p.Since.Seconds())
	emit.gauge("workers_disconnected", float64(p.Down))
	emit.counter("reconnects_total", p.Reconnects)
	emit.counter("messages_in_doubt_total", p.InDoubt)
	for class := range driver.NumClasses { // the most frequent class exists from the beginning, for rate()
		if n := p.Attempts[class]; n > 0 || class == driver.ClassConnect {
			emit.counter("reconnect_failures_total", n, class.String())
		}
	}
}
