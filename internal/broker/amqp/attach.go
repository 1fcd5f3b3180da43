package amqp

import (
	"errors"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// onAttach attaches a link, or refuses it: with an answer that lacks the terminus, and a detach (Transport, section 2.6.3).
func (s *session) onAttach(f fields) error {
	a := f.attach()
	if f.bad {
		return fail(condDecode, "attach")
	}
	if s.ended {
		return nil
	}
	if a.handle > ourHandleMax {
		return fail(condFraming, "handle %d is beyond the highest one", a.handle)
	}
	if in, out := s.link(a.handle); in != nil || out != nil {
		return failSession(condHandleInUse, "handle %d is attached", a.handle)
	}
	if !s.admit(&a) {
		return failSession(condResourceLimit, "%v", store.ErrNoMemory)
	}
	s.c.flush()
	if a.receiver {
		return s.attachOut(&a)
	}
	return s.attachIn(&a)
}

// admit counts a link, and what the list grows by in which it is found by its handle.
func (s *session) admit(a *attach) bool {
	length := len(s.in)
	if a.receiver {
		length = len(s.out)
	}
	const pointer = 8
	growth := pointer * max(0, int64(a.handle)+1-int64(length))
	if !s.c.account.Take(linkSize + growth) {
		return false
	}
	s.listed += growth
	return true
}

// put returns the list with l at a handle.
func put[L any](list []*L, handle uint32, l *L) []*L {
	for int64(handle) >= int64(len(list)) {
		list = append(list, nil)
	}
	list[handle] = l
	return list
}

// answerAttach sends our attach: that of a with the roles changed.
func (s *session) answerAttach(a *attach) {
	s.c.send(func(b []byte) []byte {
		b, frame := beginFrame(b, frameAMQP, s.channel)
		b, at := beginDescribed(b, descAttach)
		b = appendBool(appendUint(appendStr(b, a.name), a.handle), !a.receiver)
		b = append(b, codeUbyte, a.sendMode, codeUbyte, a.receiveMode)
		b = appendTerminus(appendTerminus(b, &a.source), &a.target)
		b = appendNull(appendNull(b)) // unsettled, incomplete
		if a.receiver {
			b = appendUint(b, 0) // our delivery count
		} else {
			b = appendNull(b)
		}
		b = appendUlong(b, uint64(s.c.srv.opts.MaxMessage)) //nolint:gosec // above zero
		return finishFrame(finish(b, at, 11), frame)
	})
}

// attachIn attaches a link over which the peer sends.
func (s *session) attachIn(a *attach) error {
	l := &inLink{
		s: s, handle: a.handle, second: a.receiveMode == receiveSecond, count: a.initialCount,
		source: s.c.srv.store.NewSource(),
	}
	switch t := &a.target; {
	case t.kind == descCoordinator:
		l.coordinator = true
	case t.kind == 0:
		s.in = put(s.in, a.handle, l)
		s.answerAttach(a)
		l.detach(fail(condInvalidField, "a link needs a target"))
		return nil
	case t.dynamic || t.hasAddress && t.address != "":
		addr, temporary := t.locate()
		var err error
		if l.dest, err = s.c.srv.store.Open(addr); err != nil {
			a.target = terminus{}
			s.in = put(s.in, a.handle, l)
			s.answerAttach(a)
			l.detach(cannotOpen(addr, err))
			return nil
		}
		if temporary {
			l.temporary = &addr
		}
	default:
		l.defaultKind = t.kindOf()
	}
	s.in = put(s.in, a.handle, l)
	s.answerAttach(a)
	l.grant()
	return nil
}

// attachOut attaches a link over which we send.
func (s *session) attachOut(a *attach) error {
	l := &outLink{s: s, handle: a.handle, settled: a.sendMode == sendSettled, fallback: outcome{kind: descReleased}}
	if a.sendMode == sendMixed {
		a.sendMode = sendUnsettled
	}
	refused, err := l.open(a)
	if err != nil {
		return err
	}
	s.out = put(s.out, a.handle, l)
	if refused != nil {
		a.source = terminus{}
		l.detached, l.closed = true, true
	}
	s.answerAttach(a)
	if refused != nil {
		s.c.send(func(b []byte) []byte { return appendDetach(b, s.channel, a.handle, true, refused) })
	}
	return nil
}

// open finds what the link is to receive from, and changes the source of a into what it is.
func (l *outLink) open(a *attach) (refused *failure, err error) {
	t := &a.source
	srv := l.s.c.srv
	switch {
	case t.kind == 0:
		return l.lookUp(a), nil
	case t.kind != descSource || !t.dynamic && t.address == "":
		return fail(condInvalidField, "a link needs a source with an address"), nil
	case t.copies && t.kindOf() == store.KindQueue: // JMS clients ask for copies of topics, which all get anyway
		return fail(condNotImplemented, "queues cannot be browsed"), nil
	}
	if t.settles != nil {
		o, ok := readOutcome(t.settles)
		if !ok || !o.terminal() {
			return nil, fail(condDecode, "a malformed default outcome")
		}
		l.fallback = o
	}
	text, filter, refused := t.selector()
	if refused != nil {
		return refused, nil
	}
	addr, temporary := t.locate()
	if _, err := srv.store.Open(addr); err != nil {
		return cannotOpen(addr, err), nil
	}
	if temporary {
		l.temporary = &addr
	}
	notify := func() { l.s.c.makeReady(l) }
	if addr.Kind == store.KindTopic {
		return l.subscribe(a, addr.Name, text, filter, notify), nil
	}
	l.consumer, err = srv.store.Queue(addr.Name).Consume(filter, notify)
	switch {
	case errors.Is(err, store.ErrNoMemory):
		return cannotOpen(addr, err), nil
	case err != nil:
		return fail(condNotFound, "%s: %v", addr, err), nil
	}
	return nil, nil
}

// selector returns the selector among the filters, and leaves only it among them.
func (t *terminus) selector() (text string, filter store.Filter, refused *failure) {
	honoured := t.filters[:0]
	for _, f := range t.filters {
		if f.descriptor != descSelector && (f.descriptor != 0 || f.name != selectorFilter) {
			continue
		}
		var err error
		if filter, err = selector.Parse(f.text); err != nil {
			refused = fail(condInvalidField, "%v", err)
			refused.field = "filter"
			return "", nil, refused
		}
		text = f.text
		honoured = append(honoured, f)
	}
	t.filters = honoured
	return text, filter, nil
}

// lookUp shows a durable subscription without consuming from it.
func (l *outLink) lookUp(a *attach) *failure {
	sub := l.s.c.srv.findSub(l.s.c.container, a.name)
	if sub == nil {
		return fail(condNotFound, "there is no subscription %q", a.name)
	}
	l.sub = sub
	a.source = terminus{
		kind: descSource, address: sub.topic, hasAddress: true, durability: unsettledState, expiry: expireNever,
		capabilities: []string{capTopic},
	}
	if sub.shared {
		a.source.capabilities = append(a.source.capabilities, capShared)
	}
	return nil
}

// subscribe makes the link a consumer of a subscription.
func (l *outLink) subscribe(a *attach, topic, text string, filter store.Filter, notify func()) *failure {
	t := &a.source
	srv := l.s.c.srv
	wanted := store.Subscription{Durable: t.expiry == expireNever, Selector: text, Filter: filter}
	shared := t.can(capShared)
	var err error
	if !wanted.Durable && !shared {
		l.consumer, err = srv.store.Subscribe(topic, wanted, notify)
	} else {
		container := l.s.c.container
		if t.can(capGlobal) {
			container = ""
		}
		wanted.Name = subscriptionKey(container, a.name, wanted.Durable)
		l.sub, l.consumer, err = srv.joinSub(topic, wanted, shared, notify)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrInUse):
		return fail(condResourceLocked, "the subscription %q is in use", a.name)
	case errors.Is(err, store.ErrNoMemory), errors.Is(err, store.ErrLongName):
		return cannotOpen(store.Address{Kind: store.KindTopic, Name: topic}, err)
	default:
		return fail(condInternal, "subscribe to %q: %v", topic, err)
	}
}
