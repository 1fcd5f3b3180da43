package report

import "github.com/perfmq/perfmq/pkg/driver"

// collectOutages emits the figures of outages; none without --reconnect.
func (c *collector) collectOutages(emit emitter) {
	p := c.outages
	if p == nil {
		return
	}
	emit.counter(c.d.outages, uint64(p.Count)) //nolint:gosec // not negative
	emit.seconds(c.d.outageSeconds, p.Length)
	emit.gauge(c.d.outage, p.Since.Seconds())
	emit.gauge(c.d.disconnected, float64(p.Down))
	emit.counter(c.d.reconnects, p.Reconnects)
	emit.counter(c.d.inDoubt, p.InDoubt)
	w := &p.Worst
	for name, us := range map[string]int64{"ack": w.Ack, "response": w.Response, "transfer": w.Transfer} {
		emit.gauge(c.d.outageWorst, float64(us)/1e6, name)
	}
	for class := range driver.NumClasses { // the most frequent class exists from the beginning, for rate()
		if n := p.Attempts[class]; n > 0 || class == driver.ClassConnect {
			emit.counter(c.d.reconnectFailures, n, class.String())
		}
	}
}
