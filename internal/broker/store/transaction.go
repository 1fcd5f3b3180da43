package store

import "slices"

// Transaction holds the messages of a client until their commit. It is for one goroutine.
type Transaction struct {
	// Failed means that a bound was exceeded: the transaction holds nothing and is not to be committed.
	Failed bool
	Held   int64 // bytes

	account *Account
	sends   []*Message
	to      []*Destination // of each of sends
}

// maxTransaction bounds an uncommitted transaction, in bytes.
const maxTransaction = 64 << 20

// Begin begins a transaction of the client.
func (a *Account) Begin() Transaction { return Transaction{account: a} }

// Hold accounts for bytes of the transaction, until its end. It returns false for a transaction that has failed.
func (t *Transaction) Hold(bytes int64) bool {
	if t.Failed || t.Held+bytes > maxTransaction || !t.account.Take(bytes) {
		t.End()
		t.Failed = true
		return false
	}
	t.Held += bytes
	return true
}

// Send keeps a message until the commit. It returns false as Hold does.
func (t *Transaction) Send(d *Destination, m *Message) bool {
	if !t.Hold(m.size()) {
		return false
	}
	t.sends, t.to = append(t.sends, m), append(t.to, d)
	return true
}

// WithoutRoom returns a destination of the messages that has no room, or nil.
func (t *Transaction) WithoutRoom() *Destination {
	if i := slices.IndexFunc(t.to, func(d *Destination) bool { return !d.Room(nil) }); i >= 0 {
		return t.to[i]
	}
	return nil
}

// Commit sends all messages and ends the transaction. With [Config.Reject], if one of the destinations has no room,
// it sends none, counts all as refused, and returns the destination. withheld means that the fault withholds the
// confirmation.
func (t *Transaction) Commit() (withheld bool, full *Destination) {
	defer t.End()
	if len(t.to) > 0 && t.to[0].store.Rejects() {
		if full = t.WithoutRoom(); full != nil {
			for _, d := range t.to {
				d.CountRefused(1)
			}
			return false, full
		}
	}
	for i, m := range t.sends {
		d := t.to[i]
		d.store.waitForStall()
		// Even if the room was used since: a part of the transaction may be stored already.
		withheld = d.take(m) == Withheld || withheld
	}
	return withheld, nil
}

// End discards the messages not committed.
func (t *Transaction) End() {
	t.account.Give(t.Held)
	t.sends, t.to, t.Held = nil, nil, 0
}
