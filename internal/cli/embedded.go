package cli

import (
	"slices"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// embeddedHost stands for the broker in this process in URLs until its port is known.
const embeddedHost = "embedded"

// canEmbed tells whether the broker in the binary speaks the protocol.
func canEmbed(f *driver.Factory) bool { return slices.Contains(broker.Protocols(), f.Name) }

func embeddedFlags(f *driver.Factory) []definition {
	if !canEmbed(f) {
		return nil
	}
	return []definition{
		{
			name: "embedded", group: groupBroker, help: "run a broker inside this process and use it: no service is needed, the figures are this tool's own limits",
			set: onOff(func(s *settings) *bool { return &s.embedded }),
		},
		{
			name: "embedded-faults", group: groupBroker, arg: "LIST", help: "with --embedded: what it does wrong, such as lose=1000,delay=5ms; perfmq broker --help has them all",
			set: setFaults,
		},
	}
}

func setFaults(s *settings, t string) (err error) {
	s.faults, err = broker.ParseFaults(t)
	return err
}

// embed gives the sides of a group the broker in this process, if that was asked for.
func (r *resolver) embed(g *plan.Group) {
	if !r.embedded {
		if r.faults != (store.Faults{}) {
			r.refuse("add --embedded", "--embedded-faults needs --embedded")
		}
		return
	}
	for _, flag := range []string{"url", "consumer-url"} {
		if r.has(flag) {
			r.refuse("leave one of them out", "--embedded and --%s are both given", flag)
		}
	}
	for _, e := range g.Sides() {
		if !canEmbed(&e.Factory) {
			r.refuse("", "the embedded broker does not speak %s", e.Factory.Name)
			continue
		}
		e.Open.URL = e.Factory.Schemes[0] + "://" + embeddedHost
	}
}
