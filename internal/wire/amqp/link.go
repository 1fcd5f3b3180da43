package amqp

// Which end of a link sends a frame: its role (Transport, section 2.8.1).
const (
	RoleSender   = false
	RoleReceiver = true
)

// How senders settle (Transport, section 2.8.2).
const (
	SenderUnsettled uint8 = 0 // all deliveries are sent unsettled
	SenderSettled   uint8 = 1 // all are sent settled: at most once
	SenderMixed     uint8 = 2 // either; the default
)

// Attach is the performative attach (Transport, section 2.7.3). Strings are copies; encoded values are within the
// frame.
type Attach struct {
	Name   string // mandatory
	Handle uint32 // mandatory; at most the peer's HandleMax
	Role   bool   // of the sender of the attach; mandatory
	// SenderSettleMode is one of the constants; the default when decoding is [SenderMixed]. It is always written, and so
	// is that receivers settle first.
	SenderSettleMode uint8
	// Source and Target are null, with a Kind of 0, in an attach that refuses a link (section 2.6.3). The target may be
	// a coordinator.
	Source, Target Terminus
	// InitialDeliveryCount is mandatory from a sender and is ignored from a receiver; a serial number.
	InitialDeliveryCount Opt[uint32]
	// MaxMessageSize is in bytes; 0 or absent: no limit.
	MaxMessageSize uint64
	Properties     []byte // an encoded map; nil: none
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (a *Attach) Decode(f *Decoder) error {
	*a = Attach{Name: f.mustText(), Handle: f.mustUint(), Role: f.mustBool(), SenderSettleMode: f.Ubyte().Or(SenderMixed)}
	f.Skip() // how receivers settle
	a.Source, a.Target = f.terminus(), f.terminus()
	f.skip(2) // unsettled deliveries
	a.InitialDeliveryCount, a.MaxMessageSize = f.Uint(), f.Ulong(0)
	f.skip(2) // capabilities
	a.Properties = f.mapValue()
	return f.wrap("attach")
}

// AppendFrame appends a frame.
func (a *Attach) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), DescAttach)
	w.mustStr(a.Name)
	w.uint(a.Handle)
	w.boolean(a.Role)
	w.ubyte(a.SenderSettleMode)
	w.ubyte(0) // receivers settle first
	w.terminus(&a.Source)
	w.terminus(&a.Target)
	w.null() // unsettled deliveries
	w.null()
	w.opt(a.InitialDeliveryCount)
	w.field(AppendUlong(w.b, a.MaxMessageSize), a.MaxMessageSize > 0)
	w.null() // capabilities
	w.null()
	w.raw(a.Properties)
	return w.frame(at)
}

// Detach is the performative detach (Transport, section 2.7.7).
type Detach struct {
	Handle uint32 // mandatory
	Closed bool   // the link's terminus goes too
	Error  *Error // why; nil: in good order
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (d *Detach) Decode(f *Decoder) error {
	*d = Detach{Handle: f.mustUint(), Closed: f.Bool(), Error: f.nullableError()}
	return f.wrap("detach")
}

// AppendFrame appends a frame.
func (d *Detach) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), DescDetach)
	w.uint(d.Handle)
	w.flag(d.Closed)
	w.error(d.Error)
	return w.frame(at)
}
