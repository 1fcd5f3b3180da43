package store

import (
	"hash/maphash"
	"maps"
)

// groups are the owners of a queue's message groups. They are used with the queue's lock held.
type groups struct {
	named  map[string]*Consumer
	shares map[uint16]*Consumer // of the groups beyond maxGroups, by a hash of their names
	seed   maphash.Seed
}

// maxGroups bounds the groups of a queue with an owner of their own; later groups share owners. The end of a group is
// not known, and names would accumulate for the life of a consumer.
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
	return uint16(maphash.String(g.seed, group)) //nolint:gosec // a part of the hash
}

// claim makes c the owner of a group that is free or c's already.
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

func (g *groups) leave(c *Consumer) {
	if g == nil {
		return
	}
	maps.DeleteFunc(g.named, func(_ string, x *Consumer) bool { return x == c })
	maps.DeleteFunc(g.shares, func(_ uint16, x *Consumer) bool { return x == c })
}
