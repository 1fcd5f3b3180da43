package amqp

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sender is the sending end of a link: it sends no delivery beyond the link's credit, and no frame beyond the window of
// the session. Only one goroutine at a time sends.
type sender struct {
	link
	creditWait *driver.Meter // waits for credit or a window
	socket     *driver.Meter // waits for the connection to take more
	granted    chan struct{} // there may be credit and a window
	stopped    chan struct{} // closed when nothing more can be sent
	why        error         // the reason for stopped; guarded by session.mu until stopped is closed
	tag        [4]byte
}

func newSender(creditWait, socket *driver.Meter) sender {
	return sender{creditWait: creditWait, socket: socket, granted: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// wake implements owner.
func (l *sender) wake() { transport.Notify(l.granted) }

// stop ends sending. Only the first reason counts.
func (l *sender) stop(why error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.halt(why)
}

// halt is stop with the session's lock held.
func (l *sender) halt(why error) {
	if l.why == nil {
		l.why = why
		close(l.stopped)
	}
}

// maySend reports whether a frame may be sent; first: it begins a delivery. The session's lock is held.
func (l *sender) maySend(first bool) bool {
	return l.why == nil && l.s.room > 0 && (!first || l.credit > 0)
}

// lock waits until a frame may be sent; first: it begins a delivery. It returns the buffer to append to, with the locks
// of output and session: unlock has to follow.
func (l *sender) lock(ctx context.Context, first bool) ([]byte, error) {
	out, s := l.s.c.Out, l.s
	for {
		b, err := out.Lock(ctx, l.socket)
		s.mu.Lock()
		if err == nil && l.maySend(first) {
			return b, nil
		}
		why := l.why
		s.mu.Unlock()
		if err == nil {
			out.Unlock(b, false) // earlier messages need not wait for this one
		}
		switch {
		case why != nil:
			return nil, why
		case err != nil && ctx.Err() != nil:
			return nil, err
		}
		err = nil // if the connection has ended, the reader knows the reason
		l.creditWait.Begin()
		select {
		case <-l.granted:
		case <-l.stopped:
		case <-ctx.Done():
			err = fmt.Errorf("the broker granted no credit to send: %w", ctx.Err())
		}
		l.creditWait.End()
		if err != nil {
			return nil, err
		}
	}
}

func (l *sender) unlock(b []byte, more bool) {
	l.s.mu.Unlock()
	l.s.c.Out.Unlock(b, more)
}

// beginDelivery returns the head of the next delivery, valid until the next call.
func (l *sender) beginDelivery(settled bool, state []byte) wire.Transfer {
	id := l.s.nextID
	l.s.nextID++
	l.deliveryCount++
	l.credit--
	binary.BigEndian.PutUint32(l.tag[:], id)
	return wire.Transfer{
		Handle: l.handle, DeliveryID: wire.Some(id), DeliveryTag: l.tag[:], MessageFormat: wire.Some[uint32](0),
		Settled: settled, State: state,
	}
}

// endFrame ends the frame that begins at b[at].
func (l *sender) endFrame(b []byte, at int) {
	wire.EndFrame(b, at)
	l.s.nextOut++
	l.s.room--
}

// request sends a message of one frame, once there is credit for it; sent receives its delivery ID before it leaves.
// With more, another frame or a flush follows at once.
func (l *sender) request(ctx context.Context, message []byte, settled, more bool, sent func(id uint32)) error {
	b, err := l.lock(ctx, true)
	if err != nil {
		return err
	}
	head := l.beginDelivery(settled, nil)
	sent(head.DeliveryID.V)
	at := len(b)
	b = append(head.AppendHead(b, l.s.channel), message...)
	l.endFrame(b, at)
	l.unlock(b, more)
	return nil
}
