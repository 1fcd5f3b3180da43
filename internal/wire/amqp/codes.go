package amqp

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
