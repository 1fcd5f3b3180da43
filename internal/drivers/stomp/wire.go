package stomp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
)

// version is a version of the protocol. The zero value means that it is to be negotiated.
type version uint8

// The versions there are.
const (
	v10 version = 10
	v11 version = 11
	v12 version = 12
)

// parseVersion reads the version header of a CONNECTED frame; a STOMP 1.0 server sends none.
func parseVersion(s string) (version, bool) {
	switch s {
	case "", "1.0":
		return v10, true
	case "1.1":
		return v11, true
	case "1.2":
		return v12, true
	default:
		return 0, false
	}
}

// String returns the version as the protocol writes it.
func (v version) String() string { return fmt.Sprintf("%d.%d", v/10, v%10) }

// carries reports whether a header can hold s. STOMP 1.0 has no way to write a line feed, 1.1 none for a carriage
// return (STOMP 1.2, "Value Encoding"), and a NUL ends the frame for some brokers wherever it stands.
func (v version) carries(s string) bool {
	switch {
	case strings.ContainsRune(s, 0):
		return false
	case v == v12:
		return true
	case v == v11:
		return !strings.ContainsRune(s, '\r')
	default:
		return !strings.ContainsAny(s, "\r\n")
	}
}

// keeps reports whether a peer reads s as it is written. That of STOMP 1.0 may leave out blanks around the value of a header.
func (v version) keeps(s string) bool {
	return v.carries(s) && (v != v10 || s == strings.TrimSpace(s))
}

// carriesKey is carries for the name of a header.
func (v version) carriesKey(s string) bool {
	return s != "" && v.carries(s) && (v != v10 || !strings.ContainsRune(s, ':'))
}

// appendEscaped appends s as the version writes it in a header of any frame but CONNECT and CONNECTED.
func (v version) appendEscaped(b []byte, s string) []byte {
	if v == v10 {
		return append(b, s...)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == ':':
			b = append(b, '\\', 'c')
		case c == '\r' && v == v12:
			b = append(b, '\\', 'r')
		default:
			b = append(b, c)
		}
	}
	return b
}

// unescape undoes appendEscaped. What is no escape stays: it is only quoted.
func unescape(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\c`, ":").Replace(s)
}

// appendHeader appends one header line.
func (v version) appendHeader(b []byte, key, value string) []byte {
	b = append(v.appendEscaped(b, key), ':')
	return append(v.appendEscaped(b, value), '\n')
}

// appendChecked appends header lines, or says which of them cannot be written.
func (v version) appendChecked(b []byte, headers []driver.Property) ([]byte, error) {
	for _, h := range headers {
		if !v.keeps(h.Value) {
			return nil, errCannotCarry(v, h.Key, h.Value)
		}
		b = v.appendHeader(b, h.Key, h.Value)
	}
	return b, nil
}

// appendFrame appends f. The frame package's own writer is of no use here: it escapes as in STOMP 1.2 whatever the
// version, and in CONNECT too, where a passcode with a colon would arrive as another one; and it flushes each frame.
func (v version) appendFrame(b []byte, f *frame.Frame) []byte {
	if f.Command == frame.CONNECT {
		v = v10 // "CONNECT and CONNECTED frames do not escape" (STOMP 1.2, "Value Encoding")
	}
	b = append(append(b, f.Command...), '\n')
	for i := range f.Header.Len() {
		key, value := f.Header.GetAt(i)
		b = v.appendHeader(b, key, value)
	}
	b = append(b, '\n')
	return append(append(b, f.Body...), 0)
}

// Receipts are named by what they belong to, so that the reader needs no table to find it:
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
	if r.number, _, ok = cutNumber(rest, 0); r.kind == receiptOfSend {
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
