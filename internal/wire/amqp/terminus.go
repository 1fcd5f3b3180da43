package amqp

// The parts of a terminus that are kept when its link or its broker goes (Messaging, section 3.5.5).
const (
	DurableNone           uint32 = 0
	DurableConfiguration  uint32 = 1
	DurableUnsettledState uint32 = 2
)

// When a terminus that nothing is attached to begins to expire (Messaging, section 3.5.6).
const (
	ExpireLinkDetach = "link-detach"
	ExpireSessionEnd = "session-end" // the default
	ExpireNever      = "never"
)

// DistributionCopy is the mode of a source that leaves its messages to others, too (Messaging, section 3.5.7).
const DistributionCopy = "copy"

// Capabilities of a coordinator (Transactions, section 4.5.7).
const (
	TxnLocal           = "amqp:local-transactions"
	TxnMultiPerSession = "amqp:multi-txns-per-ssn"
)

// Terminus is a source (Messaging, section 3.5.3), a target (section 3.5.4), a coordinator (Transactions, section
// 4.5.1) or null. Strings are copies; encoded values are within the frame.
type Terminus struct {
	// Kind is [DescSource], [DescTarget] or [DescCoordinator]; 0 for null. A coordinator has Capabilities alone.
	Kind Descriptor
	// Address is absent in an anonymous target, and where Dynamic asks for one.
	Address Opt[string]
	// Durable is one of the constants; default [DurableNone].
	Durable uint32
	// ExpiryPolicy is one of the constants. Decoding an absent one gives the default; encoding leaves out "" and the
	// default.
	ExpiryPolicy string
	// Dynamic: the node is made for the link.
	Dynamic bool

	// Of a source alone.

	// DistributionMode is [DistributionCopy] or "move"; "": none.
	DistributionMode string
	// Selector is a JMS selector of the messages: as wished in the receiver's attach, as in place in the sender's.
	// Other filters are not read.
	Selector Opt[string]
	// Filters are other filters as wished in the receiver's attach.
	Filters []Filter
	// Outcomes are the symbolic descriptors of the outcomes in use, such as "amqp:accepted:list".
	Outcomes []string

	Capabilities []string
}

// Filter is a filter of a source: its symbolic descriptor, which also is its key, and its encoded value.
type Filter struct {
	Name  string
	Value []byte
}

func (d *Decoder) terminus() (t Terminus) {
	if d.Peek() == CodeNull {
		d.Skip()
		return t
	}
	kind := d.Descriptor()
	list, ok := d.List()
	switch {
	case d.err != nil:
		return Terminus{}
	case !ok:
		d.fail(ErrType)
		return Terminus{}
	case kind == DescCoordinator:
		t = Terminus{Kind: kind, Capabilities: list.Symbols()}
		d.join(&list, "coordinator")
		return t
	case kind != DescSource && kind != DescTarget:
		d.fail(ErrDescriptor)
		return Terminus{}
	}
	t = Terminus{
		Kind:         kind,
		Address:      list.optText(),
		Durable:      list.Uint().Or(DurableNone),
		ExpiryPolicy: list.text(),
	}
	list.Skip() // how long an expiring terminus is kept
	t.Dynamic = list.Bool()
	list.Skip() // properties of a dynamic node
	if t.ExpiryPolicy == "" {
		t.ExpiryPolicy = ExpireSessionEnd
	}
	name := "target"
	if kind == DescSource {
		name = "source"
		t.DistributionMode = list.text()
		t.Selector = list.selector()
		list.Skip() // default outcome
		t.Outcomes = list.Symbols()
	}
	t.Capabilities = list.Symbols()
	d.join(&list, name)
	return t
}

// selector returns the selector of a filter set (Messaging, section 3.5.8).
func (d *Decoder) selector() (found Opt[string]) {
	pairs, _ := d.Map()
	for pairs.More() {
		isSelector, raw := pairs.text() == SelectorFilterName, pairs.Raw()
		value := NewDecoder(raw)
		if value.Peek() == CodeDescribed && value.Descriptor() == DescSelector {
			isSelector = true
		}
		if raw != nil && isSelector {
			text, _ := value.Text()
			found = Some(string(text))
		}
	}
	d.join(&pairs, "filter-set")
	return found
}

func (w *listWriter) terminus(t *Terminus) {
	if t.Kind == 0 {
		w.null()
		return
	}
	inner := beginList(w.b, t.Kind)
	if t.Kind != DescCoordinator {
		inner.terminusFields(t)
	}
	inner.symbols(t.Capabilities)
	w.field(inner.finish(), true)
}

func (w *listWriter) terminusFields(t *Terminus) {
	w.field(AppendStr(w.b, t.Address.V), t.Address.OK)
	w.uintOr(t.Durable, DurableNone)
	w.field(AppendSymbol(w.b, t.ExpiryPolicy), t.ExpiryPolicy != "" && t.ExpiryPolicy != ExpireSessionEnd)
	w.null() // how long an expiring terminus is kept
	w.flag(t.Dynamic)
	w.null() // properties of a dynamic node
	if t.Kind == DescTarget {
		return
	}
	w.symbol(t.DistributionMode)
	w.filters(t)
	w.null() // default outcome
	w.symbols(t.Outcomes)
}

func (w *listWriter) filters(t *Terminus) {
	at, n := len(w.b), len(t.Filters)
	b := BeginMap(w.b)
	if t.Selector.OK {
		b = AppendStr(AppendDescriptor(AppendSymbol(b, SelectorFilterName), DescSelector), t.Selector.V)
		n++
	}
	for _, f := range t.Filters {
		b = append(AppendSymbol(append(AppendSymbol(b, f.Name), CodeDescribed), f.Name), f.Value...)
	}
	EndCompound(b, at, 2*n)
	w.field(b, n > 0)
}
