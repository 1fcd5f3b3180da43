package amqp

// Properties is the section properties (Messaging, section 3.2.4). A property that is nil or absent is not there; an
// empty text is. Decoded texts are within the message.
type Properties struct {
	MessageID          []byte // encoded: an ulong, UUID, binary or string
	To                 []byte
	Subject            []byte
	ReplyTo            []byte
	CorrelationID      []byte     // encoded: an ulong, UUID, binary or string
	AbsoluteExpiryTime Opt[int64] // in milliseconds since the Unix epoch
	GroupID            []byte
}

// Decode reads [Message.Properties], which may be nil. It fails with a *[DecodeError]. It allocates nothing.
func (p *Properties) Decode(list []byte) error {
	*p = Properties{}
	if list == nil {
		return nil
	}
	d := NewDecoder(list)
	f, _ := d.List()
	p.MessageID = f.id()
	f.Skip() // user-id
	p.To = f.anyText()
	p.Subject = f.anyText()
	p.ReplyTo = f.anyText()
	p.CorrelationID = f.id()
	f.skip(2) // content-type, content-encoding
	p.AbsoluteExpiryTime = f.Timestamp()
	f.Skip() // creation-time
	p.GroupID = f.anyText()
	d.join(&f, "properties")
	return d.err
}

// id returns an encoded message ID.
func (d *Decoder) id() []byte {
	switch d.Peek() {
	case CodeNull, CodeUlong0, CodeSmallUlong, CodeUlong, CodeUUID, CodeBin8, CodeBin32, CodeStr8, CodeStr32:
		return d.Raw()
	}
	d.n-- // it is the one to blame
	d.fail(ErrType)
	return nil
}

// AppendSection appends the section, or nothing if there are no properties.
func (p *Properties) AppendSection(b []byte) []byte {
	w := beginList(b, DescProperties)
	w.raw(p.MessageID)
	w.null() // user-id
	w.sized(CodeStr8, p.To)
	w.sized(CodeStr8, p.Subject)
	w.sized(CodeStr8, p.ReplyTo)
	w.raw(p.CorrelationID)
	w.null() // content-type
	w.null() // content-encoding
	w.optTimestamp(p.AbsoluteExpiryTime)
	w.null() // creation-time
	w.sized(CodeStr8, p.GroupID)
	if w.used == 0 {
		return b
	}
	return w.finish()
}
