package rocketmq

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
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
