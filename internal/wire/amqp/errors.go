package amqp

import (
	"errors"
	"fmt"
	"strconv"
)

// The reasons why bytes cannot be decoded. A [DecodeError] wraps one of them.
var (
	// ErrTruncated: a value ends beyond its frame, list, map or array.
	ErrTruncated = errors.New("a value is longer than the data that contains it")
	// ErrType: a value is of another type than its field, or of none.
	ErrType = errors.New("a value of another type was expected")
	// ErrCount: a list, map or array counts more values than its bytes can hold, or than [MaxEntries], or a map an odd
	// number.
	ErrCount = errors.New("the number of values cannot be right")
	// ErrValue: a value that its type does not allow, such as a boolean of 2.
	ErrValue = errors.New("a value out of its range")
	// ErrMissing: a mandatory field is null or absent.
	ErrMissing = errors.New("a mandatory field is missing")
	// ErrDescriptor: a described type that has no place there, or none that is known.
	ErrDescriptor = errors.New("an unexpected descriptor")
	// ErrSections: message sections that are out of order, or there twice (Messaging, section 3.2).
	ErrSections = errors.New("message sections are out of order")
)

// DecodeError is a described type that cannot be decoded. It wraps one of the sentinels above, or the DecodeError of a
// type within.
type DecodeError struct {
	Type  string // its name in the specification: "flow"
	Field int    // of a list the number of the field, from 1; 0 if none is to blame
	Err   error
}

// Error implements error: "flow, field 5: a value of another type was expected".
func (e *DecodeError) Error() string {
	if e.Field == 0 {
		return e.Type + ": " + e.Err.Error()
	}
	return e.Type + ", field " + strconv.Itoa(e.Field) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// FrameError is a frame that is larger than our open announced, and was not read, or has a contradictory header
// (Transport, sections 2.3.1 and 2.7.1; to be answered with [CondFraming]).
type FrameError struct {
	Size       uint32 // bytes of the whole frame
	Max        uint32 // bytes that are accepted; 0: the header is to blame
	DataOffset uint8  // where the body begins, in words of 4 bytes
}

// Error implements error.
func (e *FrameError) Error() string {
	if e.Max > 0 {
		return fmt.Sprintf("a frame of %d bytes, where no more than %d were agreed on", e.Size, e.Max)
	}
	return fmt.Sprintf("a frame of %d bytes with a header of %d", e.Size, 4*int(e.DataOffset))
}

// Error conditions (Transport, sections 2.8.15 to 2.8.18; Transactions, section 4.5.8). Brokers have others besides.
const (
	CondInternal         = "amqp:internal-error"
	CondNotFound         = "amqp:not-found"
	CondUnauthorized     = "amqp:unauthorized-access"
	CondDecode           = "amqp:decode-error"
	CondResourceLimit    = "amqp:resource-limit-exceeded"
	CondNotAllowed       = "amqp:not-allowed"
	CondInvalidField     = "amqp:invalid-field"
	CondNotImplemented   = "amqp:not-implemented"
	CondResourceLocked   = "amqp:resource-locked"
	CondPrecondition     = "amqp:precondition-failed"
	CondResourceDeleted  = "amqp:resource-deleted"
	CondIllegalState     = "amqp:illegal-state"
	CondFrameSize        = "amqp:frame-size-too-small"
	CondForced           = "amqp:connection:forced"
	CondFraming          = "amqp:connection:framing-error"
	CondRedirect         = "amqp:connection:redirect"
	CondWindow           = "amqp:session:window-violation"
	CondErrantLink       = "amqp:session:errant-link"
	CondHandleInUse      = "amqp:session:handle-in-use"
	CondUnattachedHandle = "amqp:session:unattached-handle"
	CondDetachForced     = "amqp:link:detach-forced"
	CondTransferLimit    = "amqp:link:transfer-limit-exceeded"
	CondMessageSize      = "amqp:link:message-size-exceeded"
	CondLinkRedirect     = "amqp:link:redirect"
	CondStolen           = "amqp:link:stolen"
	CondUnknownTxn       = "amqp:transaction:unknown-id"
	CondTxnRollback      = "amqp:transaction:rollback"
)

// InfoCause is the key in [Error.Info] under which the embedded broker gives, with [CondTxnRollback], the condition
// behind it.
const InfoCause = "cause"

// Error is an AMQP error, as detach, end, close and rejected carry it (Transport, section 2.8.14).
type Error struct {
	// Condition is a symbol, one of the Cond constants or the broker's own; mandatory.
	Condition string
	// Description is a text for people, perhaps empty.
	Description string
	// Info is an encoded map with symbols as keys, a copy of the peer's; nil without one. See [Lookup].
	Info []byte
}

// Error implements error, in quotes.
func (e *Error) Error() string { return fmt.Sprintf("%q: %q", e.Condition, e.Description) }

// nullableError reads an error that may be null.
func (d *Decoder) nullableError() *Error {
	if d.Peek() == CodeNull {
		d.Skip()
		return nil
	}
	list := d.described(DescError)
	e := &Error{Condition: list.mustText(), Description: list.text()}
	if info := list.mapValue(); info != nil {
		e.Info = append([]byte(nil), info...)
	}
	if !d.join(&list, "error") {
		return nil
	}
	return e
}

func (w *listWriter) error(e *Error) {
	if e == nil {
		w.null()
		return
	}
	inner := beginList(w.b, DescError)
	inner.mustSymbol(e.Condition)
	inner.str(e.Description)
	inner.raw(e.Info)
	w.field(inner.finish(), true)
}

// Format codes: the first byte of an encoded value, which gives its type and the width of the bytes after it (Types,
// section 1.6).
const (
	CodeDescribed  byte = 0x00 // a descriptor and a value follow
	CodeNull       byte = 0x40
	CodeTrue       byte = 0x41
	CodeFalse      byte = 0x42
	CodeUint0      byte = 0x43
	CodeUlong0     byte = 0x44
	CodeList0      byte = 0x45
	CodeUbyte      byte = 0x50
	CodeByte       byte = 0x51
	CodeSmallUint  byte = 0x52
	CodeSmallUlong byte = 0x53
	CodeSmallInt   byte = 0x54
	CodeSmallLong  byte = 0x55
	CodeBool       byte = 0x56
	CodeUshort     byte = 0x60
	CodeShort      byte = 0x61
	CodeUint       byte = 0x70
	CodeInt        byte = 0x71
	CodeFloat      byte = 0x72
	CodeUlong      byte = 0x80
	CodeLong       byte = 0x81
	CodeDouble     byte = 0x82
	CodeTimestamp  byte = 0x83
	CodeUUID       byte = 0x98
	CodeBin8       byte = 0xa0
	CodeStr8       byte = 0xa1
	CodeSym8       byte = 0xa3
	CodeBin32      byte = 0xb0
	CodeStr32      byte = 0xb1
	CodeSym32      byte = 0xb3
	CodeList8      byte = 0xc0
	CodeMap8       byte = 0xc1
	CodeList32     byte = 0xd0
	CodeMap32      byte = 0xd1
	CodeArray8     byte = 0xe0
	CodeArray32    byte = 0xf0
)

// Descriptor is the type of a described value (Types, section 1.2). The zero value stands for none, and for symbolic
// descriptors except for [SelectorFilterName]: no broker sends others.
type Descriptor uint64

// Descriptors of performatives (Transport, section 2.7), delivery states and termini (Messaging, sections 3.4 and 3.5),
// transactions (Transactions, section 4.5), SASL frames (Security, section 5.3.3) and message sections (Messaging,
// section 3.2).
const (
	DescOpen        Descriptor = 0x10
	DescBegin       Descriptor = 0x11
	DescAttach      Descriptor = 0x12
	DescFlow        Descriptor = 0x13
	DescTransfer    Descriptor = 0x14
	DescDisposition Descriptor = 0x15
	DescDetach      Descriptor = 0x16
	DescEnd         Descriptor = 0x17
	DescClose       Descriptor = 0x18
	DescError       Descriptor = 0x1d

	DescReceived Descriptor = 0x23
	DescAccepted Descriptor = 0x24
	DescRejected Descriptor = 0x25
	DescReleased Descriptor = 0x26
	DescModified Descriptor = 0x27
	DescSource   Descriptor = 0x28
	DescTarget   Descriptor = 0x29

	DescCoordinator        Descriptor = 0x30
	DescDeclare            Descriptor = 0x31
	DescDischarge          Descriptor = 0x32
	DescDeclared           Descriptor = 0x33
	DescTransactionalState Descriptor = 0x34

	DescMechanisms Descriptor = 0x40
	DescInit       Descriptor = 0x41
	DescChallenge  Descriptor = 0x42
	DescResponse   Descriptor = 0x43
	DescOutcome    Descriptor = 0x44

	DescHeader                Descriptor = 0x70
	DescDeliveryAnnotations   Descriptor = 0x71
	DescMessageAnnotations    Descriptor = 0x72
	DescProperties            Descriptor = 0x73
	DescApplicationProperties Descriptor = 0x74
	DescData                  Descriptor = 0x75
	DescSequence              Descriptor = 0x76
	DescValue                 Descriptor = 0x77
	DescFooter                Descriptor = 0x78

	// DescSelector is a filter of messages by a JMS selector (AMQP capability registry, filters; domain 0x468c is
	// Apache's).
	DescSelector Descriptor = 0x0000468c_00000004
)

// SelectorFilterName is the symbolic form of [DescSelector], and the usual name of such a filter.
const SelectorFilterName = "apache.org:selector-filter:string"

// sectionName returns the name of a section of messages (Messaging, section 3.2).
func sectionName(d Descriptor) string {
	return [...]string{
		"header", "delivery-annotations", "message-annotations", "properties", "application-properties", "data",
		"amqp-sequence", "amqp-value", "footer",
	}[d-DescHeader]
}
