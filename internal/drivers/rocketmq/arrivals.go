package rocketmq

import (
	"slices"
	"sync"
	"time"
)

// groupState is the state that the consumers of a group in this driver share.
type groupState struct {
	name string
	arrivals
	listing listing
	reaches sync.Map // queueID -> *reach

	// arrivals.mu guards these. held is when brokers hold no pull of members that have left; then the group is to be
	// deleted if remove is set.
	held   time.Time
	remove bool
}

// groupOf returns the state of a consumer's group.
func (d *rocketDriver) groupOf(m *membership) *groupState {
	fresh := &groupState{
		name: m.group, listing: listing{turn: newTurn()},
		arrivals: arrivals{unsettled: map[*consumer]bool{}, turn: newTurn()},
	}
	if m.alone {
		return fresh
	}
	known, _ := d.groups.LoadOrStore(m.group, fresh)
	return known.(*groupState)
}

// arrivals are the consumers of a group that a driver is opening. All join the group before any takes its queues:
// otherwise each consumer would take its share as it joins, and give most of it back to the next ones, and the time
// would grow with the square of the number of consumers.
type arrivals struct {
	mu        sync.Mutex
	entering  int                // consumers that have not joined yet
	unsettled map[*consumer]bool // consumers that have joined, and may not own their shares yet
	settled   chan struct{}      // closed when no consumer is unsettled
	start     *route             // the group has offsets in its queues; nil: not known

	turn turn // to ask for the group's offsets
}

// enter announces a consumer.
func (a *arrivals) enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entering++
}

// joined reports that an announced consumer is a member of the group, or that it cannot become one. It returns whether
// no other is announced, and then makes the others take their shares.
func (a *arrivals) joined(c *consumer, member bool) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entering--
	if member {
		a.unsettled[c] = true
	}
	if a.entering > 0 {
		return false
	}
	for each := range a.unsettled {
		if each != c {
			each.kick()
		}
	}
	return true
}

// defers returns whether a member must leave its share for later, as others are announced. The last of them kicks it.
func (a *arrivals) defers(c *consumer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entering > 0 {
		a.unsettled[c] = true
	}
	return a.entering > 0
}

// settle reports that a member owns its share, or that it has failed. The channel is closed when this holds for all
// members.
func (a *arrivals) settle(c *consumer) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.unsettled, c)
	if a.settled == nil {
		a.settled = make(chan struct{})
	}
	settled := a.settled
	if len(a.unsettled) == 0 {
		close(settled)
		a.settled = nil
	}
	return settled
}

// part reports that a consumer is about to leave the group, or cannot become a member. If it is the last one, it may
// delete the group and its offsets.
func (a *arrivals) part(c *consumer) {
	a.settle(c)
	a.noteStart(nil)
}

// starts reports whether the group has offsets in the queues of a route.
func (a *arrivals) starts(r *route) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.start != nil && slices.Equal(a.start.brokers, r.brokers)
}

func (a *arrivals) noteStart(r *route) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start = r
}
