package run

import (
	"cmp"
	"context"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
)

// openWatch finds the broker's process, endpoint and log that are to be watched.
func (r *Run) openWatch() error {
	if r.Side.IsZero() {
		return nil
	}
	w, err := brokerside.Open(context.Background(), r.Side)
	if err != nil {
		return plan.Wrong("name a process of this host and a readable log; for other hosts use --broker-metrics",
			"%v", err)
	}
	r.watched = w
	return nil
}

// openManagement lets the brokers with a management URL be asked over that. Sides with the same URL and login share an
// inspector.
func openManagement(p *plan.Plan, endpoints map[*plan.Broker]*engine.Endpoint) error {
	if !p.BrokerCount {
		return nil
	}
	opened := map[brokerside.Management]*brokerside.Inspector{}
	for _, b := range p.Brokers() {
		e := endpoints[b]
		if e.Management == "" {
			continue
		}
		m := brokerside.Management{
			URL: e.Management, User: cmp.Or(e.User, plan.User(e.URL)),
			Password: cmp.Or(e.Password, plan.Password(e.URL)), TLS: e.TLS,
		}
		if opened[m] == nil {
			h, err := m.Open()
			if err != nil {
				return err
			}
			opened[m] = h
		}
		e.Inspector = opened[m]
	}
	return nil
}
