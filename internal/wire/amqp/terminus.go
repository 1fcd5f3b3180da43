package amqp

// The parts of a terminus that are kept when its link or its broker goes (Messaging, section 3.5.5).
const (
	DurableNone           uint32 = 0
	DurableConfiguration  uint32 = 1
	DurableUnsettledState uint32 = 2
)

// When a terminus that nothing is attached to begins to expire (Messaging, section 3.5.6).
const (
	ExpireLinkDetach      = "link-detach"
	ExpireSessionEnd      = "session-end" // the default
	ExpireConnectionClose = "connection-close"
	ExpireNever           = "never"
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
	// Filters restrict which messages go over the link: as wished in the receiver's attach, as in place in the
	// sender's. At most [MaxEntries].
	Filters []Filter
	// Outcomes are the symbolic descriptors of the outcomes in use, such as "amqp:accepted:list".
	Outcomes []string

	Capabilities []string
}

// Filter is an entry of a filter set (Messaging, section 3.5.8).
type Filter struct {
	Name       string
	Descriptor Descriptor // of the value; 0: it is not described, or by an unknown symbol
	Text       string     // the value, if it is a string or symbol
	Value      []byte     // encoded, with its descriptor
}

// SelectorFilter returns a filter by a JMS selector.
func SelectorFilter(selector string) Filter {
	return Filter{
		Name: SelectorFilterName, Descriptor: DescSelector, Text: selector,
		Value: AppendStr(AppendDescriptor(nil, DescSelector), selector),
	}
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
		t.Filters = list.filters()
		list.Skip() // default outcome
		t.Outcomes = list.Symbols()
	}
	t.Capabilities = list.Symbols()
	d.join(&list, name)
	return t
}

func (d *Decoder) filters() (list []Filter) {
	pairs, ok := d.Map()
	if !ok {
		return nil
	}
	if pairs.n > 2*MaxEntries {
		d.fail(ErrCount)
		return nil
	}
	for pairs.More() {
		f := Filter{Name: pairs.text(), Value: pairs.Raw()}
		if f.Value == nil {
			continue
		}
		value := NewDecoder(f.Value)
		if value.Peek() == CodeDescribed {
			f.Descriptor = value.Descriptor()
		}
		switch value.Peek() {
		case CodeStr8, CodeStr32, CodeSym8, CodeSym32:
			f.Text = value.text()
		}
		list = append(list, f)
	}
	if !d.join(&pairs, "filter-set") {
		return nil
	}
	return list
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
	w.filters(t.Filters)
	w.null() // default outcome
	w.symbols(t.Outcomes)
}

func (w *listWriter) filters(list []Filter) {
	if len(list) == 0 {
		w.null()
		return
	}
	at := len(w.b)
	b := BeginMap(w.b)
	for _, f := range list {
		b = append(AppendSymbol(b, f.Name), f.Value...)
	}
	EndCompound(b, at, 2*len(list))
	w.field(b, true)
}
