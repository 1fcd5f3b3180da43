package cli

import (
	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/setting"
)

// embeddedHost stands for the broker in this process in URLs until its port is known.
const embeddedHost = "embedded"

// embedOver drops URLs that come from a weaker source than --embedded: a flag wins over the variable PERFMQ_URL, and
// both over a file.
func embedOver(v *setting.Values, embedded setting.Source) {
	for name, url := range map[string]*string{"url": &v.URL, "consumer-url": &v.ConsumerURL} {
		if v.Embedded && v.Source(name) < embedded {
			v.Forget(name)
			*url = ""
		}
	}
}

// embedFits refuses bodies that the broker in this process does not take.
func (r *resolver) embedFits(g *plan.Group) {
	if !r.Embedded || !r.role.Produces() {
		return
	}
	protocol := g.ProducerBroker.Protocol
	if most := broker.LargestBody(protocol); g.LargestBody() > most {
		r.refuse("send smaller messages, or to a broker of your own, by --url",
			"--embedded takes bodies of at most %s over %s, and there is one of %s",
			quantity.FormatBytes(int64(most)), protocol, quantity.FormatBytes(int64(g.LargestBody())))
	}
}

// embed connects the sides of a group to the broker in this process, with --embedded.
func (r *resolver) embed(g *plan.Group) {
	if !r.Embedded {
		if r.Faults != (store.Faults{}) {
			r.refuse("add --embedded", "--embedded-faults needs --embedded")
		}
		return
	}
	for _, flag := range []string{"url", "consumer-url", "management-url"} {
		if r.Has(flag) {
			r.refuse("leave one of them out", "--embedded and --%s are both given", flag)
		}
	}
	for _, b := range g.Sides() {
		f := r.driver(b)
		if !setting.CanEmbed(f) {
			r.refuse("", "the embedded broker does not speak %s", f.Name)
			continue
		}
		b.URL = f.Schemes[0] + "://" + embeddedHost
	}
}
