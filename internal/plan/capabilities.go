package plan

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/driver"
)

// need is a setting that needs a capability of the protocol.
type need struct {
	flag      string
	used, can bool
}

// sending returns the settings of producers that need capabilities.
func (g *Group) sending(c *driver.KindCapabilities, _ driver.Kind) []need {
	return []need{
		{"--commit-interval", g.CommitInterval > 0, c.Transactions},
		{"--persistent", g.Persistent, c.Persistent},
		{"--ttl", g.TTL > 0, c.TTL},
		{"--delivery-delay", g.Delay > 0, c.Delay},
		{"--priority", g.sends(func(m *Variant) bool { return m.Priority >= 0 }), c.Priority},
		{"--group", g.sends(func(m *Variant) bool { return m.Group != "" }), c.Group},
		{"--message-type text", g.sends(func(m *Variant) bool { return m.Text }), c.Text},
		{"--property", g.sends(func(m *Variant) bool { return len(m.Properties) > 0 }), c.Properties},
	}
}

// receiving returns the settings of consumers that need capabilities.
func (g *Group) receiving(c *driver.KindCapabilities, kind driver.Kind) []need {
	return []need{
		{"--tx", g.TransactionSize > 0, c.TransactedReceive},
		{"--selector", g.Selector != "", c.Selector},
		{"--credit", g.Credit > 0, c.Credit},
		{"--consumer-fail as reject", g.fails(driver.Reject), c.Reject},
		{"--consumer-fail as release", g.fails(driver.Release), c.Release},
		{"--durable", g.Durable && kind == driver.Topic, c.DurableSubscription},
		{"--shared", g.Shared > 0 && kind == driver.Topic, c.SharedSubscription},
	}
}

// unsupported records a setting that a protocol does not have.
func (v *validator) unsupported(flag, protocol, hint string) {
	v.refuse(true, "leave "+flag+" out"+hint, "%s: %s does not support that", flag, protocol)
}

// sends reports whether the group sends messages of a kind.
func (g *Group) sends(kind func(*Variant) bool) bool {
	return slices.ContainsFunc(g.Mix, func(m Variant) bool { return kind(&m) })
}

// capable refuses settings that a protocol does not support for one of the destinations. The native driver may support
// more than a client library.
func (v *validator) capable(f *driver.Factory, needs func(*driver.KindCapabilities, driver.Kind) []need) {
	missing := func(all *driver.Capabilities) (flags []string) {
		for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
			c := all.Of(kind)
			if !v.group.hasKind(kind) || !c.Exists {
				continue
			}
			for _, n := range needs(c, kind) {
				if n.used && !n.can && !slices.Contains(flags, n.flag) {
					flags = append(flags, n.flag)
				}
			}
		}
		return flags
	}
	for _, flag := range missing(&f.Capabilities) {
		hint := ""
		if f.Native != nil && !slices.Contains(missing(f.Native), flag) {
			hint = ", or use --client native"
		}
		v.unsupported(flag, title(f), hint)
	}
}
