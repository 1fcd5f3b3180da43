package rocketmq

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// groupState is the state that the consumers of a group in this driver share.
//
// All consumers that the driver is opening join the group before any takes its queues: otherwise each consumer would
// take its share as it joins, and give most of it back to the next ones, and the time would grow with the square of the
// number of consumers.
type groupState struct {
	name    string
	reaches sync.Map // queueID -> *reach

	mu        sync.Mutex
	entering  int                // consumers that have not joined yet
	unsettled map[*consumer]bool // consumers that have joined, and may not own their shares yet
	settled   chan struct{}      // closed when no consumer is unsettled
	// held is when brokers hold no pull of members that have left; then the group is to be deleted if remove is set.
	held   time.Time
	remove bool

	turn    turn                  // to ask for the group's offsets
	start   atomic.Pointer[route] // the group has offsets in its queues; nil: not known
	listing listing
}

// groupOf returns the state of a consumer's group.
func (d *rocketDriver) groupOf(m *membership) *groupState {
	fresh := &groupState{
		name: m.group, unsettled: map[*consumer]bool{}, turn: newTurn(), listing: listing{turn: newTurn()},
	}
	if m.alone {
		return fresh
	}
	known, _ := d.groups.LoadOrStore(m.group, fresh)
	return known.(*groupState)
}

// enter announces a consumer.
func (g *groupState) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entering++
}

// joined reports that an announced consumer is a member of the group, or that it cannot become one. It returns whether
// no other is announced, and then makes the others take their shares.
func (g *groupState) joined(c *consumer, member bool) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entering--
	if member {
		g.unsettled[c] = true
	}
	if g.entering > 0 {
		return false
	}
	for each := range g.unsettled {
		if each != c {
			each.kick()
		}
	}
	return true
}

// defers returns whether a member must leave its share for later, as others are announced. The last of them kicks it.
func (g *groupState) defers(c *consumer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entering > 0 {
		g.unsettled[c] = true
	}
	return g.entering > 0
}

// settle reports that a member owns its share, or that it has failed. The channel is closed when this holds for all
// members.
func (g *groupState) settle(c *consumer) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.unsettled, c)
	if g.settled == nil {
		g.settled = make(chan struct{})
	}
	settled := g.settled
	if len(g.unsettled) == 0 {
		close(settled)
		g.settled = nil
	}
	return settled
}

// part reports that a consumer is about to leave the group, or cannot become a member. If it is the last one, it may
// delete the group and its offsets.
func (g *groupState) part(c *consumer) {
	g.settle(c)
	g.start.Store(nil)
}

// starts reports whether the group has offsets in the queues of a route.
func (g *groupState) starts(r *route) bool {
	start := g.start.Load()
	return start != nil && slices.Equal(start.brokers, r.brokers)
}
