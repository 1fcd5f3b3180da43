package cli

import (
	"net/url"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

func entry(list []scenario.Entry, key string) (text string, ok bool) {
	for _, e := range list {
		if e.Key == key && len(e.Texts) > 0 {
			text, ok = e.Texts[len(e.Texts)-1], true
		}
	}
	return text, ok
}

// broker determines the protocol of a broker.
func (b *builder) broker(of *scenario.Broker) {
	at := &fileBroker{Broker: of}
	b.brokers[of.Name] = at
	entries := slices.Concat(b.file.Defaults, of.Entries)
	name, named := entry(entries, "protocol")
	address, _ := entry(entries, "url")
	at.site, _ = entry(entries, setting.KeySite)
	if at.site == "" {
		at.site = "host " + hosts(address)
	}
	i := slices.IndexFunc(b.app.Factories, func(f driver.Factory) bool {
		if named {
			return strings.EqualFold(f.Name, name)
		}
		return slices.Contains(f.Schemes, plan.Scheme(address))
	})
	switch {
	case i >= 0:
		at.factory = b.app.Factories[i]
	case named:
		b.bad(of.Pos, "known are "+strings.Join(setting.Names(b.app.Factories), ", "),
			"the broker %s has the unknown protocol %s", of.Name, name)
	default:
		b.bad(of.Pos, "protocol: "+strings.Join(setting.Names(b.app.Factories), ", or protocol: "),
			"the broker %s has no protocol", of.Name)
	}
	if i < 0 {
		at.factory = *b.factory
	}
}

// hosts returns the hosts of a URL without their ports.
func hosts(address string) string {
	if plan.IsFailover(address) {
		if f, err := plan.ParseFailover(address); err == nil {
			address = f.URL
		}
	}
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "/")
	rest, _, _ = strings.Cut(rest, "?")
	var list []string
	for _, host := range strings.Split(rest, ",") {
		u, err := url.Parse("x://" + host)
		if err == nil {
			host = u.Hostname()
		}
		list = append(list, host)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// sites sets the names of the sites: none if there is one site, else the site's own name or that of its first broker.
func (b *builder) sites() {
	names := map[string]string{}
	for i := range b.file.Brokers {
		of := b.brokers[b.file.Brokers[i].Name]
		if _, ok := names[of.site]; !ok {
			names[of.site] = of.Name
			if own, ok := entry(of.Entries, setting.KeySite); ok {
				names[of.site] = own
			}
		}
	}
	for _, of := range b.brokers {
		if len(names) == 1 {
			of.site = ""
		} else {
			of.site = names[of.site]
		}
	}
}
