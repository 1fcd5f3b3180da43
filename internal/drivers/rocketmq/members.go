package rocketmq

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// listing shares a broker's answers about the members of a group among this driver's members. Whenever a member joins
// or leaves, the broker notifies all others, and each must list the members again. If each asked, time and memory would
// grow with the square of the number of members, which may be hundreds.
type listing struct {
	turn    chan struct{} // permission to ask; a channel with room for one
	begun   atomic.Uint64 // questions so far
	last    uint64        // the number of the last answered question. Guarded by turn, as members
	members []string      // read-only
}

// turnPatience bounds the wait for another member's question, on its connection, before asking ourselves.
const turnPatience = time.Second

// ask returns the answer to a question that began after the call of ask: of another member, or else its own.
func (l *listing) ask(ctx context.Context, question func() ([]string, error)) ([]string, error) {
	came := l.begun.Load()
	timer := time.NewTimer(turnPatience)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-timer.C:
		return question()
	case <-ctx.Done():
		return nil, driver.Errorf(driver.ClassTimeout, "list the consumers of the group", "", "%w", ctx.Err())
	}
	if l.last > came {
		return l.members, nil
	}
	number := l.begun.Add(1)
	members, err := question()
	if err == nil {
		l.last, l.members = number, members
	}
	return members, err
}

// groupAt is a group at a broker.
type groupAt struct{ group, addr string }

// memberIDs returns the ids of the clients in the consumer's group, as the broker of conn knows them, in order. The
// caller must not change them.
func (c *consumer) memberIDs(ctx context.Context, conn *conn) ([]string, error) {
	question := func() ([]string, error) {
		list, err := conn.membersOf(ctx, c.group)
		slices.Sort(list)
		return list, err
	}
	if c.alone {
		return question()
	}
	return c.d.listingOf(groupAt{c.group, conn.addr}).ask(ctx, question)
}

func (d *rocketDriver) listingOf(at groupAt) *listing {
	l, known := d.listings.Load(at)
	if !known {
		l, _ = d.listings.LoadOrStore(at, &listing{turn: make(chan struct{}, 1)})
	}
	return l.(*listing)
}

// most returns the largest number of members that can have a queue, of the topic or for redelivery.
func (r *route) most() int { return max(r.readable(), len(r.brokers)) }
