package amqp

// MaxDeliveryTag is the largest size of a delivery tag, in bytes (Transport, section 2.8.7).
const MaxDeliveryTag = 32

// Transfer is the performative transfer (Transport, section 2.7.5). Its payload is [Body.Payload]. Encoded values and
// the tag are within the frame. The zero values of all but Handle are right in frames that continue a delivery.
type Transfer struct {
	Handle      uint32      // mandatory
	DeliveryID  Opt[uint32] // a serial number; mandatory in the first frame of a delivery
	DeliveryTag []byte      // at most [MaxDeliveryTag] bytes; nil: none; mandatory in the first frame of a delivery
	// MessageFormat is 0 for the format of Messaging, section 3.2; mandatory in the first frame of a delivery.
	MessageFormat Opt[uint32]
	Settled       bool // in any frame of a delivery
	More          bool // the delivery goes on in another frame
	// State is an encoded delivery state for [ParseState], such as a transaction's; nil: none.
	State   []byte
	Aborted bool // the delivery is to be forgotten
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError]. It allocates nothing.
func (t *Transfer) Decode(f *Decoder) error {
	t.Handle = f.mustUint()
	t.DeliveryID = f.Uint()
	t.DeliveryTag = f.Bytes()
	t.MessageFormat = f.Uint()
	t.Settled = f.Bool()
	t.More = f.Bool()
	if len(t.DeliveryTag) > MaxDeliveryTag {
		f.fail(ErrValue)
	}
	if f.n == 0 { // as nearly all end here
		t.State, t.Aborted = nil, false
		return f.wrap("transfer")
	}
	f.Skip() // how the receiver settles
	t.State = f.Raw()
	f.Skip() // resume
	t.Aborted = f.Bool()
	return f.wrap("transfer")
}

// AppendHead appends a frame without its payload. Append the payload, and call [EndFrame] with the length that b had.
// If no field behind More is set, the last byte is More's: [CodeTrue] or [CodeFalse].
func (t *Transfer) AppendHead(b []byte, channel uint16) []byte {
	b = append(b, 0, 0, 0, 0, 2, FrameAMQP, byte(channel>>8), byte(channel),
		CodeDescribed, CodeSmallUlong, byte(DescTransfer), CodeList8, 0, 0)
	if len(t.State)+len(t.DeliveryTag) > 128+MaxDeliveryTag {
		return t.appendLargeHead(b[:len(b)-3])
	}
	at := len(b)
	b, count := t.appendFields(b)
	b[at-2], b[at-1] = byte(len(b)-at+1), count
	return b
}

// appendLargeHead appends the fields in a list32.
func (t *Transfer) appendLargeHead(b []byte) []byte {
	at := len(b)
	b, count := t.appendFields(BeginList(b))
	EndCompound(b, at, int(count))
	return b
}

// appendFields appends the fields in front of trailing nulls. Numbers have their full width, so that they can be
// changed.
func (t *Transfer) appendFields(b []byte) (out []byte, count byte) {
	b = appendWideUint(b, t.Handle)
	if t.DeliveryID.OK {
		b = appendWideUint(b, t.DeliveryID.V)
	} else {
		b = append(b, CodeNull)
	}
	if t.DeliveryTag != nil {
		b = appendSized(b, CodeBin8, t.DeliveryTag)
	} else {
		b = append(b, CodeNull)
	}
	b = AppendBool(AppendBool(appendOptUint(b, t.MessageFormat), t.Settled), t.More)
	if t.State == nil && !t.Aborted {
		return b, 6
	}
	b = append(b, CodeNull) // how the receiver settles
	if t.State == nil {
		b = append(b, CodeNull)
	}
	return AppendBool(append(append(b, t.State...), CodeNull), t.Aborted), 10
}

// Disposition is the performative disposition (Transport, section 2.7.6). State is within the frame.
type Disposition struct {
	Role  bool   // of the sender of the disposition; mandatory
	First uint32 // delivery ID, a serial number; mandatory
	Last  uint32 // decoding gives First if there is none
	// Settled: the sender of the disposition has forgotten the deliveries.
	Settled bool
	State   []byte // an encoded delivery state, for [ParseState]; nil: none
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError]. It allocates nothing.
func (d *Disposition) Decode(f *Decoder) error {
	d.Role = f.mustBool()
	d.First = f.mustUint()
	d.Last = f.Uint().Or(d.First)
	d.Settled = f.Bool()
	d.State = f.Raw()
	return f.wrap("disposition")
}

// AppendFrame appends a frame.
func (d *Disposition) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), DescDisposition)
	w.boolean(d.Role)
	w.uint(d.First)
	w.uintOr(d.Last, d.First)
	w.flag(d.Settled)
	w.raw(d.State)
	return w.frame(at)
}

// AppendAccepted appends the frame of a receiver that accepts the deliveries first to last: a disposition as they are
// sent all the time.
func AppendAccepted(b []byte, channel uint16, first, last uint32) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, 2, FrameAMQP, byte(channel>>8), byte(channel),
		CodeDescribed, CodeSmallUlong, byte(DescDisposition), CodeList8, 0, 5, CodeTrue)
	b = append(AppendUint(AppendUint(b, first), last), CodeTrue)
	b = append(b, CodeDescribed, CodeSmallUlong, byte(DescAccepted), CodeList0)
	b[at+12] = byte(len(b) - at - 13)
	EndFrame(b, at)
	return b
}

// Flow is the performative flow (Transport, section 2.7.4). Without a Handle it is about the session alone.
type Flow struct {
	NextIncomingID Opt[uint32] // a serial number; absent until the peer's begin has come
	IncomingWindow uint32      // transfer frames; mandatory
	NextOutgoingID uint32      // a serial number; mandatory
	OutgoingWindow uint32      // transfer frames; mandatory
	Handle         Opt[uint32]
	DeliveryCount  Opt[uint32] // a serial number; absent from a receiver that has not seen the sender's attach
	LinkCredit     Opt[uint32] // messages
	Drain          bool
	Echo           bool // the peer is to answer with a flow
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError]. It allocates nothing.
func (w *Flow) Decode(f *Decoder) error {
	*w = Flow{
		NextIncomingID: f.Uint(),
		IncomingWindow: f.mustUint(),
		NextOutgoingID: f.mustUint(),
		OutgoingWindow: f.mustUint(),
		Handle:         f.Uint(),
		DeliveryCount:  f.Uint(),
		LinkCredit:     f.Uint(),
	}
	f.Skip() // available messages
	w.Drain, w.Echo = f.Bool(), f.Bool()
	return f.wrap("flow")
}

// AppendFrame appends a frame.
func (w *Flow) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	l := beginList(BeginFrame(b, FrameAMQP, channel), DescFlow)
	l.opt(w.NextIncomingID)
	l.uint(w.IncomingWindow)
	l.uint(w.NextOutgoingID)
	l.uint(w.OutgoingWindow)
	l.opt(w.Handle)
	l.opt(w.DeliveryCount)
	l.opt(w.LinkCredit)
	l.null() // available messages
	l.flag(w.Drain)
	l.flag(w.Echo)
	return l.frame(at)
}

// Accepted is the encoded state accepted, as [Disposition.State] takes it: []byte(Accepted).
const Accepted = "\x00\x53\x24\x45"

// State is a delivery state: the progress of a delivery, or its outcome (Messaging, section 3.4; Transactions, sections
// 4.5.5 and 4.5.6). Encoded values are within the input.
type State struct {
	// Kind is [DescAccepted], [DescRejected], [DescReleased] or [DescModified]: an outcome; or [DescReceived],
	// [DescDeclared]; or 0: none, as in a transactional state of a transfer.
	Kind Descriptor
	// Transactional: the outcome holds if the transaction does. TxnID names it.
	Transactional bool
	// TxnID is mandatory in a transactional state and in declared.
	TxnID []byte

	// Error is why it was rejected; nil if that is not said.
	Error *Error

	// Of modified.
	DeliveryFailed    bool // it counts as an attempt to deliver
	UndeliverableHere bool // not to be sent again over this link
}

// Terminal reports whether the state is an outcome, which ends a delivery.
func (s *State) Terminal() bool { return s.Kind >= DescAccepted && s.Kind <= DescModified }

// ParseState reads an encoded delivery state, or nil for none. It fails with a *[DecodeError]. It allocates nothing,
// but for the error of a rejection.
func ParseState(raw []byte) (State, error) {
	if string(raw) == Accepted {
		return State{Kind: DescAccepted}, nil
	}
	if raw == nil {
		return State{}, nil
	}
	d := NewDecoder(raw)
	s := d.state(true)
	if d.err != nil {
		return State{}, &DecodeError{Type: "delivery-state", Err: d.err}
	}
	return s, nil
}

func (d *Decoder) state(outer bool) (s State) {
	s.Kind = d.Descriptor()
	list, ok := d.List()
	if !ok {
		d.fail(ErrType)
		return State{}
	}
	name := "outcome"
	switch s.Kind {
	case DescAccepted, DescReleased, DescReceived:
	case DescRejected:
		name = "rejected"
		s.Error = list.nullableError()
	case DescModified:
		name = "modified"
		s.DeliveryFailed, s.UndeliverableHere = list.Bool(), list.Bool()
	case DescDeclared:
		name = "declared"
		s.TxnID = list.mustBinary()
	case DescTransactionalState:
		if !outer {
			d.fail(ErrDescriptor)
			return State{}
		}
		name = "transactional-state"
		txn := list.mustBinary()
		s = State{}
		if list.Peek() != CodeNull {
			s = list.state(false)
		}
		s.TxnID, s.Transactional = txn, true
	default:
		d.fail(ErrDescriptor)
	}
	if !d.join(&list, name) {
		return State{}
	}
	return s
}

// Append appends the encoded state. A transactional state with a TxnID of nil has an empty one.
func (s *State) Append(b []byte) []byte {
	if !s.Transactional {
		return s.appendOutcome(b)
	}
	w := beginList(b, DescTransactionalState)
	w.binary(s.TxnID)
	w.field(s.appendOutcome(w.b), s.Kind != 0)
	return w.finish()
}

func (s *State) appendOutcome(b []byte) []byte {
	if s.Kind == 0 {
		return AppendNull(b)
	}
	w := beginList(b, s.Kind)
	switch s.Kind {
	case DescRejected:
		w.error(s.Error)
	case DescModified:
		w.flag(s.DeliveryFailed)
		w.flag(s.UndeliverableHere)
	case DescDeclared:
		w.binary(s.TxnID)
	}
	return w.finish()
}

// AppendDeclare appends a message that asks a coordinator for a transaction (Transactions, section 4.5.2). The answer
// is the state [DescDeclared].
func AppendDeclare(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDeclare)
	return w.finish()
}

// Discharge ends a transaction (Transactions, section 4.5.3). It is the amqp-value of a message. The answer is
// accepted, or rejected with the reason why the transaction was rolled back.
type Discharge struct {
	TxnID []byte // mandatory
	Fail  bool   // roll back
}

// AppendMessage appends a message for the coordinator. It says fail even if it is false, the default: Artemis 2.56 and
// ActiveMQ Classic 6 answer a discharge without it by an error.
func (d *Discharge) AppendMessage(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDischarge)
	w.binary(d.TxnID)
	w.boolean(d.Fail)
	return w.finish()
}

// Decode reads the fields; see [ParseBody], which reads [Message.Body] as well. It fails with a *[DecodeError].
func (d *Discharge) Decode(f *Decoder) error {
	*d = Discharge{TxnID: f.mustBinary(), Fail: f.Bool()}
	return f.wrap("discharge")
}
