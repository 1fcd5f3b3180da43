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
