package store

import (
	"hash/maphash"
	"maps"
)

// groups are the owners of a queue's message groups, by a hash of their names: a few groups share an owner, and groups
// without end take no memory without end. They are used with the queue's lock held.
type groups struct {
	owners map[uint16]*Consumer
	seed   maphash.Seed
}

func (g *groups) share(group string) uint16 {
	return uint16(maphash.String(g.seed, group)) //nolint:gosec // a part of the hash
}

// owner returns nil if the group is free.
func (g *groups) owner(group string) *Consumer { return g.owners[g.share(group)] }

// claim makes c the owner of a group that is free or c's already.
func (g *groups) claim(group string, c *Consumer) { g.owners[g.share(group)] = c }

func (g *groups) leave(c *Consumer) {
	if g != nil {
		maps.DeleteFunc(g.owners, func(_ uint16, x *Consumer) bool { return x == c })
	}
}
