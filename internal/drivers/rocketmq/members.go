package rocketmq

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// listing shares a broker's answers about the members of a group among this driver's members. Whenever a member joins
// or leaves, the broker notifies all others, and each must list the members again. If each asked, time and memory would
// grow with the square of the number of members, which may be hundreds.
type listing struct {
	turn    turn          // to ask
	begun   atomic.Uint64 // questions so far
	last    uint64        // the number of the last answered question. Guarded by turn, as members
	members []string      // read-only
}

const opMembers = "list group members"

// turnPatience bounds the wait for another member's question, on its connection, before asking ourselves.
const turnPatience = time.Second

// ask returns the answer to a question that began after the call of ask: of another member, or else its own.
func (l *listing) ask(ctx context.Context, question func() ([]string, error)) ([]string, error) {
	came := l.begun.Load()
	timer := time.NewTimer(turnPatience)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
		defer l.turn.give()
	case <-timer.C:
		return question()
	case <-ctx.Done():
		return nil, unanswered(ctx, opMembers, "the broker")
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

// most returns the largest number of members that can have a queue, of the topic or for redelivery.
func (r *route) most() int { return max(r.readable(), len(r.brokers)) }

// share returns the queues of our share; known is false while the broker does not know us yet.
func (c *consumer) share(ctx context.Context) (share []*queue, known bool, err error) {
	members, err := c.shared.listing.ask(ctx, func() ([]string, error) {
		list, err := c.conns[0].membersOf(ctx, c.group)
		slices.Sort(list)
		return list, err
	})
	if err != nil {
		return nil, false, err
	}
	place, found := slices.BinarySearch(members, c.client.id)
	if !found || place >= c.route.most() { // not known yet, or more members than queues
		return nil, found, nil
	}
	from, to := allocate(place, c.route.readable(), len(members))
	share = c.queues(from, to)
	from, to = allocate(place, len(c.conns), len(members))
	for i := from; i < to; i++ {
		id := queueID{wire.RetryPrefix + c.group, c.route.brokers[i].name, 0}
		share = append(share, &queue{queueID: id, conn: c.conns[i], retry: true})
	}
	return share, true, nil
}

// queues returns the readable queues from index from up to, but not including, index to, in the order of the route.
func (c *consumer) queues(from, to int) (list []*queue) {
	for i, b := range c.route.brokers {
		for n := max(from, 0); n < min(to, b.read); n++ {
			list = append(list, &queue{queueID: queueID{c.topic, b.name, n}, conn: c.conns[i]})
		}
		from, to = from-b.read, to-b.read
	}
	return list
}

// allocate returns the range of n ordered queues that belongs to the member with that place in a group; all clients of
// the group must find the same ranges, each for itself. The queues are divided into equal runs, and the first members
// get one more if they do not divide evenly (AllocateMessageQueueAveragely, the default of all clients; the test
// compares with the library's).
func allocate(place, n, members int) (from, to int) {
	start := func(i int) int { return i*(n/members) + min(i, n%members) }
	return start(place), start(place + 1)
}
