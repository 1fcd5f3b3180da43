package amqp

import (
	"bytes"
	"encoding/hex"
)

// NormalPriority is the priority of messages without one (Messaging, section 3.2.1).
const NormalPriority uint8 = 4

// Header is the section header (Messaging, section 3.2.1).
type Header struct {
	Durable       bool
	Priority      Opt[uint8]  // absent: [NormalPriority]; brokers tell at most 0 to 9 apart
	TTL           Opt[uint32] // milliseconds; absent: for ever
	FirstAcquirer bool        // the message has not been acquired before
	DeliveryCount uint32      // unsuccessful attempts to deliver before
}

// decode reads the value of the section. It allocates nothing.
func (h *Header) decode(d *Decoder) error {
	var f Decoder
	if !d.list(&f) {
		d.fail(ErrType)
		return nil // it is told of d
	}
	h.Durable = f.Bool()
	h.Priority = f.Ubyte()
	h.TTL = f.Uint()
	h.FirstAcquirer = f.Bool()
	h.DeliveryCount = f.Uint().Or(0)
	return f.wrap("header")
}

// AppendSection appends the section.
func (h *Header) AppendSection(b []byte) []byte {
	b = append(b, CodeDescribed, CodeSmallUlong, byte(DescHeader), CodeList8, 0, 5)
	at := len(b)
	b = AppendBool(b, h.Durable)
	if h.Priority.OK {
		b = append(b, CodeUbyte, h.Priority.V)
	} else {
		b = append(b, CodeNull)
	}
	b = AppendUint(AppendBool(appendOptUint(b, h.TTL), h.FirstAcquirer), h.DeliveryCount)
	b[at-2] = byte(len(b) - at + 1)
	return b
}

// Message is a message in its sections (Messaging, section 3.2), all within the bytes that were decoded.
type Message struct {
	Header Header // the zero value if there is none

	// Encoded maps; nil: the section is not there. See [Lookup].
	MessageAnnotations    []byte
	ApplicationProperties []byte

	// Properties is an encoded list; nil: the section is not there. See [Properties.Decode].
	Properties []byte

	// BodyKind is [DescData], [DescSequence] or [DescValue]; 0: there is no body.
	BodyKind Descriptor
	// Body is the body of the first section: the bytes of data; of a sequence and a value the encoded value, not nil.
	// See [Message.Payload].
	Body []byte
	// BodySections counts the body's sections: one or several of data or sequences, one value.
	BodySections int

	// Forward are the sections from the message annotations on: the bytes that an intermediary hands on as they are
	// (section 3.2). nil: there are none.
	Forward []byte

	bodies []byte // the sections of the body, and the footer
}

// Decode reads a message. It fails with a *[DecodeError] if a section is malformed, out of order or there twice. The
// inside of maps, sequences and values is not read. Decode keeps b, and allocates nothing.
func (m *Message) Decode(b []byte) error {
	*m = Message{}
	d := NewDecoder(b)
	last := Descriptor(0)
	for d.More() {
		start := d.Rest()
		section := d.Descriptor()
		isBody := section >= DescData && section <= DescValue
		switch {
		case d.err != nil:
			return &DecodeError{Type: "message", Err: d.err}
		case section < DescHeader || section > DescFooter:
			return &DecodeError{Type: "message", Err: ErrDescriptor}
		case section < last, section == last && (!isBody || section == DescValue),
			isBody && m.BodySections > 0 && section != last:
			return &DecodeError{Type: "message", Err: ErrSections}
		}
		last = section
		if m.Forward == nil && section > DescDeliveryAnnotations {
			m.Forward = start
		}
		var err error
		switch {
		case isBody:
			if m.BodySections == 0 {
				m.BodyKind, m.bodies = section, start
			}
			m.BodySections++
			m.body(&d)
		case section == DescHeader:
			err = m.Header.decode(&d)
		default:
			m.keep(section, &d)
		}
		if err == nil && d.err != nil {
			err = &DecodeError{Type: sectionName(section), Err: d.err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// body reads the value of a body section; the message keeps the first.
func (m *Message) body(d *Decoder) {
	var body []byte
	switch m.BodyKind {
	case DescData:
		if body = d.Bytes(); body == nil {
			d.fail(ErrType)
		}
	case DescSequence:
		body = d.listValue()
	default:
		d.n--
		body = d.whole() // which may be null
	}
	if m.BodySections == 1 {
		m.Body = body
	}
}

// keep notes where the value of a section is.
func (m *Message) keep(section Descriptor, d *Decoder) {
	if section == DescProperties {
		m.Properties = d.listValue()
		return
	}
	value := d.mapValue()
	if value == nil {
		d.fail(ErrType)
		return
	}
	switch section { // the others, delivery annotations and a footer, are for nobody here
	case DescMessageAnnotations:
		m.MessageAnnotations = value
	case DescApplicationProperties:
		m.ApplicationProperties = value
	}
}

// listValue returns a list as it is encoded, which is mandatory.
func (d *Decoder) listValue() []byte {
	switch d.Peek() {
	case CodeList0, CodeList8, CodeList32:
		raw := d.Raw()
		inner := NewDecoder(raw)
		if inner.List(); inner.err != nil && d.err == nil {
			d.fail(inner.err)
		}
		return raw
	}
	d.fail(ErrType)
	return nil
}

// Payload returns the body as bytes, in place: those of the data section, or of an amqp-value that is a string, symbol
// or binary; nil for any other body and for none. Several data sections are appended to scratch[:0], one after the
// other.
func (m *Message) Payload(scratch []byte) []byte {
	switch {
	case m.BodyKind == DescData && m.BodySections == 1:
		return m.Body
	case m.BodyKind == DescValue:
		value := NewDecoder(m.Body)
		text, _ := value.Text()
		return text
	case m.BodyKind != DescData:
		return nil
	}
	size := 0
	for section := range m.dataSections {
		size += len(section)
	}
	if scratch = scratch[:0]; cap(scratch) < size || scratch == nil {
		scratch = make([]byte, 0, size)
	}
	for section := range m.dataSections {
		scratch = append(scratch, section...)
	}
	return scratch
}

// dataSections calls yield with the bytes of each data section.
func (m *Message) dataSections(yield func([]byte) bool) {
	d := NewDecoder(m.bodies)
	for range m.BodySections {
		d.Descriptor()
		if !yield(d.Bytes()) {
			return
		}
	}
}

// AppendData appends a body of one data section.
func AppendData(b, body []byte) []byte {
	return AppendBinary(AppendDescriptor(b, DescData), body)
}

// AppendTextValue appends a body that is a string as amqp-value; it should be UTF-8.
func AppendTextValue[T ~[]byte | ~string](b []byte, text T) []byte {
	return AppendStr(AppendDescriptor(b, DescValue), text)
}

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
	p.To = f.Bytes()
	p.Subject = f.Bytes()
	p.ReplyTo = f.Bytes()
	p.CorrelationID = f.id()
	f.skip(2) // content-type, content-encoding
	p.AbsoluteExpiryTime = f.Timestamp()
	f.Skip() // creation-time
	p.GroupID = f.Bytes()
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

// idPrefix begins the text of a message ID of another type than string; the encoded value in hexadecimal digits
// follows.
const idPrefix = "AMQP:"

// AppendMessageID encodes the message ID with that text; see [MessageIDText].
func AppendMessageID[T ~[]byte | ~string](b []byte, text T) []byte {
	if digits, ok := bytes.CutPrefix([]byte(text), []byte(idPrefix)); ok {
		at := len(b)
		encoded, err := hex.AppendDecode(b, digits)
		if d := NewDecoder(encoded[at:]); err == nil && d.id() != nil && d.err == nil && !d.More() {
			return encoded
		}
		b = encoded[:at]
	}
	return AppendStr(b, text)
}

// MessageIDText returns the text of an encoded message ID, which may be nil: in place, or appended to scratch[:0].
func MessageIDText(scratch, encoded []byte) (text, buffer []byte) {
	d := NewDecoder(encoded)
	if code := d.Peek(); code == CodeStr8 || code == CodeStr32 || encoded == nil {
		return d.Bytes(), scratch
	}
	scratch = hex.AppendEncode(append(scratch[:0], idPrefix...), encoded)
	return scratch, scratch
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
