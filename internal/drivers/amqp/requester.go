package amqp

import (
	"context"
	"fmt"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// requester is a sending link for requests to the broker itself: to its coordinator of transactions, or its
// management node. Delivery IDs are the session's: next gives them out, with the session's lock held.
type requester struct {
	s       *session
	link    link
	next    func() uint32
	granted chan struct{}
	err     error // why no more can be sent; guarded by session.mu
}

// control is the owner of a link that is neither a producer's nor a consumer's.
type control interface {
	wake()                                       // credit may have come
	settle(first, last uint32, state wire.State) // new state of deliveries
	abandon(why error)                           // nothing more comes
}

// wake implements control.
func (r *requester) wake() {
	select {
	case r.granted <- struct{}{}:
	default:
	}
}

// end notes that nothing more can be sent.
func (r *requester) end(why error) {
	if why == nil {
		why = transport.ErrClosed
	}
	r.s.mu.Lock()
	if r.err == nil {
		r.err = why
	}
	r.s.mu.Unlock()
	r.wake()
}

// send sends a message of one frame, once there is credit for it; sent is told its delivery ID, with the session's
// lock held. With more, something else follows at once, or a flush.
func (r *requester) send(
	ctx context.Context, meter *driver.Meter, message []byte, settled, more bool, sent func(id uint32),
) error {
	c, s := r.s.c, r.s
	for {
		if err := r.awaitCredit(ctx, meter); err != nil {
			return err
		}
		b, err := c.out.Lock(ctx, meter)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if r.err != nil || r.link.credit == 0 || s.room == 0 { // taken back meanwhile
			s.mu.Unlock()
			c.out.Unlock(b, false)
			continue
		}
		r.link.deliveryCount++
		r.link.credit--
		s.nextOut++
		s.room--
		id := r.next()
		sent(id)
		tag := [4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
		head := wire.Transfer{
			Handle: r.link.handle, DeliveryID: wire.Some(id), DeliveryTag: tag[:], MessageFormat: wire.Some[uint32](0),
			Settled: settled,
		}
		at := len(b)
		b = append(head.AppendHead(b, s.channel), message...)
		wire.EndFrame(b, at)
		s.mu.Unlock()
		c.out.Unlock(b, more)
		return nil
	}
}

func (r *requester) awaitCredit(ctx context.Context, meter *driver.Meter) error {
	for first := true; ; first = false {
		r.s.mu.Lock()
		ok, err := r.link.credit > 0 && r.s.room > 0, r.err
		r.s.mu.Unlock()
		if ok || err != nil {
			return err
		}
		if first {
			r.s.c.out.Flush()
			meter.Begin()
			defer meter.End()
		}
		select {
		case <-r.granted:
		case <-ctx.Done():
			return fmt.Errorf("the broker takes no request: %w", ctx.Err())
		}
	}
}
