package amqp

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
