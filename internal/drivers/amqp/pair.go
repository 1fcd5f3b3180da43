package amqp

import (
	"context"
	"errors"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// node is a node of the broker that answers requests: the management of RabbitMQ 4 or Artemis, or Azure's for tokens.
// It allows one request at a time, and is safe for concurrent use.
type node struct {
	address string
	mu      sync.Mutex
	pair    *pair  // nil when there is none
	last    uint64 // number of the last request
}

// nodeTries bounds the requests when RabbitMQ ends the session because it has not yet seen our credit for its answer.
const nodeTries = 5

// ask sends a request with these properties and further sections, and waits for the answer.
func (n *node) ask(
	ctx context.Context, c *connection, properties wire.Properties, sections []byte,
) (answer wire.Message, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for try := 1; ; try++ {
		if n.pair == nil {
			n.pair, err = c.openPair(ctx, n.address)
		}
		if err == nil {
			n.last++
			properties.MessageID, properties.ReplyTo = wire.AppendUlong(nil, n.last), n.pair.replyTo
			answer, err = n.pair.ask(ctx, append(properties.AppendSection(nil), sections...))
		}
		if err == nil && n.pair.settled {
			err = answers(&answer, n.last)
		}
		if err == nil {
			return answer, nil
		}
		if n.pair != nil {
			n.pair.s.close(ctx)
			n.pair = nil
		}
		if try == nodeTries || conditionOf(err) != wire.CondPrecondition {
			return answer, err
		}
	}
}

// answers checks that RabbitMQ's answer is the one to the request with that number.
func answers(m *wire.Message, number uint64) error {
	var properties wire.Properties
	if err := properties.Decode(m.Properties); err != nil {
		return unreadable("an answer", err)
	}
	id := wire.NewDecoder(properties.CorrelationID)
	if n, _ := id.Integer(); n != int64(number) { //nolint:gosec // counted from 1
		return unexpected("answer to request", n)
	}
	return nil
}

// pair is a link each way to a node, in a session of its own. It cannot be used after a failed request: so an answer is
// never taken for the answer to a later request.
type pair struct {
	sender
	in      link
	answers chan []byte // messages
	replyTo []byte      // the address of in
	settled bool        // requests are sent settled
}

// errRefused reports a request that the broker did not accept.
var errRefused = errors.New("the broker does not take the request")

// openPair attaches the two links, the link for answers first: requests may contain its address, and it must have
// credit before the first request.
func (c *connection) openPair(ctx context.Context, node string) (*pair, error) {
	const name = "perfmq-management"
	in := wire.Attach{
		Name: name, Role: wire.RoleReceiver, SenderSettleMode: wire.SenderSettled,
		Source: wire.Terminus{Kind: wire.DescSource, Dynamic: true}, Target: wire.Terminus{Kind: wire.DescTarget},
	}
	out := wire.Attach{
		Name: name, Role: wire.RoleSender, InitialDeliveryCount: wire.Some[uint32](0),
		Source: wire.Terminus{Kind: wire.DescSource},
		Target: wire.Terminus{Kind: wire.DescTarget, Address: wire.Some(node)},
	}
	if node == cbsNode {
		in.Source, in.Target.Address = wire.Terminus{Kind: wire.DescSource, Address: wire.Some(node)}, wire.Some(name)
		in.SenderSettleMode = wire.SenderMixed
	}
	if c.dialect == rabbitmq {
		paired := wire.AppendBool(wire.AppendSymbol(wire.BeginMap(nil), "paired"), true)
		wire.EndCompound(paired, 0, 2)
		at := wire.Some("/management")
		in.Source, in.Target.Address, in.Properties = wire.Terminus{Kind: wire.DescSource, Address: at}, at, paired
		out.Source.Address, out.Target.Address, out.Properties = at, at, paired
		out.SenderSettleMode = wire.SenderSettled
	}
	s, err := c.beginSession(ctx, true)
	if err != nil {
		return nil, err
	}
	meter := driver.NewMeter()
	p := &pair{sender: newSender(meter, meter), answers: make(chan []byte, 1), settled: c.dialect == rabbitmq}
	p.s, p.owner = s, p
	p.in.handle, p.in.reply = 1, p.give
	if err = s.attach(ctx, &p.in, &in); err == nil {
		flow := s.flowState()
		flow.Handle, flow.DeliveryCount = wire.Some(p.in.handle), wire.Some[uint32](0)
		flow.LinkCredit = wire.Some[uint32](1 << 30)
		err = s.put(&flow)
	}
	if err == nil {
		err = s.attach(ctx, &p.link, &out)
	}
	if err != nil {
		s.close(ctx)
		return nil, err
	}
	switch p.replyTo = []byte(p.in.peer.Source.Address.V); {
	case p.settled:
		p.replyTo = []byte("$me")
	case node == cbsNode:
		p.replyTo = []byte(name)
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
func (p *pair) ask(ctx context.Context, request []byte) (m wire.Message, err error) {
	if err := p.request(ctx, request, p.settled, false, func(uint32) {}); err != nil {
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
