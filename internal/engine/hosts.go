package engine

import (
	"slices"
	"sync"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// stay is a time of a worker at a host, reached by a connection; workers that share a connection have the same. counts
// are the worker's at its start.
type stay struct {
	host, connection string
	counts           stats.Counters
}

// stays are the hosts to which a worker was connected, for a URL with several. It is safe for concurrent use.
type stays struct {
	mu   sync.Mutex
	list []stay
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
	if n := len(s.list); n == 0 || s.list[n-1].host != host || s.list[n-1].connection != connection {
		s.list = append(s.list, stay{host, connection, counts()})
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
		return s.list[n-1].host
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

// locate returns the messages at each host of the URLs that name several, and names the hosts of each worker, producers
// first, in the order of its first connections; nil if no URL names several.
func (r *run) locate(workers []result.Worker) (list []result.BrokerHost) {
	connections, names := map[[2]string]bool{}, hostNames(r.plan)
	for _, host := range names {
		list = append(list, result.BrokerHost{Name: host})
	}
	add := func(w *result.Worker, s *stays, end stats.Counters) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, at := range s.list {
			n := slices.Index(names, at.host)
			if n < 0 {
				continue
			}
			until, host := end, &list[n]
			if i+1 < len(s.list) {
				until = s.list[i+1].counts
			}
			counts := until.Sub(at.counts)
			host.Sent += counts[result.Sent]
			host.Completed += counts[result.Completed]
			host.Unconfirmed += counts[result.Unconfirmed]
			host.Received += counts[result.Received]
			if connection := [2]string{at.host, at.connection}; !connections[connection] {
				connections[connection] = true
				host.Connections++
			}
			if slices.Contains(w.BrokerHosts, at.host) {
				continue
			}
			w.BrokerHosts = append(w.BrokerHosts, at.host)
			if w.Producers != nil {
				host.Producers++
			} else {
				host.Consumers++
			}
		}
	}
	for i, p := range r.producers {
		add(&workers[i], &p.stays, p.rec.HostCounts())
	}
	for i, c := range r.consumers {
		add(&workers[len(r.producers)+i], &c.stays, c.rec.HostCounts())
	}
	return list
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

// spreads reports whether connections to a broker are spread over several hosts.
func (r *run) spreads(e *Endpoint) bool {
	return slices.ContainsFunc(r.plan.Groups(), func(g *plan.Group) bool {
		return slices.ContainsFunc(g.Sides(), func(b *plan.Broker) bool { return b.Same(e.Broker) && g.Spreads(b) })
	})
}
