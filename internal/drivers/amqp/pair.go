package amqp

import (
	"context"
	"errors"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// pair is a link each way to a node of the broker that answers requests, in a session of its own. It allows one request
// at a time, and cannot be used after a failed request: so an answer is never taken for the answer to a later request.
type pair struct {
	sender
	in      link
	answers chan []byte // messages
}

// errRefused reports a request that the broker did not accept.
var errRefused = errors.New("the broker does not take the request")

// openPair attaches the two links, the link for answers first: requests may contain its address, and it must have
// credit before the first request.
func (c *connection) openPair(ctx context.Context, in, out wire.Attach) (*pair, error) {
	s, err := c.beginSession(ctx, true)
	if err != nil {
		return nil, err
	}
	meter := driver.NewMeter()
	p := &pair{sender: newSender(meter, meter), answers: make(chan []byte, 1)}
	p.s, p.owner = s, p
	p.in.handle, p.in.reply = 1, p.give
	in.Name, in.Role, in.SenderSettleMode = "perfmq-management", wire.RoleReceiver, wire.SenderSettled
	out.Name, out.Role, out.InitialDeliveryCount = in.Name, wire.RoleSender, wire.Some[uint32](0)
	if err = s.attach(ctx, &p.in, &in); err == nil {
		flow := s.flowState()
		flow.Handle, flow.DeliveryCount = wire.Some(p.in.handle), wire.Some[uint32](0)
		flow.LinkCredit = wire.Some[uint32](1 << 30)
		err = c.Put(func(b []byte) []byte { return flow.AppendFrame(b, s.channel) })
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

// settle implements owner: only an accepted request gets an answer.
func (p *pair) settle(_, _ uint32, state wire.State) {
	if state.Kind != wire.DescAccepted {
		p.stop(errRefused)
	}
}

// abandon implements owner.
func (p *pair) abandon(why error) { p.stop(why) }

// give passes an answer to the waiting request. The reader calls it.
func (p *pair) give(answer []byte) error {
	select {
	case p.answers <- answer:
		return nil
	default:
		return unexpected("answer", 0)
	}
}

// ask sends a request and waits for the answer.
func (p *pair) ask(ctx context.Context, request []byte, settled bool) (m wire.Message, err error) {
	if err := p.request(ctx, request, settled, false, func(uint32) {}); err != nil {
		return m, err
	}
	select {
	case answer := <-p.answers:
		if err := m.Decode(answer); err != nil {
			return m, unreadable("an answer", err)
		}
		return m, nil
	case <-p.stopped:
		return m, p.why
	case <-ctx.Done():
		return m, ctx.Err()
	}
}
