package rocketmq

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// listing shares the broker's answers to who is in a group among its members of this driver. Whenever one comes or
// goes, the broker tells all others, and each has to find out who they are now: with a question for each of them,
// hundreds of members would take time and memory with the square of their number.
type listing struct {
	turn    chan struct{} // to ask; has room for one
	begun   atomic.Uint64 // questions so far
	last    uint64        // the number of the question that was answered last. With the turn, as members
	members []string      // not to be changed
}

// turnPatience is how long to wait for a question of another member, on its connection, before asking ourselves.
const turnPatience = time.Second

// ask returns the answer to a question that begins after it was called: of another member, or else of its own.
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

// memberIDs returns the ids of the clients in the consumer's group, as the broker of conn knows them, in order.
// They are not to be changed.
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

// most returns for how many members there is a queue, of the topic or for redelivery.
func (r *route) most() int { return max(r.readable(), len(r.brokers)) }
