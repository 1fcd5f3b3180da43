package cli

import (
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/plan"
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
	for _, e := range g.Sides() {
		if !setting.CanEmbed(&e.Factory) {
			r.refuse("", "the embedded broker does not speak %s", e.Factory.Name)
			continue
		}
		e.Open.URL = e.Factory.Schemes[0] + "://" + embeddedHost
	}
}
