package stomp

import (
	"context"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Close implements [driver.Consumer].
func (k *consumer) Close(ctx context.Context) error {
	if k.closed {
		return nil
	}
	k.closed = true
	k.giveBack()
	var err error
	if !k.conn.Dead() {
		err = k.unsubscribe(ctx)
	} else {
		k.share(-1)
		if k.sub.remove != nil {
			err = driver.Errorf(driver.ClassConnectionLost, "", "remove it on the broker",
				"the connection has ended: the durable subscription could not be removed")
		}
	}
	delist(k.conn, &k.conn.consumers, k.id)
	err = transport.Explain("close the consumer: "+k.op, err)
	k.quit(ctx)
	return err
}

// ended reports whether Close was called.
func (k *consumer) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == stateClosed
}

// giveBack lets go of messages that were received but not delivered.
func (k *consumer) giveBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sub.returns {
		for _, list := range [][]heldMessage{k.left, k.held} {
			for i := range list {
				k.put(wire.NACK, list[i].ack())
			}
		}
	}
	k.conn.out.Flush()
	k.held, k.taken, k.left, k.bytes, k.state = nil, nil, nil, 0, stateClosed
	notify(k.unheld)
}

// unsubscribe ends the subscription and removes it, if it is to be removed and no other consumer uses it.
func (k *consumer) unsubscribe(ctx context.Context) error {
	remove := k.sub.remove
	if k.sub.last != "" {
		leaving := k.conn.driver.leaving
		select {
		case leaving <- struct{}{}:
			defer func() { <-leaving }()
		case <-ctx.Done():
			k.share(-1)
			return driver.Errorf(driver.ClassTimeout, "", "remove it on the broker",
				"the subscription may have stayed behind, waiting for its other consumers to leave: %w", ctx.Err())
		}
		if k.share(-1) > 0 {
			remove = nil
		}
	}
	atOnce := k.conn.dialect == rabbitmq && remove != nil
	if !atOnce {
		if err := k.conn.request(ctx, wire.NewFrame(wire.UNSUBSCRIBE, k.sub.end...)); err != nil {
			return err
		}
	}
	switch {
	case remove == nil:
		return nil
	case k.sub.removeAs != "":
		return k.removeAs(ctx, remove)
	default:
		return k.conn.request(ctx, wire.NewFrame(wire.UNSUBSCRIBE, remove...))
	}
}

// removeAs removes a subscription that belongs to another client identity, by a connection under that identity.
func (k *consumer) removeAs(ctx context.Context, headers []string) error {
	l, err := k.conn.driver.acquire(ctx, driver.Connection{Key: "\x00remove " + k.sub.removeAs, ClientID: k.sub.removeAs})
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	return l.Conn.request(ctx, wire.NewFrame(wire.UNSUBSCRIBE, headers...))
}
