package stomp

import (
	"math"
	"strconv"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// unescape reverses [wire.AppendEscaped]. Unknown escapes stay: the text is only quoted.
func unescape(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\c`, ":").Replace(s)
}

// appendChecked appends header lines, or reports which of them cannot be encoded.
func appendChecked(b []byte, headers []driver.Property) ([]byte, error) {
	for _, h := range headers {
		if !wire.Carries(h.Value) {
			return nil, errCannotCarry(h.Key, h.Value)
		}
		b = wire.AppendHeader(b, h.Key, h.Value)
	}
	return b, nil
}

// Receipts are named after their subject, so that the reader needs no table:
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

// parseReceipt parses a receipt-id; ok is false if it is not one of ours.
func parseReceipt(b []byte) (r receipt, ok bool) {
	var numbers [3]uint64
	number, n, digits := uint64(0), 0, 0
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '.' && digits > 0 && n < len(numbers)-1:
			numbers[n] = number
			number, n, digits = 0, n+1, 0
		case c >= '0' && c <= '9' && digits < wire.MaxDigits:
			number, digits = number*10+uint64(c-'0'), digits+1
		default:
			return r, false
		}
	}
	if digits == 0 {
		return r, false
	}
	numbers[n] = number
	switch r.kind, r.owner = b[0], numbers[0]; r.kind {
	case receiptOfSend:
		ok = n == 2 && numbers[1] <= math.MaxUint32 && numbers[2] <= math.MaxUint32
		r.slot = driver.NewSlot(uint32(numbers[1]), uint32(numbers[2])) //nolint:gosec // checked
	case receiptOfCommit, receiptOfReceive:
		ok, r.number = n == 1, numbers[1]
	case receiptOfRequest:
		ok, r.owner, r.number = n == 0, 0, numbers[0]
	}
	return r, ok
}
