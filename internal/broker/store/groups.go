package store

import (
	"hash/maphash"
	"maps"
)

// groups know which consumer of a queue owns which group of messages. They are used with the queue's lock held.
type groups struct {
	named  map[string]*Consumer
	shares map[uint16]*Consumer // of the groups that came when maxGroups had names: by a hash
	seed   maphash.Seed
}

// maxGroups is how many groups of a queue have an owner of their own. A queue does not know when a group has ended,
// so later groups share owners, or names would pile up for as long as a consumer stays.
const maxGroups = 50_000

func newGroups() *groups { return &groups{named: map[string]*Consumer{}, seed: maphash.MakeSeed()} }

// owner returns nil if the group is free.
func (g *groups) owner(group string) *Consumer {
	if c := g.named[group]; c != nil || g.shares == nil {
		return c
	}
	return g.shares[g.share(group)]
}

func (g *groups) share(group string) uint16 {
	return uint16(maphash.String(g.seed, group)) //nolint:gosec // a part of it
}

// claim makes c the owner of a group, which is free or c's already.
func (g *groups) claim(group string, c *Consumer) {
	switch {
	case g.owner(group) == c:
	case len(g.named) < maxGroups:
		g.named[group] = c
	default:
		if g.shares == nil {
			g.shares = map[uint16]*Consumer{}
		}
		g.shares[g.share(group)] = c
	}
}

// leave frees the groups of c.
func (g *groups) leave(c *Consumer) {
	if g == nil {
		return
	}
	maps.DeleteFunc(g.named, func(_ string, x *Consumer) bool { return x == c })
	maps.DeleteFunc(g.shares, func(_ uint16, x *Consumer) bool { return x == c })
}
