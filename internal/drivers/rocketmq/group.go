package rocketmq

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	lockRetry    = 20 * time.Millisecond  // while another member still holds a queue of ours
	lockPatience = 3 * time.Second        // then a consumer proceeds without the lock
	lockRenew    = 20 * time.Second       // brokers drop locks after 60 s
	lookEach     = 100 * time.Microsecond // between two looks at the members, per consumer of the driver
	lookPause    = 100 * time.Millisecond // the longest such pause
)

// The intervals at which a consumer saves its offsets: saveEvery, but no more than a request in each savePause of all
// the consumers of the driver together, and at least once in saveRarely.
const (
	saveEvery  = 100 * time.Millisecond
	savePause  = 2 * time.Millisecond
	saveRarely = 5 * time.Second
)

// manage keeps the share of the queues up to date until the consumer closes.
func (c *consumer) manage(ctx context.Context) {
	defer close(c.managed)
	save := time.NewTimer(saveEvery)
	defer save.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	renewed := time.Now()
	var looked time.Time // at the members; consumers that come or leave one by one would make all others look each time
	ran := false         // Run had begun at the last kick
	for {
		select {
		case <-c.stop:
			return
		case <-save.C:
			c.noteAll()
			save.Reset(c.d.saveInterval(len(c.owned)))
			if time.Since(renewed) < lockRenew {
				continue
			}
			renewed = time.Now()
			each, cancel := c.d.opening(ctx)
			// If that fails, so does the rebalancing that follows.
			_, _ = c.lock(each, slices.Collect(maps.Values(c.owned)))
			cancel()
		case <-c.kicked:
			wait := time.Until(looked.Add(c.lookInterval()))
			if ran || !c.running.Load() { // else the kick may be Run's
				again.Reset(max(wait, 0))
				continue
			}
			ran = true
		case <-again.C:
		}
		if !c.running.Load() && c.shared.defers(c) {
			continue // the last to arrive kicks
		}
		looked = time.Now()
		each, cancel := c.d.opening(ctx)
		complete, err := c.rebalance(each)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.fail(err)
			c.shared.settle(c)
			return
		}
		if complete {
			c.shared.settle(c)
		} else {
			again.Reset(lockRetry)
		}
	}
}

// lookInterval returns the least time between two looks at the members.
func (c *consumer) lookInterval() time.Duration {
	if c.ended.Load() {
		return lookPause
	}
	return min(time.Duration(c.d.members.Load())*lookEach, lookPause)
}

// saveInterval returns the time between two reports of the offsets of a consumer with that number of queues.
func (d *rocketDriver) saveInterval(queues int) time.Duration {
	all := max(1, int64(queues)) * max(1, d.members.Load()) // their shares are equal
	return min(max(saveEvery, time.Duration(all)*savePause), saveRarely)
}

// rebalance takes the queues of our share and gives back the others. It is complete when we own our whole share. After
// Run has ended, it takes none.
func (c *consumer) rebalance(ctx context.Context) (complete bool, err error) {
	share, known, err := c.share(ctx)
	if err != nil || !known {
		return false, err
	}
	ended := c.ended.Load()
	ours := map[queueID]bool{}
	var gone, missing []*queue
	for _, q := range share {
		ours[q.queueID] = true
		if c.owned[q.queueID] == nil && !ended {
			missing = append(missing, q)
		}
	}
	for id, q := range c.owned {
		if !ours[id] {
			gone = append(gone, q)
		}
	}
	if err := c.giveBack(ctx, gone); err != nil {
		return false, err
	}
	if err := c.takeOver(ctx, missing); err != nil {
		return false, err
	}
	if len(gone)+len(missing) > 0 {
		c.rebalanced.Add(1)
	}
	return ended || len(c.owned) == len(share), c.startAll()
}

// membersOf returns the ids of the clients in a group.
func (c *conn) membersOf(ctx context.Context, group string) ([]string, error) {
	const op = opMembers
	r, err := c.call(ctx, wire.ReqGetConsumerListByGroup, []string{"consumerGroup", group}, nil)
	switch {
	case err != nil:
		return nil, wrap(op, err)
	case r.Code == wire.ResSystemError && refusal(r).Class != driver.ClassAuth:
		return nil, nil // this means that there are none
	case r.Code != wire.ResSuccess:
		return nil, wrap(op, refusal(r))
	}
	var list wire.Consumers
	err = r.read(op, &list)
	return list.ClientIDs, err
}

// takeOver makes queues ours, as far as the broker locks them for us. The lock lets their former owner report its
// offsets first, so that nothing is delivered twice.
func (c *consumer) takeOver(ctx context.Context, queues []*queue) error {
	locked, err := c.lock(ctx, queues)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, q := range queues {
		if !locked[q.queueID] {
			since, waiting := c.wanted[q.queueID]
			if !waiting {
				c.wanted[q.queueID] = now
			}
			if !waiting || now.Sub(since) < lockPatience {
				continue
			}
		}
		if err := c.position(ctx, q); err != nil {
			return err
		}
		known, _ := c.shared.reaches.LoadOrStore(q.queueID, new(reach))
		q.reach = known.(*reach)
		delete(c.wanted, q.queueID)
		c.owned[q.queueID] = q
	}
	return nil
}

// startAll begins to pull from our queues, once Run has been called.
func (c *consumer) startAll() error {
	if !c.running.Load() {
		return nil
	}
	for _, q := range c.owned {
		if !q.started {
			q.started = true
			if err := c.pull(q, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveBack stops consuming from queues, reports our offsets in them, and unlocks them.
func (c *consumer) giveBack(ctx context.Context, queues []*queue) error {
	for _, q := range queues {
		q.revoked.Store(true)
		q.busy.Lock()   // until the present delivery has ended
		q.busy.Unlock() //nolint:staticcheck // the critical section is empty: the next holder checks revoked
		delete(c.owned, q.queueID)
		c.note(q) // of all queues at once
		q.conn.Out.Flush()
	}
	var errs []error
	for _, q := range queues {
		errs = append(errs, c.save(ctx, q))
	}
	errs = append(errs, c.byConn(queues, func(conn *conn, list *wire.Lock) error {
		_, err := conn.must(ctx, "unlock queues", wire.ReqUnlockBatchMQ, nil, list)
		return err
	}))
	return errors.Join(errs...)
}

// byConn calls f with the queues of each connection, in the brokers' form.
func (c *consumer) byConn(queues []*queue, f func(*conn, *wire.Lock) error) error {
	lists := map[*conn][]wire.Queue{}
	for _, q := range queues {
		lists[q.conn] = append(lists[q.conn], wire.Queue{Topic: q.topic, Broker: q.broker, Queue: q.number})
	}
	for conn, list := range lists {
		if err := f(conn, &wire.Lock{Group: c.group, ClientID: c.client.id, Queues: list}); err != nil {
			return err
		}
	}
	return nil
}

// lock asks the brokers to lock queues for us, and returns the queues that they locked.
func (c *consumer) lock(ctx context.Context, queues []*queue) (map[queueID]bool, error) {
	locked := map[queueID]bool{}
	err := c.byConn(queues, func(conn *conn, list *wire.Lock) error {
		var answer wire.Locked
		if err := conn.query(ctx, "lock queues", wire.ReqLockBatchMQ, nil, list, &answer); err != nil {
			return err
		}
		for _, q := range answer.Queues {
			locked[queueID{q.Topic, q.Broker, q.Queue}] = true
		}
		return nil
	})
	return locked, err
}

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

// greet waits for the first frame. The error reports a server that is not RocketMQ.
func (c *conn) greet() error {
	const (
		size  = 4
		least = 9 // bytes of the first frame over HTTP/2
		shown = 20
	)
	first, err := c.In.Peek(size)
	if err != nil {
		if errors.Is(err, io.EOF) && c.In.Buffered() == 0 {
			return driver.Errorf(driver.ClassConnectionLost, "", notRocketMQ,
				"%s closed the connection before it said anything (%w)", c.addr, err)
		}
		return err
	}
	n := binary.BigEndian.Uint32(first)
	tooLong := c.checkLength(n)
	if tooLong == nil {
		if _, err = c.In.Peek(min(least, size+int(n))); err != nil {
			return err
		}
	}
	first, _ = c.In.Peek(min(c.In.Buffered(), shown))
	if transport.IsHTTP2(first) || tooLong != nil && isOther(first[:size]) {
		return c.notRocketMQ(protocol.RocketMQ().Stranger(c.tls, first))
	}
	if tooLong != nil {
		return driver.Errorf(driver.ClassProtocol, "", notRocketMQ,
			"the peer sends a frame of %d bytes; perfmq accepts %d to %d: %w",
			n, wire.MinFrame, c.maxFrame, wire.ErrFrame)
	}
	return nil
}

// isOther reports whether the first bytes of a peer are text, or an alert or handshake of TLS.
func isOther(first []byte) bool {
	const alert, handshake = 0x15, 0x16 // RFC 8446, section 5.1
	return first[0] == alert || first[0] == handshake ||
		!slices.ContainsFunc(first, func(b byte) bool { return b > '~' || b < ' ' && b != '\n' })
}

// notRocketMQ returns the error about a server that has not proven to be RocketMQ.
func (c *conn) notRocketMQ(err error) error {
	host, port, _ := net.SplitHostPort(c.addr) // dial has checked it
	return protocol.RocketMQ().ConnectError(transport.Endpoint{Host: host, Port: port}, err)
}

// misplaced returns the error about a request to the wrong kind of server; nil for other refusals.
func (c *conn) misplaced(request int, r *reply) error {
	switch {
	case r.Code != wire.ResRequestCodeNotSupported:
	case request == wire.ReqGetRouteInfoByTopic, request == wire.ReqGetBrokerClusterInfo:
		return driver.Errorf(driver.ClassProtocol, "",
			protocol.HintNameServer, "%s is a RocketMQ broker, not a name server", c.addr)
	case request == wire.ReqHeartBeat, request == wire.ReqUpdateAndCreateTopic:
		return driver.Errorf(driver.ClassProtocol, "",
			"give a broker's address (port 10911 by default), or leave out -o broker-address",
			"%s is a RocketMQ name server, not a broker", c.addr)
	}
	return nil
}
