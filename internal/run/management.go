package run

import (
	"cmp"

	"github.com/perfmq/perfmq/internal/brokercount"
	"github.com/perfmq/perfmq/internal/plan"
)

// manage lets the brokers with a management URL be asked over that. Sides with the same URL and login share an
// inspector.
func manage(p *plan.Plan) error {
	if !p.BrokerCount {
		return nil
	}
	opened := map[brokercount.Management]*brokercount.HTTP{}
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			for _, e := range g.Sides() {
				if e.Management == "" || e.Inspector != nil {
					continue
				}
				m := brokercount.Management{
					URL: e.Management, User: cmp.Or(e.Open.User, plan.User(e.Open.URL)),
					Password: cmp.Or(e.Open.Password, plan.Password(e.Open.URL)), TLS: e.Open.TLS,
					RocketMQ: e.Factory.Name == "rocketmq",
				}
				if opened[m] == nil {
					h, err := brokercount.Open(m)
					if err != nil {
						return err
					}
					opened[m] = h
				}
				e.Inspector = opened[m]
			}
		}
	}
	return nil
}
