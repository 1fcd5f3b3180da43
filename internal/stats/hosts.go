package stats

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// HostTotal are the messages of one worker at one host.
type HostTotal struct {
	Host       string // host:port
	Connection string // by which the worker reached it; workers that share a connection have the same
	Counters          // sent, completed, unconfirmed and received while it was connected to it, warm-up included
}

// HostSummaries sums up the workers at each of the hosts, in the order of hosts, including hosts without workers.
func HostSummaries(hosts []string, workers []Worker) []result.BrokerHost {
	list := make([]result.BrokerHost, len(hosts))
	connections := make([]map[string]bool, len(hosts))
	for i, host := range hosts {
		list[i].Name, connections[i] = host, map[string]bool{}
	}
	for i := range workers {
		w := &workers[i]
		for _, total := range w.Hosts {
			n := slices.Index(hosts, total.Host)
			if n < 0 {
				continue
			}
			s := &list[n]
			s.Sent, s.Completed = s.Sent+total.Counters[result.Sent], s.Completed+total.Counters[result.Completed]
			s.Unconfirmed += total.Counters[result.Unconfirmed]
			s.Received += total.Counters[result.Received]
			connections[n][total.Connection] = true
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

// HostCounts returns the messages so far, as [HostTotal] has them. It leaves out a message that the driver has not
// taken yet: it may leave by another connection than the present one.
func (r *ProducerRecorder) HostCounts() (n Counters) {
	n[result.Completed] = r.Completed()
	n[result.Unconfirmed] = r.Count(result.Unconfirmed)
	for part := range parts {
		n[result.Sent] += r.handed[part].Load()
	}
	return n
}

// HostCounts returns the messages so far.
func (r *ConsumerRecorder) HostCounts() Counters { return Counters{result.Received: r.Total()} }
