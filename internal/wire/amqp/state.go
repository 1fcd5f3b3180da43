package amqp

// Accepted is the encoded state accepted, as [Disposition.State] takes it: []byte(Accepted).
const Accepted = "\x00\x53\x24\x45"

// State is a delivery state: how far a delivery is, or its outcome (Messaging, section 3.4; Transactions, sections
// 4.5.5 and 4.5.6). Encoded values are within the input.
type State struct {
	// Kind is [DescAccepted], [DescRejected], [DescReleased] or [DescModified]: an outcome; or [DescReceived],
	// [DescDeclared]; or 0: none, as in a transactional state of a transfer.
	Kind Descriptor
	// Transactional: the outcome holds if the transaction does. TxnID names it.
	Transactional bool
	// TxnID is mandatory in a transactional state and in declared.
	TxnID []byte

	// Of received; mandatory. The delivery has arrived up to a section, and an offset in its bytes.
	SectionNumber uint32
	SectionOffset uint64

	// Error is why it was rejected; nil if that is not said.
	Error *Error

	// Of modified.
	DeliveryFailed    bool   // it counts as an attempt to deliver
	UndeliverableHere bool   // not to be sent again over this link
	Annotations       []byte // an encoded map, to be merged into the message's; nil: none
}

// Terminal reports whether the state is an outcome, which ends a delivery.
func (s *State) Terminal() bool { return s.Kind >= DescAccepted && s.Kind <= DescModified }

// ParseState reads an encoded delivery state; nil is none. It fails with a *[DecodeError]. It allocates nothing, but
// for the error of a rejection.
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
	case DescAccepted, DescReleased:
	case DescReceived:
		name = "received"
		s.SectionNumber = list.mustUint()
		s.SectionOffset = list.mustUlong()
	case DescRejected:
		name = "rejected"
		s.Error = list.nullableError()
	case DescModified:
		name = "modified"
		s.DeliveryFailed, s.UndeliverableHere, s.Annotations = list.Bool(), list.Bool(), list.mapValue()
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

func (d *Decoder) mustUlong() uint64 {
	if d.Peek() == CodeNull {
		d.fail(ErrMissing)
	}
	return d.Ulong(0)
}

// Append appends the encoded state. A transactional state with a TxnID of nil has an empty one.
func (s *State) Append(b []byte) []byte {
	if !s.Transactional {
		return s.appendOutcome(b)
	}
	w := beginList(b, DescTransactionalState)
	w.b = AppendBinary(w.b, s.TxnID)
	w.set()
	if s.Kind != 0 {
		w.b = s.appendOutcome(w.b)
		w.set()
	}
	return w.finish()
}

func (s *State) appendOutcome(b []byte) []byte {
	if s.Kind == 0 {
		return AppendNull(b)
	}
	w := beginList(b, s.Kind)
	switch s.Kind {
	case DescReceived:
		w.uint(s.SectionNumber)
		w.ulong(s.SectionOffset)
	case DescRejected:
		w.error(s.Error)
	case DescModified:
		w.flag(s.DeliveryFailed)
		w.flag(s.UndeliverableHere)
		w.raw(s.Annotations)
	case DescDeclared:
		w.b = AppendBinary(w.b, s.TxnID)
		w.set()
	}
	return w.finish()
}
