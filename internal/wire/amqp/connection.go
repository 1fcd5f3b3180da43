package amqp

// Open is the performative open (Transport, section 2.7.1). Strings are copies; Properties is within the frame.
type Open struct {
	ContainerID string // mandatory
	Hostname    string // "": none
	// MaxFrameSize is the size of the largest frame that the sender of the open takes, in bytes, at least
	// [MinMaxFrameSize]; absent: 4294967295.
	MaxFrameSize Opt[uint32]
	// ChannelMax is the highest channel that may be used; absent: 65535.
	ChannelMax Opt[uint16]
	// IdleTimeout is the silence, in milliseconds, after which the sender of the open may end the connection; 0 or
	// absent: never.
	IdleTimeout         uint32
	OfferedCapabilities []string
	// Properties is an encoded map with symbols as keys, such as product and version; nil: none. See [Lookup].
	Properties []byte
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (o *Open) Decode(f *Decoder) error {
	*o = Open{
		ContainerID:  f.mustText(),
		Hostname:     f.text(),
		MaxFrameSize: f.Uint(),
		ChannelMax:   f.Ushort(),
		IdleTimeout:  f.Uint().Or(0),
	}
	f.skip(2) // locales
	o.OfferedCapabilities = f.Symbols()
	f.Skip() // desired capabilities
	o.Properties = f.mapValue()
	return f.wrap("open")
}

// AppendFrame appends a frame, on channel 0.
func (o *Open) AppendFrame(b []byte) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, 0), DescOpen)
	w.mustStr(o.ContainerID)
	w.str(o.Hostname)
	w.opt(o.MaxFrameSize)
	w.optUshort(o.ChannelMax)
	w.uintOr(o.IdleTimeout, 0)
	w.null() // locales
	w.null()
	w.symbols(o.OfferedCapabilities)
	w.null() // desired capabilities
	w.raw(o.Properties)
	return w.frame(at)
}

// frame ends the list and the frame that it is the body of.
func (w *listWriter) frame(at int) []byte {
	b := w.finish()
	EndFrame(b, at)
	return b
}

// Begin is the performative begin (Transport, section 2.7.2).
type Begin struct {
	// RemoteChannel is the channel of the begin that this one answers; absent in one that answers none.
	RemoteChannel  Opt[uint16]
	NextOutgoingID uint32 // of the sender's first transfer frame, a serial number (RFC 1982); mandatory
	IncomingWindow uint32 // transfer frames that the sender of the begin takes; mandatory
	OutgoingWindow uint32 // transfer frames that it may send; mandatory
	// HandleMax is the highest handle of a link; absent: 4294967295.
	HandleMax Opt[uint32]
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (p *Begin) Decode(f *Decoder) error {
	*p = Begin{
		RemoteChannel:  f.Ushort(),
		NextOutgoingID: f.mustUint(),
		IncomingWindow: f.mustUint(),
		OutgoingWindow: f.mustUint(),
		HandleMax:      f.Uint(),
	}
	return f.wrap("begin")
}

// AppendFrame appends a frame.
func (p *Begin) AppendFrame(b []byte, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), DescBegin)
	w.optUshort(p.RemoteChannel)
	w.uint(p.NextOutgoingID)
	w.uint(p.IncomingWindow)
	w.uint(p.OutgoingWindow)
	w.opt(p.HandleMax)
	return w.frame(at)
}

// End is the performative end, or close (Transport, sections 2.7.8 and 2.7.9).
type End struct {
	Error *Error // why; nil: in good order
}

// Decode reads the fields; see [ParseBody]. It fails with a *[DecodeError].
func (e *End) Decode(f *Decoder) error {
	*e = End{Error: f.nullableError()}
	return f.wrap("end")
}

// AppendFrame appends an end.
func (e *End) AppendFrame(b []byte, channel uint16) []byte { return e.append(b, DescEnd, channel) }

// AppendClose appends a close, on channel 0.
func (e *End) AppendClose(b []byte) []byte { return e.append(b, DescClose, 0) }

func (e *End) append(b []byte, kind Descriptor, channel uint16) []byte {
	at := len(b)
	w := beginList(BeginFrame(b, FrameAMQP, channel), kind)
	w.error(e.Error)
	return w.frame(at)
}

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
	// SenderSettleMode is one of the constants; the default when decoding is [SenderMixed]. It is always written, and
	// so is that receivers settle first.
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
	*a = Attach{
		Name: f.mustText(), Handle: f.mustUint(), Role: f.mustBool(), SenderSettleMode: f.Ubyte().Or(SenderMixed),
	}
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
