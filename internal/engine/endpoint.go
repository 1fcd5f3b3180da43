package engine

import (
	"sync"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
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
