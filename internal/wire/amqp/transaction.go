package amqp

// AppendDeclare appends a message that asks a coordinator for a transaction (Transactions, section 4.5.2). The answer
// is the state [DescDeclared].
func AppendDeclare(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDeclare)
	return w.finish()
}

// Discharge ends a transaction (Transactions, section 4.5.3). It is the amqp-value of a message. The answer is
// accepted, or rejected with the reason why the transaction was rolled back.
type Discharge struct {
	TxnID []byte // mandatory
	Fail  bool   // roll back
}

// AppendMessage appends a message for the coordinator. It says fail even if it is false, the default: Artemis 2.56 and
// ActiveMQ Classic 6 answer a discharge without it by an error.
func (d *Discharge) AppendMessage(b []byte) []byte {
	w := beginList(AppendDescriptor(b, DescValue), DescDischarge)
	w.binary(d.TxnID)
	w.boolean(d.Fail)
	return w.finish()
}

// Decode reads the fields; see [ParseBody], which reads [Message.Body] as well. It fails with a *[DecodeError].
func (d *Discharge) Decode(f *Decoder) error {
	*d = Discharge{TxnID: f.mustBinary(), Fail: f.Bool()}
	return f.wrap("discharge")
}
