package rocketmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	lockRetry    = 20 * time.Millisecond // while another member still has a queue of ours
	lockPatience = 3 * time.Second       // after which a concurrent consumer goes ahead without the lock
	lockRenew    = 20 * time.Second      // brokers forget locks after 60 s
	saveEvery    = 100 * time.Millisecond
	savePause    = 2 * time.Millisecond // per queue: no more than 500 requests a second
)

// open subscribes and returns when this consumer owns its share of the queues and knows where each starts.
func (c *consumer) open(ctx context.Context) error {
	for _, b := range c.route.brokers {
		conn, err := c.client.connect(ctx, b.addr)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		if err := c.client.ensureGroup(ctx, conn, c.group); err != nil {
			return err
		}
		if c.filter.kind != wire.KindTag {
			if err := c.checkFilter(ctx, conn); err != nil {
				return err
			}
		}
	}
	c.offered = &reroute{route: c.route, conns: c.conns}
	c.reached.Store(&c.conns)
	c.client.mu.Lock()
	c.client.consumers[c.group] = c
	c.client.mu.Unlock()
	for _, conn := range c.conns {
		if err := c.client.beat(ctx, conn); err != nil {
			return err
		}
	}
	if c.fromNext && c.opts.Model == clustering {
		if err := c.fixStart(ctx); err != nil {
			return err
		}
	}
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		complete, err := c.rebalance(ctx)
		if complete || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-c.kicked:
		case <-ctx.Done():
			return driver.Errorf(driver.ClassTimeout, "",
				"another consumer of the group may have been killed a moment ago: its locks end after a minute",
				"the broker has not given us our queues of group %s: %w", c.group, ctx.Err())
		}
	}
}

// ensureGroup creates the group at a broker that knows it not and does not create groups by their use
// (autoCreateSubscriptionGroup=false). To others, and to those too old for the question, it makes no difference.
func (a *caller) ensureGroup(ctx context.Context, conn *conn, group string) error {
	r, err := a.call(ctx, conn, wire.ReqGetSubscriptionGroupConfig, []field{{"group", group}}, nil)
	if err != nil || r.Code != wire.ResSubscriptionGroupNotExist {
		return err // of the connection; a refusal by the broker will come again
	}
	body, err := json.Marshal(map[string]any{ // SubscriptionGroupConfig, with its defaults
		"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1,
		"notifyConsumerIdsChangedEnable": true,
	})
	if err != nil {
		return err
	}
	_, err = a.must(ctx, conn, "create group "+group, wire.ReqUpdateAndCreateSubscriptionGroup, nil, body)
	return err
}

// checkFilter lets the broker judge an SQL expression.
func (c *consumer) checkFilter(ctx context.Context, conn *conn) error {
	body, err := json.Marshal(wire.ClientCheck{
		ClientID: c.client.id, Group: c.group, Namespace: c.opts.Namespace, Subscription: c.subscriptionData(),
	})
	if err != nil {
		return err
	}
	_, err = c.client.must(ctx, conn, "set the filter "+strconv.Quote(c.filter.expression), wire.ReqCheckClientConfig, nil,
		body)
	return err
}

// manage keeps the share of the queues up to date until the consumer closes.
func (c *consumer) manage(ctx context.Context) {
	defer close(c.managed)
	renew := time.NewTicker(lockRenew)
	defer renew.Stop()
	save := time.NewTimer(saveEvery)
	defer save.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	for _, conn := range c.conns {
		c.watchers.Go(func() { c.watch(ctx, conn) })
	}
	for {
		select {
		case <-c.stop:
			return
		case <-save.C:
			c.noteAll()
			save.Reset(max(saveEvery, time.Duration(len(c.owned))*savePause))
			continue
		case <-renew.C:
			c.renewLocks(ctx)
		case <-c.kicked:
		case <-again.C:
		}
		c.adopt(ctx)
		each, cancel := c.d.opening(ctx)
		complete, err := c.rebalance(each)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.fail(err)
			return
		}
		if !complete {
			again.Reset(lockRetry)
		}
	}
}

// watch makes the consumer fail when a connection ends.
func (c *consumer) watch(ctx context.Context, conn *conn) {
	select {
	case <-conn.Over():
		c.fail(conn.Why())
	case <-ctx.Done():
	}
}

// rebalance takes the queues that are our share and gives back the others. It is complete when we own all that we want.
func (c *consumer) rebalance(ctx context.Context) (complete bool, err error) {
	share, known, err := c.share(ctx)
	if err != nil || !known {
		return false, err
	}
	var gone []*queue
	for id, q := range c.owned {
		if _, ok := share[id]; !ok {
			gone = append(gone, q)
		}
	}
	if err := c.giveBack(ctx, gone); err != nil {
		return false, err
	}
	var missing []*queue
	for id, q := range share {
		if c.owned[id] == nil {
			missing = append(missing, q)
		}
	}
	if err := c.takeOver(ctx, missing); err != nil {
		return false, err
	}
	if len(gone)+len(missing) > 0 {
		c.rebalanced.Add(1)
	}
	return len(c.owned) == len(share), c.startAll()
}

// share returns the queues that are to be ours; known is false while the broker does not know us yet.
func (c *consumer) share(ctx context.Context) (share map[queueID]*queue, known bool, err error) {
	main, retry := map[queueID]*queue{}, map[queueID]*queue{}
	for i, b := range c.route.brokers {
		for n := range b.read {
			id := queueID{c.topic, b.name, n}
			main[id] = &queue{queueID: id, conn: c.conns[i]}
		}
		id := queueID{wire.RetryPrefix + c.group, b.name, 0}
		retry[id] = &queue{queueID: id, conn: c.conns[i], retry: true}
	}
	if c.opts.Model == broadcasting {
		return main, true, nil
	}
	members, err := c.client.membersOf(ctx, c.conns[0], c.group)
	if err != nil || !slices.Contains(members, c.client.id) {
		return nil, false, err
	}
	share = map[queueID]*queue{}
	for _, all := range []map[queueID]*queue{main, retry} {
		for _, id := range allocate(c.client.id, all, members) {
			share[id] = all[id]
		}
	}
	return share, true, nil
}

// allocate chooses as all clients of a group must, each for itself: both lists sorted, the queues dealt out in equal
// runs, the first members getting one more if they do not divide evenly (AllocateMessageQueueAveragely, the default
// of all clients; the test compares with the library's).
func allocate(me string, all map[queueID]*queue, members []string) []queueID {
	list := make([]queueID, 0, len(all))
	for id := range all {
		list = append(list, id)
	}
	slices.SortFunc(list, func(x, y queueID) int {
		return cmp.Or(strings.Compare(x.topic, y.topic), strings.Compare(x.broker, y.broker), x.number-y.number)
	})
	slices.Sort(members)
	i := slices.Index(members, me)
	if i < 0 {
		return nil
	}
	each, more := len(list)/len(members), len(list)%len(members)
	from := i*each + min(i, more)
	to := from + each
	if i < more {
		to++
	}
	return list[from:to]
}

// membersOf returns the ids of the clients in a group.
func (a *caller) membersOf(ctx context.Context, conn *conn, group string) ([]string, error) {
	const op = "list the consumers of the group"
	r, err := a.call(ctx, conn, wire.ReqGetConsumerListByGroup, []field{{"consumerGroup", group}}, nil)
	switch {
	case err != nil:
		return nil, wrap(op, err)
	case r.Code == wire.ResSystemError && !authFailed(string(r.Remark)):
		return nil, nil // so brokers say that there are none
	case r.Code != wire.ResSuccess:
		return nil, wrap(op, refusal(r))
	}
	var list wire.Consumers
	if err := wire.UnmarshalJSON(r.Body, &list); err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "read the broker's answer: %w", err)
	}
	return list.ClientIDs, nil
}

// takeOver makes queues ours, as far as the broker locks them for us. The lock lets their former owner say first
// where it stands, so that nothing is delivered twice.
func (c *consumer) takeOver(ctx context.Context, queues []*queue) error {
	locked := map[queueID]bool{}
	if c.opts.Model == clustering && len(queues) > 0 {
		var err error
		if locked, err = c.lock(ctx, queues); err != nil {
			return err
		}
	}
	now := time.Now()
	for _, q := range queues {
		if c.opts.Model == clustering && !locked[q.queueID] {
			since, waiting := c.wanted[q.queueID]
			if !waiting {
				c.wanted[q.queueID] = now
			}
			if !waiting || c.opts.Order == orderly || now.Sub(since) < lockPatience {
				continue
			}
		}
		if err := c.position(ctx, q); err != nil {
			return err
		}
		if q.reach = new(reach); c.opts.Model == clustering && !c.alone {
			q.reach = c.d.reachOf(c.group, q.queueID)
		}
		delete(c.wanted, q.queueID)
		c.owned[q.queueID] = q
	}
	return nil
}

// startAll begins to pull from the queues that are ours, once Run has been called.
func (c *consumer) startAll() error {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if !running {
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

// giveBack stops with queues, says where we stand in them, and unlocks them for others.
func (c *consumer) giveBack(ctx context.Context, queues []*queue) error {
	for _, q := range queues {
		q.revoked.Store(true)
		q.busy.Lock()   // until the delivery of a message has ended
		q.busy.Unlock() //nolint:staticcheck // nothing is done within: the next holder looks at revoked
		delete(c.owned, q.queueID)
	}
	if c.opts.Model != clustering {
		return nil
	}
	var errs []error
	for _, q := range queues { // all at once
		c.note(q)
		q.conn.out.Flush()
	}
	for _, q := range queues {
		errs = append(errs, c.save(ctx, q))
	}
	errs = append(errs, c.unlock(ctx, queues))
	return errors.Join(errs...)
}

// renewLocks keeps our locks alive.
func (c *consumer) renewLocks(ctx context.Context) {
	if c.opts.Model != clustering || len(c.owned) == 0 {
		return
	}
	ctx, cancel := c.d.opening(ctx)
	defer cancel()
	var all []*queue
	for _, q := range c.owned {
		all = append(all, q)
	}
	_, _ = c.lock(ctx, all) // if that fails, so does the rebalancing that follows
}
