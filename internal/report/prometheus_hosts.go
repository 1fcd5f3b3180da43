package report

import (
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
)

// namedHosts is how many hosts have series of their own in metrics. The others have one together.
const namedHosts = 20

// otherHosts is the label of the hosts that have no series of their own.
const otherHosts = "(others)"

// collectHosts emits the messages at each host.
func (c *collector) collectHosts(emit emitter) {
	host := func(name string, n *result.BrokerHost) {
		if c.run.Producing {
			emit.counter("host_messages_sent_total", n.Sent, name)
			emit.counter("host_messages_completed_total", n.Completed, name)
		}
		if c.run.Consuming {
			emit.counter("host_messages_received_total", n.Received, name)
		}
	}
	var others result.BrokerHost
	for i := range c.hosts {
		if h := &c.hosts[i]; i < namedHosts {
			host(safetext.Line(h.Name), h)
		} else {
			others.Sent, others.Completed = others.Sent+h.Sent, others.Completed+h.Completed
			others.Received += h.Received
		}
	}
	if len(c.hosts) > namedHosts {
		host(otherHosts, &others)
	}
}
