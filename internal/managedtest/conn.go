//go:build unix

package managedtest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

const (
	credit   = 100
	window   = 1<<31 - 1
	maxFrame = 64 << 10
	cbs      = "$cbs"
)

// conn is a client's connection. Its goroutine reads; it writes with the peer's lock.
type conn struct {
	net.Conn
	p          *Peer
	sessions   map[uint16]*session
	container  string
	tokens     bool            // the client is anonymous, and needs a token for each node
	authorized map[string]bool // nodes
}

type session struct {
	c         *conn
	channel   uint16
	links     map[uint32]*link
	in, out   uint32 // numbers of transfer frames
	nextID    uint32 // of deliveries
	unsettled map[uint32]*delivery
}

// link is a link with the client's handle.
type link struct {
	s       *session
	handle  uint32
	queue   string // of a link to the client
	topic   string // of one with a subscription that ends with it
	target  string // the key of the node of a link from the client
	count   uint32 // of deliveries
	credit  uint32
	partial []byte
	id      uint32 // of the delivery that partial belongs to
}

type delivery struct {
	l      *link
	m      *message
	number int // over all deliveries
}

// broken is the end of a connection for a reason that the client hears.
type broken struct{ condition, text string }

func (b broken) Error() string { return b.condition + ": " + b.text }

func (c *conn) serve() {
	defer func() {
		_ = c.Close()
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		delete(c.p.conns, c)
		for _, s := range c.sessions {
			s.end()
		}
		c.p.dispatch()
	}()
	r := wire.NewFrameReader(bufio.NewReaderSize(c.Conn, maxFrame), maxFrame)
	if !c.login(r) {
		return
	}
	for {
		f, err := r.Next()
		if err != nil {
			return
		}
		if len(f.Body) == 0 {
			continue
		}
		b, err := wire.ParseBody(f.Body)
		if err != nil {
			return
		}
		c.p.mu.Lock()
		err = c.handle(f.Channel, &b)
		c.p.dispatch()
		if bad, ok := err.(broken); ok { //nolint:errorlint // it is not wrapped
			c.p.truth.Violations = append(c.p.truth.Violations, bad.Error())
			c.put((&wire.End{Error: &wire.Error{Condition: bad.condition, Description: bad.text}}).AppendClose(nil))
		}
		c.p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// put writes. A client that does not read for long has failed.
func (c *conn) put(b []byte) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = c.Write(b)
}

// login is the SASL layer and the headers.
func (c *conn) login(r *wire.FrameReader) bool {
	if h, err := r.ReadProtocolHeader(); err != nil || string(h[:]) != wire.HeaderSASL {
		return false
	}
	c.put([]byte(wire.HeaderSASL))
	c.put((&wire.SASL{Kind: wire.DescMechanisms, Mechanisms: c.p.vendor.Mechanisms}).AppendFrame(nil))
	f, err := r.Next()
	if err != nil {
		return false
	}
	b, err := wire.ParseBody(f.Body)
	if err != nil {
		return false
	}
	init := wire.SASL{Kind: b.Kind}
	if init.Decode(&b.Fields) != nil || init.Kind != wire.DescInit {
		return false
	}
	plain := "\x00" + c.p.told.User + "\x00" + c.p.told.Password
	c.tokens = c.p.vendor.TakesTokens && init.Mechanism == "ANONYMOUS"
	if !c.tokens && (init.Mechanism != "PLAIN" || string(init.Data) != plain) {
		const badLogin = 1
		c.put((&wire.SASL{Kind: wire.DescOutcome, Code: badLogin}).AppendFrame(nil))
		return false
	}
	c.put((&wire.SASL{Kind: wire.DescOutcome, Code: wire.SASLOK}).AppendFrame(nil))
	if h, err := r.ReadProtocolHeader(); err != nil || string(h[:]) != wire.HeaderAMQP {
		return false
	}
	c.put([]byte(wire.HeaderAMQP))
	return true
}

// handle handles a frame. The peer's lock is held.
func (c *conn) handle(channel uint16, b *wire.Body) error {
	s := c.sessions[channel]
	switch b.Kind {
	case wire.DescOpen:
		return c.open(b)
	case wire.DescBegin:
		if c.p.vendor.OneSession && len(c.sessions) > 0 {
			return broken{wire.CondNotAllowed, "only one session is supported"}
		}
		c.sessions[channel] = &session{
			c: c, channel: channel, links: map[uint32]*link{}, unsettled: map[uint32]*delivery{},
		}
		begin := wire.Begin{RemoteChannel: wire.Some(channel), IncomingWindow: window, OutgoingWindow: window}
		c.put(begin.AppendFrame(nil, channel))
		return nil
	case wire.DescClose:
		c.put(new(wire.End).AppendClose(nil))
		return net.ErrClosed
	}
	if s == nil {
		return broken{wire.CondNotAllowed, "there is no such session"}
	}
	switch b.Kind {
	case wire.DescAttach:
		return s.attach(b)
	case wire.DescFlow:
		return s.flow(b)
	case wire.DescTransfer:
		return s.transfer(b)
	case wire.DescDisposition:
		return s.disposition(b)
	case wire.DescDetach:
		var f wire.Detach
		if err := f.Decode(&b.Fields); err != nil {
			return err
		}
		if l := s.links[f.Handle]; l != nil { // else it answers ours
			l.end()
			c.put((&wire.Detach{Handle: f.Handle, Closed: f.Closed}).AppendFrame(nil, channel))
		}
	case wire.DescEnd:
		s.end()
		delete(c.sessions, channel)
		c.put(new(wire.End).AppendFrame(nil, channel))
	}
	return nil
}

func (c *conn) open(b *wire.Body) error {
	var f wire.Open
	if err := f.Decode(&b.Fields); err != nil {
		return err
	}
	c.container = f.ContainerID
	open := c.p.vendor.Open
	open.ContainerID = "managed"
	if properties := c.p.vendor.Properties; properties != nil {
		m := wire.BeginMap(nil)
		for pair := range slices.Chunk(properties, 2) {
			m = wire.AppendStr(wire.AppendSymbol(m, pair[0]), pair[1])
		}
		wire.EndCompound(m, 0, len(properties))
		open.Properties = m
	}
	c.put(open.AppendFrame(nil))
	return nil
}

func (s *session) attach(b *wire.Body) error {
	var f wire.Attach
	if err := f.Decode(&b.Fields); err != nil {
		return err
	}
	p := s.c.p
	receives := f.Role == wire.RoleReceiver
	terminus := &f.Target
	if receives {
		terminus = &f.Source
	}
	a := Attached{Receiver: receives, Address: terminus.Address.V, Capabilities: terminus.Capabilities}
	var refused *wire.Error
	switch {
	case terminus.Kind == wire.DescCoordinator && p.vendor.NoTransactions:
		refused = &wire.Error{Condition: wire.CondNotImplemented, Description: "transactions are not supported"}
	case p.vendor.TakesTokens && a.Address == cbs: // each connection has its own
		a.Kind, a.Name = cbs, s.c.RemoteAddr().String()
	default:
		a.Kind, a.Name, refused = p.vendor.Node(terminus)
		if told := p.told.Attach[len(p.truth.Attached)+1]; told != nil {
			refused = told
		}
		if s.c.tokens && !s.c.authorized[a.Address] {
			refused = &wire.Error{Condition: wire.CondUnauthorized, Description: "a token is required"}
		}
	}
	a.Refused = refused != nil
	p.truth.Attached = append(p.truth.Attached, a)
	answer := f
	answer.Role, answer.InitialDeliveryCount, answer.Properties = !f.Role, wire.Some[uint32](0), nil
	answer.MaxMessageSize = p.vendor.MaxMessageSize
	if a.Refused {
		answer.Source, answer.Target = wire.Terminus{}, wire.Terminus{}
		s.c.put(answer.AppendFrame(nil, s.channel))
		s.c.put((&wire.Detach{Handle: f.Handle, Closed: true, Error: refused}).AppendFrame(nil, s.channel))
		return nil
	}
	l := &link{s: s, handle: f.Handle}
	s.links[f.Handle] = l
	s.c.put(answer.AppendFrame(nil, s.channel))
	if !receives {
		l.target = key(a.Kind, a.Name)
		l.grant()
		return nil
	}
	if l.queue = key(a.Kind, a.Name); a.Kind == Topic {
		l.queue = l.subscribe(&a, &f)
	}
	return nil
}

// key is the name of a node's store.
func key(kind, name string) string {
	if kind == Queue {
		return name
	}
	return kind + " " + name
}

// subscribe returns the queue of a subscription: named by container and link where it outlives the link (as in Qpid
// JMS's mapping).
func (l *link) subscribe(a *Attached, f *wire.Attach) string {
	p, topic := l.s.c.p, key(a.Kind, a.Name)
	name, _, _ := strings.Cut(f.Name, "|")
	queue := topic + " " + l.s.c.container + " " + name
	if f.Source.ExpiryPolicy != wire.ExpireNever {
		l.topic = topic
	}
	if p.topics[topic] == nil {
		p.topics[topic] = map[string]bool{}
	}
	p.topics[topic][queue] = true
	return queue
}

// grant gives the client its credit anew.
func (l *link) grant() {
	l.credit = credit
	l.s.c.put((&wire.Flow{
		NextIncomingID: wire.Some(l.s.in), IncomingWindow: window, NextOutgoingID: l.s.out, OutgoingWindow: window,
		Handle: wire.Some(l.handle), DeliveryCount: wire.Some(l.count), LinkCredit: wire.Some[uint32](credit),
	}).AppendFrame(nil, l.s.channel))
}

func (s *session) flow(b *wire.Body) error {
	var f wire.Flow
	if err := f.Decode(&b.Fields); err != nil {
		return err
	}
	if l := s.links[f.Handle.V]; f.Handle.OK && l != nil && l.queue != "" {
		l.credit = f.DeliveryCount.Or(0) + f.LinkCredit.Or(0) - l.count
	}
	if f.Echo {
		s.c.put((&wire.Flow{
			NextIncomingID: wire.Some(s.in), IncomingWindow: window, NextOutgoingID: s.out, OutgoingWindow: window,
		}).AppendFrame(nil, s.channel))
	}
	return nil
}

func (s *session) transfer(b *wire.Body) error {
	var t wire.Transfer
	if err := t.Decode(&b.Fields); err != nil {
		return err
	}
	s.in++
	l := s.links[t.Handle]
	if l == nil {
		return nil // it crossed our detach
	}
	if t.DeliveryID.OK {
		l.id = t.DeliveryID.V
	}
	if l.partial = append(l.partial, b.Payload...); t.More {
		return nil
	}
	message := l.partial
	l.partial = nil
	if l.count++; l.count%(credit/2) == 0 {
		l.grant()
	}
	if strings.HasPrefix(l.target, cbs) {
		s.settle(l.id, wire.State{Kind: wire.DescAccepted})
		return s.takeToken(message)
	}
	return l.take(message, t.Settled)
}

// take takes the message of a producer, unless the peer is told otherwise.
func (l *link) take(sections []byte, settled bool) error {
	p, s := l.s.c.p, l.s
	p.truth.Sent++
	fault := p.told.Sent[p.truth.Sent]
	if refused := p.vendor.refuses(sections); refused != nil {
		fault.Reject = refused
	}
	if fault.Reject == nil && !fault.Lose && (!fault.ends() || fault.Store) {
		p.truth.Stored++
		if err := p.store(l.target, sections); err != nil {
			return err
		}
	}
	switch {
	case fault.FailOver:
		p.failOver()
		return net.ErrClosed
	case fault.HangUp:
		return net.ErrClosed
	case fault.Detach != nil:
		l.detach(fault.Detach)
	case settled:
	case fault.Reject != nil:
		p.truth.Refused++
		s.settle(l.id, wire.State{Kind: wire.DescRejected, Error: fault.Reject})
	default:
		s.settle(l.id, wire.State{Kind: wire.DescAccepted})
	}
	return nil
}

func (s *session) settle(id uint32, state wire.State) {
	d := wire.Disposition{Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil)}
	s.c.put(d.AppendFrame(nil, s.channel))
}

// store puts a message into the queue, or the queues of the subscriptions.
func (p *Peer) store(node string, sections []byte) error {
	var m wire.Message
	if err := m.Decode(sections); err != nil {
		return err
	}
	queues := []string{node}
	if strings.HasPrefix(node, Topic+" ") {
		queues = nil
		for queue := range p.topics[node] {
			queues = append(queues, queue)
		}
	}
	for _, queue := range queues {
		kept := &message{sections: slices.Clone(m.Forward), durable: m.Header.Durable}
		p.queues[queue] = append(p.queues[queue], kept)
	}
	return nil
}

// takeToken answers a request to the node of tokens.
func (s *session) takeToken(request []byte) error {
	var m wire.Message
	var properties wire.Properties
	if err := m.Decode(request); err != nil {
		return err
	}
	if err := properties.Decode(m.Properties); err != nil {
		return err
	}
	value := wire.NewDecoder(m.Body)
	token, _ := value.Text()
	kind := wire.LookupText(m.ApplicationProperties, "type")
	audience := wire.LookupText(m.ApplicationProperties, "name")
	status, text := uint32(202), "Accepted"
	isShared := strings.HasPrefix(string(token), "SharedAccessSignature ")
	if wire.LookupText(m.ApplicationProperties, "operation") != "put-token" || string(token) != s.c.p.told.Token ||
		isShared != (kind == "servicebus.windows.net:sastoken") || !isShared && kind != "jwt" {
		status, text = 401, "InvalidSignature: The token has an invalid signature."
	}
	s.c.p.truth.Audiences = append(s.c.p.truth.Audiences, audience)
	if _, node, ok := strings.Cut(strings.TrimPrefix(audience, "amqps://"), "/"); ok && status == 202 {
		s.c.authorized[node] = true
	}
	answer := (&wire.Properties{CorrelationID: properties.MessageID}).AppendSection(nil)
	answer = wire.AppendDescriptor(answer, wire.DescApplicationProperties)
	at := len(answer)
	answer = append(wire.AppendStr(wire.BeginMap(answer), "status-code"), wire.CodeInt)
	answer = binary.BigEndian.AppendUint32(answer, status)
	answer = wire.AppendStr(wire.AppendStr(answer, "status-description"), text)
	wire.EndCompound(answer, at, 4)
	answer = wire.AppendNull(wire.AppendDescriptor(answer, wire.DescValue))
	queue := key(cbs, s.c.RemoteAddr().String())
	s.c.p.queues[queue] = append(s.c.p.queues[queue], &message{sections: answer})
	return nil
}

func (s *session) disposition(b *wire.Body) error {
	var f wire.Disposition
	if err := f.Decode(&b.Fields); err != nil {
		return err
	}
	state, err := wire.ParseState(f.State)
	if err != nil {
		return err
	}
	if s.c.p.vendor.AcceptsOnly && state.Kind != wire.DescAccepted {
		return broken{wire.CondNotImplemented, fmt.Sprintf("delivery state %#x", uint64(state.Kind))}
	}
	p := s.c.p
	for id := f.First; int32(f.Last-id) >= 0; id++ { //nolint:gosec // serial numbers
		d := s.unsettled[id]
		if d == nil || p.endsLater(d.number) {
			continue
		}
		delete(s.unsettled, id)
		switch state.Kind {
		case wire.DescAccepted:
			p.truth.Accepted++
		case wire.DescRejected:
			dead := d.l.queue + "/" + p.vendor.DeadLetters
			p.queues[dead] = append(p.queues[dead], d.m)
		default:
			p.giveBack(d)
		}
	}
	return nil
}

// endsLater reports whether the end of its link comes before the outcome of a delivery counts: the locks of all
// deliveries before one with a fault are lost, however early the consumer's outcome has come.
func (p *Peer) endsLater(number int) bool {
	for at, fault := range p.told.Delivered {
		if number <= at && fault.ends() && at > p.truth.Delivered {
			return true
		}
	}
	return false
}

func (p *Peer) giveBack(d *delivery) {
	p.truth.Returned++
	d.m.tries++
	p.queues[d.l.queue] = append([]*message{d.m}, p.queues[d.l.queue]...)
}

// dispatch delivers messages for which there is credit.
func (p *Peer) dispatch() {
	for c := range p.conns {
		for _, s := range c.sessions {
			for _, l := range s.links {
				for l.mayDeliver() {
					l.deliver()
				}
			}
		}
	}
}

func (l *link) mayDeliver() bool {
	hasCredit := int32(l.credit) > 0 //nolint:gosec // serial numbers
	return l.queue != "" && l.s.links[l.handle] == l && hasCredit && len(l.s.c.p.queues[l.queue]) > 0
}

func (l *link) deliver() {
	p, s := l.s.c.p, l.s
	m := p.queues[l.queue][0]
	p.queues[l.queue] = p.queues[l.queue][1:]
	id := s.nextID
	s.nextID++
	s.out++
	l.count++
	l.credit--
	t := wire.Transfer{
		Handle: l.handle, DeliveryID: wire.Some(id), DeliveryTag: binary.BigEndian.AppendUint32(nil, id),
		MessageFormat: wire.Some[uint32](0), Settled: strings.HasPrefix(l.queue, cbs),
	}
	b := t.AppendHead(nil, s.channel)
	header := wire.Header{Durable: m.durable, DeliveryCount: m.tries}
	b = append(header.AppendSection(b), m.sections...)
	wire.EndFrame(b, 0)
	s.c.put(b)
	if t.Settled {
		return
	}
	p.truth.Delivered++
	s.unsettled[id] = &delivery{l, m, p.truth.Delivered}
	switch fault := p.told.Delivered[p.truth.Delivered]; {
	case fault.HangUp:
		_ = s.c.Close()
		s.end()
	case fault.Detach != nil:
		l.detach(fault.Detach)
	}
}

// detach ends a link for a reason.
func (l *link) detach(why *wire.Error) {
	l.s.c.p.truth.Detached++
	l.s.c.put((&wire.Detach{Handle: l.handle, Closed: true, Error: why}).AppendFrame(nil, l.s.channel))
	l.end()
}

// end ends a link: its deliveries go back in their order, and its subscription may end.
func (l *link) end() {
	s, p := l.s, l.s.c.p
	delete(s.links, l.handle)
	var ids []uint32
	for id, d := range s.unsettled {
		if d.l == l {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	for _, id := range ids {
		p.giveBack(s.unsettled[id])
		delete(s.unsettled, id)
	}
	if l.topic != "" {
		delete(p.topics[l.topic], l.queue)
		delete(p.queues, l.queue)
	}
}

func (s *session) end() {
	for _, l := range s.links {
		l.end()
	}
}
