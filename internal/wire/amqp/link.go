package amqp

// Role tells which end of a link sends a frame (Transport, section 2.8.1).
type Role bool

// The roles.
const (
	RoleSender   Role = false
	RoleReceiver Role = true
)

// How senders settle (Transport, section 2.8.2).
const (
	SenderUnsettled uint8 = 0 // all deliveries are sent unsettled
	SenderSettled   uint8 = 1 // all are sent settled: at most once
	SenderMixed     uint8 = 2 // either; the default
)

// How receivers settle (Transport, section 2.8.3).
const (
	ReceiverFirst  uint8 = 0 // at once; the default
	ReceiverSecond uint8 = 1 // after the sender has
)

// Attach is the performative attach (Transport, section 2.7.3). Strings are copies; encoded values are within the
// frame.
type Attach struct {
	Name   string // mandatory
	Handle uint32 // mandatory; at most the peer's HandleMax
	Role   Role   // of the sender of the attach; mandatory
	// SenderSettleMode and ReceiverSettleMode are one of the constants; the defaults when decoding are [SenderMixed]
	// and [ReceiverFirst]. They are always written.
	SenderSettleMode   uint8
	ReceiverSettleMode uint8
	// Source and Target are null, with a Kind of 0, in an attach that refuses a link (section 2.6.3). The target may be
	// a coordinator.
	Source, Target Terminus
	// Unsettled is an encoded map of delivery tags and states; nil: none. IncompleteUnsettled: it is not all of it.
	Unsettled           []byte
	IncompleteUnsettled bool
	// InitialDeliveryCount is mandatory from a sender and is ignored from a receiver; a serial number.
	InitialDeliveryCount Opt[uint32]
	// MaxMessageSize is in bytes; 0 or absent: no limit.
	MaxMessageSize      uint64
	OfferedCapabilities []string
	DesiredCapabilities []string
	Properties          []byte // an encoded map; nil: none
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (a *Attach) Decode(f *Decoder) error {
	*a = Attach{
		Name:                 f.mustText(),
		Handle:               f.mustUint(),
		Role:                 Role(f.mustBool()),
		SenderSettleMode:     f.Ubyte(SenderMixed),
		ReceiverSettleMode:   f.Ubyte(ReceiverFirst),
		Source:               f.terminus(),
		Target:               f.terminus(),
		Unsettled:            f.mapValue(),
		IncompleteUnsettled:  f.Bool(),
		InitialDeliveryCount: f.Uint(),
		MaxMessageSize:       f.Ulong(0),
		OfferedCapabilities:  f.Symbols(),
		DesiredCapabilities:  f.Symbols(),
		Properties:           f.mapValue(),
	}
	return f.wrap("attach")
}

// AppendFrame appends a frame.
func (a *Attach) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), DescAttach)
	w.mustStr(a.Name)
	w.uint(a.Handle)
	w.boolean(bool(a.Role))
	w.ubyte(a.SenderSettleMode)
	w.ubyte(a.ReceiverSettleMode)
	w.terminus(&a.Source)
	w.terminus(&a.Target)
	w.raw(a.Unsettled)
	w.flag(a.IncompleteUnsettled)
	w.opt(a.InitialDeliveryCount)
	if a.MaxMessageSize == 0 {
		w.null()
	} else {
		w.ulong(a.MaxMessageSize)
	}
	w.symbols(a.OfferedCapabilities)
	w.symbols(a.DesiredCapabilities)
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
