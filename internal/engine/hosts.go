package engine

import (
	"slices"
	"sync"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// stays are the hosts to which a worker was connected, for a URL with several. It is safe for concurrent use.
type stays struct {
	mu   sync.Mutex
	list []stats.HostTotal // each with the worker's counts at its start
}

// recordHost records the host of a new connection, before its first message.
func (s *stays) recordHost(worker any, e *Endpoint, connection string, counts func() stats.Counters) {
	located, ok := worker.(driver.Located)
	if !ok || len(e.Hosts) < 2 {
		return
	}
	host := located.Host()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n == 0 || s.list[n-1].Host != host || s.list[n-1].Connection != connection {
		s.list = append(s.list, stats.HostTotal{Host: host, Connection: connection, Counters: counts()})
	}
}

// lastIndex returns the index of the last host in the URL; 0 if the worker was connected to no host of it.
func (s *stays) lastIndex(hosts []string) int {
	return max(0, slices.Index(hosts, s.presentHost()))
}

// presentHost returns the host of the present connection, or the last one; empty if it is not known.
func (s *stays) presentHost() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 {
		return s.list[n-1].Host
	}
	return ""
}

// orderAfter returns the order of the hosts for a connection that replaces a lost one; nil if there is no choice.
func (s *stays) orderAfter(g *plan.Group, e *Endpoint) []int {
	order := g.HostsAfter(s.lastIndex(e.Hosts), len(e.Hosts))
	if order == nil && len(e.Hosts) > 1 {
		return plan.Rotation(0, len(e.Hosts))
	}
	return order
}

// totals returns the worker's messages at each host, in the order of the first connections.
func (s *stays) totals(end stats.Counters) (list []stats.HostTotal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, stay := range s.list {
		until := end
		if i+1 < len(s.list) {
			until = s.list[i+1].Counters
		}
		stay.Counters = until.Sub(stay.Counters)
		j := slices.IndexFunc(list, func(t stats.HostTotal) bool {
			return t.Host == stay.Host && t.Connection == stay.Connection
		})
		if j < 0 {
			list = append(list, stay)
		} else {
			list[j].Counters = list[j].Add(stay.Counters)
		}
	}
	return list
}

// locate adds the messages so far at each host to the totals of the workers, producers first.
func (r *run) locate(workers []stats.Worker) []stats.Worker {
	for i, p := range r.producers {
		workers[i].Producing, workers[i].Hosts = true, p.stays.totals(p.rec.HostCounts())
	}
	for i, c := range r.consumers {
		workers[len(r.producers)+i].Hosts = c.stays.totals(c.rec.HostCounts())
	}
	return workers
}

// hostNames returns the hosts of the URLs that name several, each once.
func hostNames(p *plan.Plan) (hosts []string) {
	for _, b := range p.Brokers() {
		for _, host := range b.Hosts {
			if len(b.Hosts) > 1 && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// hosts returns the figures of each host of the URLs that name several, at any time, from any goroutine; nil if none
// does.
func (r *run) hosts() []result.BrokerHost {
	if len(r.hostNames) == 0 {
		return nil
	}
	return stats.HostSummaries(r.hostNames, r.locate(make([]stats.Worker, len(r.producers)+len(r.consumers))))
}

// spreads reports whether connections to a broker are spread over several hosts.
func (r *run) spreads(e *Endpoint) bool {
	return slices.ContainsFunc(r.plan.Groups(), func(g *plan.Group) bool {
		return slices.ContainsFunc(g.Sides(), func(b *plan.Broker) bool { return b.Same(e.Broker) && g.Spreads(b) })
	})
}
