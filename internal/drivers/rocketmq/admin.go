package rocketmq

import (
	"context"
	"slices"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// place is a group in a queue: the messages from offset next to end are before it.
type place struct {
	queue
	membership
	next, end int64
}

// Depth implements [driver.Admin]. A topic keeps consumed messages: at a destination are the messages that its group
// has not said to have consumed, messages to be delivered again included. Of a topic without a subscription, all groups
// count.
func (d *rocketDriver) Depth(ctx context.Context, dest driver.Destination, subscription string) (n uint64, err error) {
	op := "count the messages of " + dest.String()
	err = d.eachPlace(ctx, dest, subscription, func(_ context.Context, _ *caller, p *place) error {
		n += uint64(p.end - p.next) //nolint:gosec // not below 0
		return nil
	})
	if err != nil {
		return 0, wrapOnce(op, err)
	}
	return n, nil
}

// Purge implements [driver.Admin]. RocketMQ can only pass messages over: a group is made to stand behind them. It
// must have no consumers then, or they must have consumed all.
func (d *rocketDriver) Purge(ctx context.Context, dest driver.Destination) (n uint64, err error) {
	err = d.eachPlace(ctx, dest, "", func(ctx context.Context, a *caller, p *place) error {
		if err := p.awaitConsumers(ctx, a); err != nil || p.next == p.end {
			return err
		}
		if err := a.ensureGroup(ctx, p.conn, p.group); err != nil {
			return err
		}
		n += uint64(p.end - p.next) //nolint:gosec // not below 0
		return a.saveOffset(ctx, &p.queue, p.group, p.end)
	})
	if err != nil {
		return 0, wrapOnce("purge "+dest.String(), err)
	}
	return n, nil
}

// awaitConsumers lets consumers, if there are any, say that they have consumed all, for which they may need a moment.
func (p *place) awaitConsumers(ctx context.Context, a *caller) error {
	const patience = 10
	for tried := 0; p.next != p.end; tried++ {
		members, err := a.membersOf(ctx, p.conn, p.group)
		switch {
		case err != nil || len(members) == 0:
			return err
		case tried == patience || ctx.Err() != nil:
			return driver.Errorf(driver.ClassUnsupported, "", "close the consumers first",
				"RocketMQ passes over no messages of a group with consumers, and %s has %d", p.group, len(members))
		}
		select {
		case <-time.After(saveEvery):
		case <-ctx.Done():
		}
		if err := p.find(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// eachPlace calls f for the groups of a destination, or of one subscription, in each of their queues.
func (d *rocketDriver) eachPlace(
	ctx context.Context, dest driver.Destination, subscription string, f func(context.Context, *caller, *place) error,
) error {
	topic, err := d.cfg.topicName(dest)
	if err != nil {
		return err
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	a := d.cfg.newCaller()
	ns, err := d.nameServer(ctx)
	if err != nil {
		return err
	}
	r, err := d.lookUp(ctx, a, ns, topic)
	ns.close()
	if err != nil {
		return err
	}
	for _, b := range r.brokers {
		conn, err := d.dial(ctx, b.addr, nil)
		if err != nil {
			return err
		}
		err = d.eachPlaceOn(ctx, a, conn, topic, &b, dest, subscription, f)
		conn.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *rocketDriver) eachPlaceOn(
	ctx context.Context, a *caller, conn *conn, topic string, b *routeBroker, dest driver.Destination, subscription string,
	f func(context.Context, *caller, *place) error,
) error {
	groups, err := d.groupsOf(ctx, a, conn, topic, dest, subscription)
	if err != nil {
		return err
	}
	for _, m := range groups {
		queues := []queueID{{wire.RetryPrefix + m.group, b.name, 0}}
		for n := range b.read {
			queues = append(queues, queueID{topic, b.name, n})
		}
		for _, id := range queues {
			p := place{queue: queue{queueID: id, conn: conn}, membership: m}
			if err := p.find(ctx, a); err != nil {
				return err
			}
			if err := f(ctx, a, &p); err != nil {
				return err
			}
		}
	}
	return nil
}

// find asks where the group stands, and where the queue ends.
func (p *place) find(ctx context.Context, a *caller) error {
	offset, found, err := a.savedOffset(ctx, &p.queue, p.group)
	retry := strings.HasPrefix(p.topic, wire.RetryPrefix)
	if err != nil {
		if retry && driver.ClassOf(err) == driver.ClassNotFound {
			return nil // nothing was ever given back
		}
		return err
	}
	first, err := a.limitOffset(ctx, &p.queue, wire.ReqGetMinOffset)
	if err != nil {
		return err
	}
	if p.end, err = a.limitOffset(ctx, &p.queue, wire.ReqGetMaxOffset); err != nil {
		return err
	}
	switch {
	case found:
		p.next = min(max(offset, first), p.end) // with the features of the broker removed is not there
	case p.fromNext && !retry:
		p.next = p.end
	default:
		p.next = first
	}
	return nil
}

// groupsOf returns the groups that make a destination, or a subscription of it, on one broker.
func (d *rocketDriver) groupsOf(
	ctx context.Context, a *caller, conn *conn, topic string, dest driver.Destination, subscription string,
) ([]membership, error) {
	if dest.Kind == driver.Queue || d.cfg.Options.Group != "" {
		return []membership{d.cfg.membershipOf(&driver.ConsumerSpec{Destination: dest}, "")}, nil
	}
	const op = "list the groups of a topic"
	r, err := a.must(ctx, conn, op, wire.ReqQueryTopicConsumeByWho, []field{{"topic", topic}}, nil)
	if err != nil {
		return nil, err
	}
	var list wire.Groups
	if err := wire.UnmarshalJSON(r.Body, &list); err != nil {
		return nil, driver.Errorf(driver.ClassProtocol, op, lookAtBroker, "read the broker's answer: %w", err)
	}
	var groups []membership
	queueGroup := d.cfg.membershipOf(&driver.ConsumerSpec{Destination: driver.Destination{Name: dest.Name}}, "").group
	for _, group := range slices.Compact(slices.Sorted(slices.Values(list.Groups))) {
		if group != queueGroup && (subscription == "" || d.cfg.isOfSubscription(group, dest.Name, subscription)) {
			groups = append(groups, membership{group: group, fromNext: d.cfg.Options.From != fromFirst})
		}
	}
	return groups, nil
}

// isOfSubscription reports whether a group is one of a subscription, with any client ID, see [config.membershipOf].
func (c *config) isOfSubscription(group, topic, subscription string) bool {
	rest, ok := strings.CutPrefix(group, c.inNamespace("perfmq-sub-"+topic+"-"))
	return ok && (rest == subscription || strings.HasSuffix(rest, "-"+subscription))
}
