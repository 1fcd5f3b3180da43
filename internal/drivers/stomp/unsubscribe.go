package stomp

import (
	"context"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
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
			err = protocol.LeftBehind("", driver.Errorf(driver.ClassConnectionLost, "", "", "the connection has ended"))
		}
	}
	delist(k.conn, &k.conn.consumers, k.id)
	err = transport.Explain("close the consumer: "+k.op, err)
	k.lease.Release(ctx)
	return err
}

// ended reports whether Close was called.
func (k *consumer) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == stateClosed
}

// giveBack returns messages that were received but not delivered.
func (k *consumer) giveBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sub.returns {
		for i := k.done; i < len(k.taken.list); i++ {
			k.put(wire.NACK, k.taken.message(i).ack, nil)
		}
		for i := range k.held.list {
			k.put(wire.NACK, k.held.message(i).ack, nil)
		}
	}
	k.conn.Out.Flush()
	k.held, k.taken, k.bytes, k.state = held{}, held{}, 0, stateClosed
	transport.Notify(k.unheld)
}

// unsubscribe ends the subscription, and removes it if it is to be removed and no other consumer uses it.
func (k *consumer) unsubscribe(ctx context.Context) error {
	c, remove := k.conn, k.sub.remove
	if k.sub.last != "" {
		select {
		case c.driver.leaving <- struct{}{}:
			defer func() { <-c.driver.leaving }()
		case <-ctx.Done():
			k.share(-1)
			return protocol.LeftBehind("", driver.Errorf(driver.ClassTimeout, "", "",
				"waiting for its other consumers to leave: %w", ctx.Err()))
		}
		if k.share(-1) > 0 {
			remove = nil
		}
	}
	if c.dialect != rabbitmq || remove == nil { // otherwise one frame does both
		if err := c.request(ctx, wire.UNSUBSCRIBE, "id", k.sub.id); err != nil || remove == nil {
			return err
		}
	}
	if as := k.sub.removeAs; as != "" { // over a connection with the identity that owns the subscription
		l, err := c.driver.acquire(ctx, driver.Connection{Key: "\x00remove " + as, ClientID: as})
		if err != nil {
			return err
		}
		defer l.Release(ctx)
		c = l.Conn
	}
	return c.request(ctx, wire.UNSUBSCRIBE, remove...)
}
