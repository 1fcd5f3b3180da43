package amqp

// Codes of a SASL outcome (Security, section 5.3.3.6).
const (
	SASLOK   uint8 = 0
	SASLAuth uint8 = 1 // the credentials are wrong; larger codes are errors of the system
)

// SASL is a frame of a login (Security, section 5.3.3). Its kind decides which fields it has: [DescMechanisms], the
// server's first; [DescInit], the client's choice; [DescChallenge] and [DescResponse]; [DescOutcome], the verdict.
type SASL struct {
	Kind       Descriptor
	Mechanisms []string // in order of preference, at least one; mandatory in mechanisms
	Mechanism  string   // mandatory in an init
	Hostname   string   // of an init; "": none
	// Data is within the frame. It may give away a password. It is mandatory in challenges and responses; nil: none.
	Data []byte
	Code uint8 // of an outcome, one of the constants; mandatory
}

// String leaves out the data.
func (s SASL) String() string { return "sasl " + printable(s.Mechanism) }

// GoString is String.
func (s SASL) GoString() string { return s.String() }

// Decode reads the fields of the kind that is set; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASL) Decode(f *Decoder) error {
	*s = SASL{Kind: s.Kind}
	switch s.Kind {
	case DescMechanisms:
		if s.Mechanisms = f.Symbols(); s.Mechanisms == nil {
			f.fail(ErrMissing)
		}
		return f.wrap("sasl-mechanisms")
	case DescInit:
		s.Mechanism, s.Data, s.Hostname = f.mustText(), f.Binary(), f.text()
		return f.wrap("sasl-init")
	case DescOutcome:
		if f.Peek() == CodeNull {
			f.fail(ErrMissing)
		}
		s.Code, s.Data = f.Ubyte().V, f.Binary()
		return f.wrap("sasl-outcome")
	}
	s.Data = f.mustBinary()
	return f.wrap("sasl-step")
}

// AppendFrame appends a frame.
func (s *SASL) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), s.Kind)
	switch s.Kind {
	case DescMechanisms:
		w.symbols(s.Mechanisms)
	case DescInit:
		w.mustSymbol(s.Mechanism)
		w.sized(CodeBin8, s.Data)
		w.str(s.Hostname)
	case DescOutcome:
		w.ubyte(s.Code)
		w.sized(CodeBin8, s.Data)
	default:
		w.binary(s.Data)
	}
	return w.frame(at)
}
