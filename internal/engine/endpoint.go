package engine

import (
	"slices"
	"sync"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Endpoint is a broker of the plan with the driver that reaches it.
type Endpoint struct {
	*plan.Broker
	Factory driver.Factory
	// Inspector asks the broker for its own counts by another way than the driver's; nil leaves it to the driver.
	Inspector driver.Inspector

	driver driver.Driver // open, for all endpoints of the broker; nil in the others

	once  sync.Once // for Diagnose
	asked chan struct{}
	wrong error // its answer, after asked is closed
}

// Reach returns the endpoints of a plan.
func Reach(p *plan.Plan, drivers plan.Drivers) map[*plan.Broker]*Endpoint {
	all := map[*plan.Broker]*Endpoint{}
	for _, b := range p.Brokers() {
		all[b] = &Endpoint{Broker: b, Factory: *drivers(b)}
	}
	return all
}

// sendsTo returns the endpoint of the group's producers, or nil.
func (r *run) sendsTo(g *plan.Group) *Endpoint {
	if !g.Role.Produces() {
		return nil
	}
	return r.endpoints[g.ProducerBroker]
}

// readsFrom returns the endpoint of the group's consumers, or nil.
func (r *run) readsFrom(g *plan.Group) *Endpoint {
	if !g.Role.Consumes() {
		return nil
	}
	return r.endpoints[g.ConsumerBroker]
}

// brokers returns the identities that brokers reported, in the order of the plan: the producers' first.
func (r *run) brokers() (list []result.Broker) {
	for _, g := range r.plan.Groups() {
		for _, side := range g.Sides() {
			identified, ok := r.driver(r.endpoints[side]).(driver.Identified)
			if !ok {
				continue
			}
			b := result.Broker{Name: side.Name, Protocol: side.Protocol}
			b.Product, b.Version = identified.Broker()
			if len(g.Brokers()) > 1 {
				b.Side = "consumers"
				if side == g.ProducerBroker {
					b.Side = "producers"
				}
			}
			if b.Product != "" && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}
