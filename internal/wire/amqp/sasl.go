package amqp

// Codes of a SASL outcome (Security, section 5.3.3.6).
const (
	SASLOK   uint8 = 0
	SASLAuth uint8 = 1 // the credentials are wrong; larger codes are errors of the system
)

// SASLMechanisms is the first SASL frame of a server (Security, section 5.3.3.1). Strings are copies.
type SASLMechanisms struct {
	Mechanisms []string // in order of preference, at least one; mandatory
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASLMechanisms) Decode(f *Decoder) error {
	*s = SASLMechanisms{Mechanisms: f.Symbols()}
	if s.Mechanisms == nil {
		f.fail(ErrMissing)
	}
	return f.wrap("sasl-mechanisms")
}

// AppendFrame appends a frame.
func (s *SASLMechanisms) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), DescMechanisms)
	w.symbols(s.Mechanisms)
	return w.frame(at)
}

// SASLInit is the client's choice of a mechanism (Security, section 5.3.3.2). InitialResponse is within the frame.
type SASLInit struct {
	Mechanism       string // mandatory
	InitialResponse []byte // nil: none. It may hold a password.
	Hostname        string // "": none
}

// String leaves out the response, which may hold a password.
func (s SASLInit) String() string { return "sasl-init " + printable(s.Mechanism) }

// GoString is String.
func (s SASLInit) GoString() string { return s.String() }

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASLInit) Decode(f *Decoder) error {
	*s = SASLInit{Mechanism: f.mustText(), InitialResponse: f.Binary(), Hostname: f.text()}
	return f.wrap("sasl-init")
}

// AppendFrame appends a frame.
func (s *SASLInit) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), DescInit)
	w.mustSymbol(s.Mechanism)
	w.sized(CodeBin8, s.InitialResponse)
	w.str(s.Hostname)
	return w.frame(at)
}

// SASLStep is a challenge of a server or the response of a client (Security, sections 5.3.3.3 and 5.3.3.4).
type SASLStep struct {
	Kind Descriptor // [DescChallenge] or [DescResponse]
	Data []byte     // within the frame; mandatory. It may give away a password.
}

// String leaves out the data.
func (SASLStep) String() string { return "sasl-step" }

// GoString is String.
func (s SASLStep) GoString() string { return s.String() }

// Decode reads the fields, without the kind; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASLStep) Decode(f *Decoder) error {
	s.Data = f.mustBinary()
	return f.wrap("sasl-step")
}

// AppendFrame appends a frame.
func (s *SASLStep) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), s.Kind)
	w.binary(s.Data)
	return w.frame(at)
}

// SASLOutcome is the server's verdict (Security, section 5.3.3.5). AdditionalData is within the frame.
type SASLOutcome struct {
	Code           uint8  // one of the constants; mandatory
	AdditionalData []byte // of the mechanism; nil: none
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (s *SASLOutcome) Decode(f *Decoder) error {
	if f.Peek() == CodeNull {
		f.fail(ErrMissing)
	}
	*s = SASLOutcome{Code: f.Ubyte().V, AdditionalData: f.Binary()}
	return f.wrap("sasl-outcome")
}

// AppendFrame appends a frame.
func (s *SASLOutcome) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameSASL, 0), DescOutcome)
	w.ubyte(s.Code)
	w.sized(CodeBin8, s.AdditionalData)
	return w.frame(at)
}
