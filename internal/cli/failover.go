package cli

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// failovers are the failover URLs of a group; nil for URLs of other kinds.
type failovers struct{ url, consumerURL *plan.Failover }

// readFailovers replaces failover URLs by their hosts.
func (r *resolver) readFailovers() (f failovers) {
	values := *r.Values // a copy: other groups may share the original
	r.Values = &values
	f.url = r.readFailover("--url", &values.URL)
	f.consumerURL = r.readFailover("--consumer-url", &values.ConsumerURL)
	return f
}

func (r *resolver) readFailover(flag string, url *string) *plan.Failover {
	if !plan.IsFailover(*url) {
		return nil
	}
	f, err := plan.ParseFailover(*url)
	if err != nil {
		r.errs = append(r.errs, err)
		*url = "" // lets the other settings be checked
		return nil
	}
	*url = f.URL
	if len(f.Ignored) > 0 {
		slices.Sort(f.Ignored)
		r.note(flag + ": settings of ActiveMQ's own client have no effect: " + strings.Join(slices.Compact(f.Ignored), ", "))
	}
	return f
}

// applyFailovers applies the parameters of failover URLs to a group. Flags take precedence.
func (r *resolver) applyFailovers(g *plan.Group, f failovers) {
	list := slices.DeleteFunc([]*plan.Failover{f.url, f.consumerURL}, func(f *plan.Failover) bool { return f == nil })
	if len(list) == 0 {
		return
	}
	for _, b := range g.Sides() {
		for _, o := range list {
			if b.URL == o.URL {
				b.Given = o.Shown
				r.failoverOf(r.driver(b))
			}
		}
	}
	first := list[0]
	last := list[len(list)-1]
	if first.Random != last.Random || first.Again != last.Again || first.Backoff != last.Backoff {
		r.refuse("give both the same settings", "the failover URLs of producers and consumers differ in their settings")
	}
	switch {
	case r.Has("hosts"):
	case first.Random:
		g.Hosts = plan.AtRandom
	}
	switch {
	case !r.Has("reconnect") && first.Again:
		g.Reconnect = true
		r.note("the failover URL implies --reconnect: lost connections are opened again; --reconnect=false ends the run " +
			"instead")
	case !first.Again && !r.Has("reconnect"):
		r.note("the failover URL has maxReconnectAttempts=0: a lost connection ends the run")
	}
	if g.Reconnect {
		g.Backoff = first.Backoff
		if g.ReconnectDelay > 0 {
			g.Backoff.Limit(g.ReconnectDelay)
		}
	}
}

// failoverOf refuses failover URLs of protocols that ActiveMQ's clients do not use.
func (r *resolver) failoverOf(f *driver.Factory) {
	if f.Hosts == nil {
		r.refuse("write "+f.Schemes[0]+"://HOST:PORT,HOST:PORT", "%s has no failover URLs", setting.Quoted(f.Name))
	}
}
