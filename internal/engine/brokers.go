package engine

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// brokers returns the identities that brokers reported, in the order of the plan: the producers' first.
func (r *run) brokers() (list []result.Broker) {
	for i := range r.plan.Steps {
		for _, g := range r.plan.Steps[i].Groups {
			for _, side := range g.Sides() {
				if b := r.broker(g, r.endpoints[side]); b.Product != "" && !slices.Contains(list, b) {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// broker returns the identity that the broker of one side of a group reported; the zero value if it reported none.
func (r *run) broker(g *plan.Group, side *Endpoint) (b result.Broker) {
	identified, ok := r.driver(side).(driver.Identified)
	if !ok {
		return b
	}
	b.Name, b.Protocol = side.Name, side.Protocol
	b.Product, b.Version = identified.Broker()
	if g.Role.Produces() && g.Role.Consumes() && !g.SameBroker() {
		b.Side = "consumers"
		if side.Broker == g.ProducerBroker {
			b.Side = "producers"
		}
	}
	return b
}
