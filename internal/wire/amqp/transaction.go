package amqp

// Declare asks a coordinator for a transaction (Transactions, section 4.5.2). It is the amqp-value of a message. The
// answer is the state [DescDeclared].
type Declare struct {
	GlobalID []byte // encoded, of a distributed transaction; nil: none
}

// Discharge ends a transaction (Transactions, section 4.5.3). It is the amqp-value of a message. The answer is
// accepted, or rejected with the reason why the transaction was rolled back.
type Discharge struct {
	TxnID []byte // mandatory
	Fail  bool   // roll back
}

// AppendMessage appends a message for the coordinator.
func (d *Declare) AppendMessage(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDeclare)
	w.raw(d.GlobalID)
	return w.finish()
}

// AppendMessage appends a message for the coordinator.
func (d *Discharge) AppendMessage(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDischarge)
	w.b = AppendBinary(w.b, d.TxnID)
	w.set()
	w.flag(d.Fail)
	return w.finish()
}

// Decode reads the fields; see [ParseBody], which reads [Message.Body] as well. It fails with a *[DecodeError].
func (d *Declare) Decode(f *Decoder) error {
	*d = Declare{GlobalID: f.Raw()}
	return f.wrap("declare")
}

// Decode reads the fields; see [ParseBody], which reads [Message.Body] as well. It fails with a *[DecodeError].
func (d *Discharge) Decode(f *Decoder) error {
	*d = Discharge{TxnID: f.mustBinary(), Fail: f.Bool()}
	return f.wrap("discharge")
}
