package stats

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// HostCounts are the messages of workers while they were connected to one host of the broker, warm-up included.
type HostCounts struct {
	Sent, Completed uint64
	Unconfirmed     uint64 // sent to it, and not answered
	Received        uint64
}

// Add returns the sum.
func (c HostCounts) Add(o HostCounts) HostCounts {
	return HostCounts{c.Sent + o.Sent, c.Completed + o.Completed, c.Unconfirmed + o.Unconfirmed, c.Received + o.Received}
}

// Since returns the counts since before.
func (c HostCounts) Since(before HostCounts) HostCounts {
	return HostCounts{
		c.Sent - before.Sent, c.Completed - before.Completed, c.Unconfirmed - before.Unconfirmed,
		c.Received - before.Received,
	}
}

// HostTotal are the messages of one worker at one host.
type HostTotal struct {
	Host       string // host:port
	Connection string // by which the worker reached it; workers that share a connection have the same
	HostCounts
}

// HostSummaries sums up the workers at each of the hosts, in the order of hosts, including hosts without workers.
func HostSummaries(hosts []string, workers []WorkerTotal) []result.BrokerHost {
	list := make([]result.BrokerHost, len(hosts))
	connections := make([]map[string]bool, len(hosts))
	for i, host := range hosts {
		list[i].Name, connections[i] = host, map[string]bool{}
	}
	for i := range workers {
		w := &workers[i]
		for _, at := range w.Hosts {
			n := slices.Index(hosts, at.Host)
			if n < 0 {
				continue
			}
			s := &list[n]
			s.Sent, s.Completed = s.Sent+at.Sent, s.Completed+at.Completed
			s.Unconfirmed, s.Received = s.Unconfirmed+at.Unconfirmed, s.Received+at.Received
			connections[n][at.Connection] = true
			if w.Producing {
				s.Producers++
			} else {
				s.Consumers++
			}
		}
	}
	for i := range list {
		list[i].Connections = len(connections[i])
	}
	return list
}

// HostCounts returns the messages so far. It leaves out a message that the driver has not taken yet: it may leave by
// another connection than the present one.
func (r *ProducerRecorder) HostCounts() HostCounts {
	n := HostCounts{
		Completed:   r.Completed(),
		Unconfirmed: r.count(func(p *ledger) uint64 { return p.n[result.Unconfirmed] }),
	}
	for part := range parts {
		n.Sent += r.handed[part].Load()
	}
	return n
}

// HostCounts returns the messages so far.
func (r *ConsumerRecorder) HostCounts() HostCounts { return HostCounts{Received: r.Total()} }
