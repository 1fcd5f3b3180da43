package amqp

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// onAttach attaches a link, or refuses it with an attach without terminus and a detach (Transport, section 2.6.3).
func (s *session) onAttach(f *wire.Decoder) error {
	var a wire.Attach
	if err := a.Decode(f); err != nil {
		return failDecode(err)
	}
	if a.Handle > ourHandleMax {
		return fail(wire.CondFraming, "handle %d is beyond the highest one", a.Handle)
	}
	if s.in[a.Handle] != nil || s.out[a.Handle] != nil {
		return fail(wire.CondHandleInUse, "handle %d is attached", a.Handle)
	}
	if !s.c.account.Take(linkSize) {
		return fail(wire.CondResourceLimit, "%v", store.ErrNoMemory)
	}
	s.c.flush()
	if a.Role == wire.RoleReceiver {
		return s.attachOut(&a)
	}
	return s.attachIn(&a)
}

// answerAttach sends our attach: a with the opposite role. Receivers settle first, whatever is asked for.
func (s *session) answerAttach(a *wire.Attach) {
	answer := wire.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role, SenderSettleMode: a.SenderSettleMode, Source: a.Source,
		Target: a.Target, MaxMessageSize: uint64(s.c.srv.MaxMessage), //nolint:gosec // above zero
	}
	if source := &answer.Source; source.Kind == wire.DescSource {
		source.DistributionMode = ""
		source.Outcomes = []string{
			"amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list",
		}
	}
	if answer.Target.Kind == wire.DescCoordinator {
		answer.Target.Capabilities = []string{wire.TxnLocal, wire.TxnMultiPerSession}
	}
	if a.Role == wire.RoleReceiver {
		answer.InitialDeliveryCount = wire.Some[uint32](0)
	}
	s.c.send(func(b []byte) []byte { return answer.AppendFrame(b, s.channel) })
}

// attachIn attaches a link of a sending peer.
func (s *session) attachIn(a *wire.Attach) error {
	l := &inLink{
		s: s, handle: a.Handle, count: a.InitialDeliveryCount.V, source: s.c.srv.Store.NewSource(),
	}
	refused := l.open(&a.Target)
	if refused != nil {
		a.Target = wire.Terminus{}
	}
	s.in[a.Handle] = l
	s.answerAttach(a)
	if refused != nil {
		l.detach(refused)
		return nil
	}
	l.needCredit()
	return nil
}

// open opens the link's target, and sets t to it.
func (l *inLink) open(t *wire.Terminus) (refused *wire.Error) {
	switch {
	case t.Kind == wire.DescCoordinator:
		l.coordinator = true
	case t.Dynamic:
		l.own, refused = l.s.temporary(t)
		l.dest = l.own
	case t.Kind != wire.DescTarget:
		return failAddress()
	case t.Address.V == "":
		l.anonymous = true
	default:
		addr := addressOf(t)
		var err error
		if l.dest, err = l.s.c.srv.Store.Open(addr); err != nil {
			return cannotOpen(addr, err)
		}
	}
	return refused
}

// temporary creates the temporary queue of a dynamic terminus, and sets the address of t to it.
func (s *session) temporary(t *wire.Terminus) (*store.Destination, *wire.Error) {
	if hasCapability(t, capTemporaryTopic) {
		return nil, fail(wire.CondNotImplemented, "there are no temporary topics")
	}
	d, err := s.c.srv.Store.Temporary()
	if err != nil {
		return nil, cannotOpen(driver.Destination{}, err)
	}
	t.Address = wire.Some(d.Address().Name)
	return d, nil
}

// attachOut attaches a link of a receiving peer.
func (s *session) attachOut(a *wire.Attach) error {
	l := &outLink{
		s: s, handle: a.Handle, settled: a.SenderSettleMode == wire.SenderSettled,
	}
	if a.SenderSettleMode == wire.SenderMixed {
		a.SenderSettleMode = wire.SenderUnsettled
	}
	refused := l.open(a)
	s.out[a.Handle] = l
	if refused != nil {
		l.deleteOwn()
		a.Source = wire.Terminus{}
		l.detached, l.closed = true, true
	}
	s.answerAttach(a)
	if refused != nil {
		s.detach(a.Handle, true, refused)
	}
	return nil
}

// open opens the link's source, and sets the source of a to it.
func (l *outLink) open(a *wire.Attach) (refused *wire.Error) {
	t := &a.Source
	if t.Dynamic {
		if l.own, refused = l.s.temporary(t); refused != nil {
			return refused
		}
	}
	addr := addressOf(t)
	switch {
	case t.Kind != wire.DescSource || t.Address.V == "":
		return failAddress()
	case t.DistributionMode == wire.DistributionCopy && addr.Kind == driver.Queue:
		// JMS clients ask for copies of topics, where every subscriber gets one
		return fail(wire.CondNotImplemented, "queues cannot be browsed")
	}
	filter, err := selector.Parse(t.Selector.V)
	if err != nil {
		refused = fail(wire.CondInvalidField, "%v", err)
		refused.Info = info("invalid-field", "filter") // JMS mapping
		return refused
	}
	notify := func() { l.s.c.makeReady(l) }
	if addr.Kind == driver.Topic {
		return l.subscribe(a, addr.Name, filter, notify)
	}
	if l.consumer, err = l.s.c.srv.Store.ConsumeQueue(addr.Name, filter, notify); err != nil {
		return cannotOpen(addr, err)
	}
	return nil
}

// Capabilities of a terminus.
const (
	capTopic          = "topic"
	capTemporaryTopic = "temporary-topic"
	capShared         = "shared"
	capGlobal         = "global"
)

func hasCapability(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}

// addressOf returns the address of a terminus: its prefix decides the kind, else its capabilities.
func addressOf(t *wire.Terminus) driver.Destination {
	if a, ok := store.ParseAddress(t.Address.V); ok && a.Name != "" {
		return a
	}
	a := driver.Destination{Name: t.Address.V}
	if hasCapability(t, capTopic) {
		a.Kind = driver.Topic
	}
	return a
}

// subscriptionKey is the name of a subscription in the store. container is empty for global subscriptions.
func subscriptionKey(container, link string, durable bool) string {
	name, _, _ := strings.Cut(link, "|")
	key := "amqp:"
	if !durable {
		key += "volatile:"
	}
	if container == "" {
		return key + name
	}
	return key + container + ":" + name
}

// subscribe makes the link a consumer of a subscription.
func (l *outLink) subscribe(a *wire.Attach, topic string, filter store.Filter, notify func()) *wire.Error {
	t := &a.Source
	s := l.s.c.srv.Store
	shared := hasCapability(t, capShared)
	wanted := store.Subscription{
		Durable: t.ExpiryPolicy == wire.ExpireNever, Exclusive: !shared, Selector: t.Selector.V, Filter: filter,
	}
	if wanted.Durable || shared {
		container := l.s.c.container
		if hasCapability(t, capGlobal) {
			container = ""
		}
		wanted.Name = subscriptionKey(container, a.Name, wanted.Durable)
	}
	var err error
	if old := s.FindSubscription(wanted.Name); wanted.Name != "" && old != nil && old.Topic() != topic {
		err = old.Remove() // or it would fill, and hold up the senders of its topic
	}
	if err == nil {
		l.consumer, err = s.Subscribe(topic, wanted, notify)
	}
	if err != nil {
		return cannotOpen(driver.Destination{Kind: driver.Topic, Name: topic}, err)
	}
	if wanted.Durable {
		l.sub = l.consumer.Queue()
	}
	return nil
}
