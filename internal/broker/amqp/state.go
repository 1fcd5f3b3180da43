package amqp

// outcome is what a receiver made of a delivery.
type outcome struct {
	kind   uint64 // a descriptor; 0 for none
	failed bool   // of modified: delivery-failed
	refuse bool   // of modified: undeliverable-here
	txn    []byte // of a transactional state: the transaction, and kind is the provisional outcome
	inTxn  bool
}

// terminal tells whether the state ends a delivery.
func (o outcome) terminal() bool { return o.kind >= descAccepted && o.kind <= descModified }

// readOutcome reads an encoded delivery state; nil is none.
func readOutcome(raw []byte) (outcome, bool) {
	if raw == nil {
		return outcome{}, true
	}
	f := values(raw)
	o := f.outcome(true)
	return o, !f.bad
}

func (f *fields) outcome(outer bool) (o outcome) {
	o.kind = f.described()
	list, ok := f.list()
	if !ok {
		f.fail()
		return o
	}
	switch o.kind {
	case descReceived, descAccepted, descRejected, descReleased, descDeclared:
	case descModified:
		o.failed, o.refuse = list.boolean(), list.boolean()
	case descTxState:
		if !outer {
			f.fail()
			return o
		}
		o = outcome{txn: list.binary(), inTxn: true}
		if inner := list.raw(); inner != nil {
			v := values(inner)
			provisional := v.outcome(false)
			o.kind, o.failed, o.refuse = provisional.kind, provisional.failed, provisional.refuse
			list.bad = list.bad || v.bad
		}
	default:
		f.fail()
	}
	if list.bad {
		f.fail()
	}
	return o
}

// acceptedState is the encoded state accepted.
func acceptedState() []byte { return []byte{codeDescribed, codeSmallUlong, descAccepted, codeList0} }

func appendRejected(b []byte, e *failure) []byte {
	b, at := beginDescribed(b, descRejected)
	return finish(appendError(b, e), at, 1)
}

func appendDeclared(b, txn []byte) []byte {
	b, at := beginDescribed(b, descDeclared)
	return finish(appendBinary(b, txn), at, 1)
}

func appendTxState(b, txn, provisional []byte) []byte {
	b, at := beginDescribed(b, descTxState)
	return finish(appendRaw(appendBinary(b, txn), provisional), at, 2)
}

// terminus is a source, a target or a coordinator.
type terminus struct {
	kind         uint64 // a descriptor; 0 for null
	address      string
	hasAddress   bool
	durability   uint32
	expiry       string
	dynamic      bool
	nodeProps    []byte
	copies       bool       // of a source: distribution mode copy
	filters      []filterOf // of a source
	settles      []byte     // of a source: default outcome
	capabilities []string
}

// filterOf is an entry of a source's filter set.
type filterOf struct {
	name       string
	descriptor uint64
	text       string // the value, if it is one
	raw        []byte // the value as it came, with its descriptor
}

// Terminus expiry (Messaging, section 3.5.6) and durability (section 3.5.5).
const (
	expireNever      = "never"
	expireSessionEnd = "session-end"
	unsettledState   = 2
)

func (f *fields) terminus() (t terminus) {
	raw := f.raw()
	if raw == nil {
		return t
	}
	in := values(raw)
	t.kind = in.described()
	list, ok := in.list()
	if !ok || t.kind != descSource && t.kind != descTarget && t.kind != descCoordinator {
		f.fail()
		return t
	}
	if t.kind == descCoordinator {
		return t
	}
	if address := list.str(); address != nil {
		t.address, t.hasAddress = string(address), true
	}
	t.durability = list.uintOr(0)
	if t.expiry = string(list.symbol()); t.expiry == "" {
		t.expiry = expireSessionEnd
	}
	list.uint() // timeout
	t.dynamic = list.boolean()
	t.nodeProps = list.raw()
	if t.kind == descSource {
		t.copies = string(list.symbol()) == "copy"
		set := list.pairs()
		t.filters = set.filters()
		list.bad = list.bad || set.bad
		t.settles = list.raw()
		list.raw() // outcomes
	}
	t.capabilities = list.symbols()
	if list.bad {
		f.fail()
	}
	return t
}

func (f *fields) filters() (list []filterOf) {
	for f.n > 0 && !f.bad {
		e := filterOf{name: string(f.symbol()), raw: f.raw()}
		if e.raw == nil {
			continue
		}
		in := values(e.raw)
		if e.raw[0] == codeDescribed {
			e.descriptor = in.described()
		}
		e.text, _ = in.scalar().(string)
		f.bad = f.bad || in.bad
		list = append(list, e)
	}
	return list
}

func (t *terminus) can(capability string) bool {
	for _, c := range t.capabilities {
		if c == capability {
			return true
		}
	}
	return false
}

func appendTerminus(b []byte, t *terminus) []byte {
	if t.kind == 0 {
		return appendNull(b)
	}
	b, at := beginDescribed(b, t.kind)
	if t.kind == descCoordinator {
		return finish(appendSymbols(b, []string{"amqp:local-transactions", "amqp:multi-txns-per-ssn"}), at, 1)
	}
	if t.hasAddress {
		b = appendStr(b, t.address)
	} else {
		b = appendNull(b)
	}
	b = appendSymbol(appendUint(b, t.durability), t.expiry)
	b = appendBool(appendUint(b, 0), t.dynamic)
	b = appendRaw(b, t.nodeProps)
	if t.kind == descTarget {
		return finish(appendSymbols(b, t.capabilities), at, 7)
	}
	b = appendNull(b) // distribution mode
	if len(t.filters) == 0 {
		b = appendNull(b)
	} else {
		var set int
		b, set = begin(b, codeMap32)
		for _, e := range t.filters {
			b = append(appendSymbol(b, e.name), e.raw...)
		}
		b = finish(b, set, 2*len(t.filters))
	}
	b = appendRaw(b, t.settles)
	b = appendSymbols(b, []string{"amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"})
	return finish(appendSymbols(b, t.capabilities), at, 11)
}
