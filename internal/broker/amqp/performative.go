package amqp

import "strings"

// Descriptors (Transport, section 2.7; Messaging, sections 3.2, 3.4, 3.5; Transactions, section 4.5; Security, section 5.3.3).
const (
	descOpen        = 0x10
	descBegin       = 0x11
	descAttach      = 0x12
	descFlow        = 0x13
	descTransfer    = 0x14
	descDisposition = 0x15
	descDetach      = 0x16
	descEnd         = 0x17
	descClose       = 0x18
	descError       = 0x1d

	descReceived = 0x23
	descAccepted = 0x24
	descRejected = 0x25
	descReleased = 0x26
	descModified = 0x27
	descSource   = 0x28
	descTarget   = 0x29

	descCoordinator = 0x30
	descDeclare     = 0x31
	descDischarge   = 0x32
	descDeclared    = 0x33
	descTxState     = 0x34

	descMechanisms = 0x40
	descInit       = 0x41
	descChallenge  = 0x42
	descResponse   = 0x43
	descOutcome    = 0x44

	descHeader              = 0x70
	descDeliveryAnnotations = 0x71
	descMessageAnnotations  = 0x72
	descProperties          = 0x73
	descAppProperties       = 0x74
	descData                = 0x75
	descSequence            = 0x76
	descValue               = 0x77
	descFooter              = 0x78

	descSelector = 0x0000468c00000004
)

// selectorFilter is the name of the filter in its symbolic form.
const selectorFilter = "apache.org:selector-filter:string"

// descriptorOf returns the number of a symbolic descriptor; 0 if it is not known.
func descriptorOf(symbol string) uint64 {
	if symbol == selectorFilter {
		return descSelector
	}
	name, ok := strings.CutPrefix(symbol, "amqp:")
	if !ok {
		return 0
	}
	name, _, _ = strings.Cut(name, ":list")
	switch name {
	case "delivery-annotations:map":
		return descDeliveryAnnotations
	case "message-annotations:map":
		return descMessageAnnotations
	case "application-properties:map":
		return descAppProperties
	case "data:binary":
		return descData
	case "amqp-sequence":
		return descSequence
	case "amqp-value:*":
		return descValue
	case "footer:map":
		return descFooter
	}
	for code, known := range map[uint64]string{
		descOpen: "open", descBegin: "begin", descAttach: "attach", descFlow: "flow", descTransfer: "transfer",
		descDisposition: "disposition", descDetach: "detach", descEnd: "end", descClose: "close", descError: "error",
		descReceived: "received", descAccepted: "accepted", descRejected: "rejected", descReleased: "released",
		descModified: "modified", descSource: "source", descTarget: "target", descCoordinator: "coordinator",
		descDeclare: "declare", descDischarge: "discharge", descDeclared: "declared", descTxState: "transactional-state",
		descMechanisms: "sasl-mechanisms", descInit: "sasl-init", descChallenge: "sasl-challenge",
		descResponse: "sasl-response", descOutcome: "sasl-outcome", descHeader: "header", descProperties: "properties",
	} {
		if name == known {
			return code
		}
	}
	return 0
}

// open is what we read of a peer's open.
type open struct {
	container  string
	maxFrame   uint32
	channelMax uint16
	idle       uint32 // milliseconds
	desired    []string
}

func (f *fields) open() (o open) {
	o.container = string(f.str())
	f.str() // hostname: there is one virtual host
	o.maxFrame = f.uintOr(1<<32 - 1)
	o.channelMax = f.ushort(1<<16 - 1)
	o.idle = f.uintOr(0)
	f.raw() // outgoing locales
	f.raw() // incoming locales
	f.raw() // offered capabilities
	o.desired = f.symbols()
	return o
}

type beginning struct {
	nextOutgoing   uint32
	incomingWindow uint32
	outgoingWindow uint32
	handleMax      uint32
}

func (f *fields) begin() (b beginning) {
	f.ushort(0) // remote channel: none, the peer begins
	b.nextOutgoing = f.uintOr(0)
	b.incomingWindow = f.uintOr(0)
	b.outgoingWindow = f.uintOr(0)
	b.handleMax = f.uintOr(1<<32 - 1)
	return b
}

// Settlement modes (Transport, sections 2.8.2 and 2.8.3).
const (
	sendUnsettled = 0
	sendSettled   = 1
	sendMixed     = 2
	receiveFirst  = 0
	receiveSecond = 1
)

type attach struct {
	name         string
	handle       uint32
	receiver     bool // the role of who sends it
	sendMode     uint8
	receiveMode  uint8
	source       terminus
	target       terminus
	initialCount uint32
	maxMessage   uint64
	desired      []string
}

func (f *fields) attach() (a attach) {
	a.name = string(f.str())
	a.handle = f.uintOr(0)
	a.receiver = f.boolean()
	a.sendMode = f.ubyte(sendMixed)
	a.receiveMode = f.ubyte(receiveFirst)
	a.source = f.terminus()
	a.target = f.terminus()
	f.raw()     // unsettled: links are not resumed
	f.boolean() // incomplete unsettled
	a.initialCount = f.uintOr(0)
	a.maxMessage = f.ulong()
	f.raw() // offered capabilities
	a.desired = f.symbols()
	return a
}

type flow struct {
	nextIncoming    uint32
	hasNextIncoming bool
	incomingWindow  uint32
	nextOutgoing    uint32
	outgoingWindow  uint32
	handle          uint32
	hasHandle       bool
	count           uint32
	hasCount        bool
	credit          uint32
	hasCredit       bool
	drain, echo     bool
}

func (f *fields) flow() (w flow) {
	w.nextIncoming, w.hasNextIncoming = f.uint()
	w.incomingWindow = f.uintOr(0)
	w.nextOutgoing = f.uintOr(0)
	w.outgoingWindow = f.uintOr(0)
	w.handle, w.hasHandle = f.uint()
	w.count, w.hasCount = f.uint()
	w.credit, w.hasCredit = f.uint()
	f.uint() // available
	w.drain = f.boolean()
	w.echo = f.boolean()
	return w
}

type transfer struct {
	handle                 uint32
	id                     uint32
	hasID                  bool
	format                 uint32
	settled, more, aborted bool
	state                  []byte
}

func (f *fields) transfer() (t transfer) {
	t.handle = f.uintOr(0)
	t.id, t.hasID = f.uint()
	f.binary() // tag: the delivery's number is all we need
	t.format = f.uintOr(0)
	t.settled = f.boolean()
	t.more = f.boolean()
	f.ubyte(0) // receiver settle mode
	t.state = f.raw()
	f.boolean() // resume
	t.aborted = f.boolean()
	return t
}

type disposition struct {
	receiver    bool
	first, last uint32
	settled     bool
	state       []byte
}

func (f *fields) disposition() (d disposition) {
	d.receiver = f.boolean()
	d.first = f.uintOr(0)
	d.last = f.uintOr(d.first)
	d.settled = f.boolean()
	d.state = f.raw()
	return d
}

type detach struct {
	handle uint32
	closed bool
}

func (f *fields) detach() (d detach) {
	d.handle = f.uintOr(0)
	d.closed = f.boolean()
	return d
}

// performative takes the described list at the front of a frame's body.
func (f *fields) performative() (descriptor uint64, list fields) {
	descriptor = f.described()
	list, ok := f.list()
	if !ok {
		f.fail()
	}
	return descriptor, list
}

func appendError(b []byte, e *failure) []byte {
	if e == nil {
		return appendNull(b)
	}
	b, at := beginDescribed(b, descError)
	b = appendText(appendSymbol(b, e.condition), e.description)
	if e.field == "" {
		return finish(b, at, 2)
	}
	b, info := begin(b, codeMap32)
	b = appendSymbol(appendSymbol(b, "invalid-field"), e.field)
	b = finish(b, info, 2)
	return finish(b, at, 3)
}

// appendEnding appends end or close.
func appendEnding(b []byte, channel uint16, descriptor uint64, e *failure) []byte {
	b, frame := beginFrame(b, frameAMQP, channel)
	b, at := beginDescribed(b, descriptor)
	b = appendError(b, e)
	return finishFrame(finish(b, at, 1), frame)
}

func appendDetach(b []byte, channel uint16, handle uint32, closed bool, e *failure) []byte {
	b, frame := beginFrame(b, frameAMQP, channel)
	b, at := beginDescribed(b, descDetach)
	b = appendBool(appendUint(b, handle), closed)
	b = appendError(b, e)
	return finishFrame(finish(b, at, 3), frame)
}

// appendDisposition appends a disposition; state is appended by the caller's function, which must be short.
func appendDisposition(b []byte, channel uint16, receiver bool, first, last uint32, settled bool, state []byte) []byte {
	b, frame := beginFrame(b, frameAMQP, channel)
	b, at := beginDescribed(b, descDisposition)
	b = appendUint(appendUint(appendBool(b, receiver), first), last)
	b = appendRaw(appendBool(b, settled), state)
	return finishFrame(finish(b, at, 5), frame)
}

// flowState is what a flow frame says.
type flowState struct {
	nextIncoming, incomingWindow uint32
	nextOutgoing                 uint32
	handle                       uint32
	hasHandle                    bool
	count, credit                uint32
	drain                        bool
}

func appendFlow(b []byte, channel uint16, s flowState) []byte {
	b, frame := beginFrame(b, frameAMQP, channel)
	b, at := beginDescribed(b, descFlow)
	b = appendUint(appendUint(b, s.nextIncoming), s.incomingWindow)
	b = appendUint(appendUint(b, s.nextOutgoing), ourOutgoingWindow)
	if !s.hasHandle {
		return finishFrame(finish(b, at, 4), frame)
	}
	b = appendUint(appendUint(appendUint(b, s.handle), s.count), s.credit)
	b = appendBool(appendNull(b), s.drain)
	return finishFrame(finish(b, at, 9), frame)
}
