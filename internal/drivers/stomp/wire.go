package stomp

import (
	"math"
	"strconv"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// unescape undoes [wire.Version.AppendEscaped]. Unknown escapes stay: the text is only quoted.
func unescape(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\c`, ":").Replace(s)
}

// appendChecked appends header lines, or says which of them cannot be written.
func appendChecked(v wire.Version, b []byte, headers []driver.Property) ([]byte, error) {
	for _, h := range headers {
		if !v.Keeps(h.Value) {
			return nil, errCannotCarry(v, h.Key, h.Value)
		}
		b = v.AppendHeader(b, h.Key, h.Value)
	}
	return b, nil
}

// Receipts are named after their subject, so that the reader needs no table to find it:
//
//	s<producer>.<index>.<generation>   a message, by its slot
//	t<producer>.<transaction>          the commit of messages that were sent
//	r<consumer>.<transaction>          the commit of messages that were received
//	c<request>                         anything else
const (
	receiptOfSend    = 's'
	receiptOfCommit  = 't'
	receiptOfReceive = 'r'
	receiptOfRequest = 'c'
)

// receipt is a parsed receipt-id.
type receipt struct {
	kind   byte
	owner  uint64      // the producer or consumer
	slot   driver.Slot // of a message
	number uint64      // of the transaction or request
}

func (r receipt) append(b []byte) []byte {
	b = append(b, r.kind)
	if r.kind != receiptOfRequest {
		b = append(strconv.AppendUint(b, r.owner, 10), '.')
	}
	if r.kind == receiptOfSend {
		b = append(strconv.AppendUint(b, uint64(r.slot.Index()), 10), '.')
		return strconv.AppendUint(b, uint64(r.slot.Generation()), 10)
	}
	return strconv.AppendUint(b, r.number, 10)
}

func (r receipt) String() string { return string(r.append(nil)) }

// parseReceipt reads a receipt-id; ok is false when it is none of ours.
func parseReceipt(b []byte) (r receipt, ok bool) {
	if len(b) == 0 {
		return r, false
	}
	r.kind = b[0]
	rest := b[1:]
	switch r.kind {
	case receiptOfSend, receiptOfCommit, receiptOfReceive:
		if r.owner, rest, ok = cutNumber(rest, '.'); !ok {
			return r, false
		}
	case receiptOfRequest:
	default:
		return r, false
	}
	var index uint64
	if r.kind == receiptOfSend {
		if index, rest, ok = cutNumber(rest, '.'); !ok {
			return r, false
		}
	}
	if r.number, ok = wire.ParseNumber(rest); r.kind == receiptOfSend {
		ok = ok && index <= math.MaxUint32 && r.number <= math.MaxUint32
		r.slot, r.number = driver.NewSlot(uint32(index), uint32(r.number)), 0 //nolint:gosec // checked
	}
	return r, ok
}

// cutNumber reads a decimal number up to the byte end, or up to the end of b if end is 0.
func cutNumber(b []byte, end byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		switch {
		case c == end && end != 0:
			return n, b[i+1:], i > 0
		case c < '0' || c > '9' || i >= 19: // 19 digits always fit
			return 0, nil, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, nil, end == 0 && len(b) > 0
}
