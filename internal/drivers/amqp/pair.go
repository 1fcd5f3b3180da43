package amqp

import (
	"context"
	"errors"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// pair is a link each way to a node of the broker that answers requests, in a session of its own. One request is under
// way at a time, and a pair whose request did not end well is of no use any more: an answer is never taken for the
// answer to a later request.
type pair struct {
	sender
	in      link
	answers chan answer
}

// answer is a message, or why there is none.
type answer struct {
	payload []byte
	err     error
}

// errRefused is the error of a request that the broker did not accept.
var errRefused = errors.New("the broker does not take the request")

// openPair attaches the two links, that for answers first: its address may be in the requests, and its credit is to be
// there before a request is.
func (c *connection) openPair(ctx context.Context, in, out wire.Attach) (*pair, error) {
	s, err := c.beginSession(ctx, true)
	if err != nil {
		return nil, err
	}
	meter := driver.NewMeter()
	p := &pair{sender: newSender(meter, meter), answers: make(chan answer, 1)}
	p.s, p.owner = s, p
	p.in.handle, p.in.reply = 1, func(payload []byte) error { return p.give(answer{payload: payload}) }
	in.Name, in.Role, in.SenderSettleMode = "perfmq-management", wire.RoleReceiver, wire.SenderSettled
	out.Name, out.Role, out.InitialDeliveryCount = in.Name, wire.RoleSender, wire.Some[uint32](0)
	if err = s.attach(ctx, &p.in, &in); err == nil {
		flow := s.flowState()
		flow.Handle, flow.DeliveryCount = wire.Some(p.in.handle), wire.Some[uint32](0)
		flow.LinkCredit = wire.Some[uint32](1 << 30)
		err = c.put(func(b []byte) []byte { return flow.AppendFrame(b, s.channel) })
	}
	if err == nil {
		err = s.attach(ctx, &p.link, &out)
	}
	if err != nil {
		s.close(ctx)
		return nil, err
	}
	return p, nil
}

// settle implements owner: to an accepted request there is an answer.
func (p *pair) settle(_, _ uint32, state wire.State) {
	if state.Kind != wire.DescAccepted {
		_ = p.give(answer{err: errRefused}) // once is enough
	}
}

// abandon implements owner.
func (p *pair) abandon(why error) { p.stop(why) }

// give hands an answer to the request that waits for it. It is called by the reader.
func (p *pair) give(a answer) error {
	select {
	case p.answers <- a:
		return nil
	default:
		return protocolError("an answer to no request")
	}
}

// ask sends a request and waits for the answer.
func (p *pair) ask(ctx context.Context, request []byte, settled bool) (m wire.Message, err error) {
	if err := p.request(ctx, request, settled, false, func(uint32) {}); err != nil {
		return m, err
	}
	select {
	case a := <-p.answers:
		if a.err != nil {
			return m, a.err
		}
		if err := m.Decode(a.payload); err != nil {
			return m, protocolError("an answer that cannot be read: %w", err)
		}
		return m, nil
	case <-p.stopped:
		return m, p.why
	case <-ctx.Done():
		return m, ctx.Err()
	}
}
