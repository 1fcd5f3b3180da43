package driver

import (
	"bytes"
	"math"
	"strconv"
)

// IDProperty is the name of the message property that carries an [ID], as the text that [ID.Append] writes. It is one
// property and not one for each part because brokers spend time on each: see docs/lab/verification.md.
const IDProperty = "perfmq_id"

// MaxIDText is the largest length of the text of an [ID] in bytes.
const MaxIDText = 5*maxDigits + 4

const maxDigits = 19 // of an int64

// idSeparator separates the parts. No protocol has to escape it.
const idSeparator = '-'

// ID tells one message from all others, so that received messages can be checked against sent messages. The zero value
// means no ID.
type ID struct {
	Run      int64 // of the sending process; above zero
	Producer int64 // within the run, from 0
	Number   int64 // of the producer's messages, from 0 and without gaps; [Unnumbered] if they are not numbered
	Sum      int64 // checksum of run, producer, number and body; 0 if Number is Unnumbered. Drivers only carry it
	// Delay is the time in milliseconds after the send for which the broker must hold the message back, so that a consumer
	// can tell a delayed message from a late one; 0 for none. A driver that delays messages by an option of its own sets
	// it.
	Delay int64
}

// Unnumbered is the [ID.Number] of messages that identify only their run and producer.
const Unnumbered = -1

// Append appends the text of the ID to b: run, producer, number and sum, in decimal, with a hyphen between them, such
// as 6130672371284362087-0-9999-4011327420186375208, or run and producer alone if it is [Unnumbered]; and the delay
// last, if there is one. It does not allocate if b has room for [MaxIDText] bytes more.
func (id *ID) Append(b []byte) []byte {
	b = append(strconv.AppendInt(b, id.Run, 10), idSeparator)
	b = strconv.AppendInt(b, id.Producer, 10)
	if id.Number != Unnumbered {
		b = strconv.AppendInt(append(b, idSeparator), id.Number, 10)
		b = strconv.AppendInt(append(b, idSeparator), id.Sum, 10)
	}
	if id.Delay > 0 {
		b = strconv.AppendInt(append(b, idSeparator), id.Delay, 10)
	}
	return b
}

// GarbledID returns the result of [ParseID] for a text that is not an ID. No message is sent with it.
func GarbledID() ID { return ID{Run: -1} }

// ParseID returns the ID with that text, or [GarbledID] if the text is not exactly as [ID.Append] writes it: each ID
// has exactly one text. It does not allocate.
func ParseID[T string | []byte](text T) ID {
	var parts [5]int64
	part, digits, n := 0, 0, uint64(0)
	for i := range len(text) + 1 {
		if i < len(text) && text[i] != idSeparator {
			d := text[i] - '0'
			if digits++; d > 9 || digits > maxDigits || digits > 1 && n == 0 {
				return GarbledID()
			}
			n = n*10 + uint64(d)
			continue
		}
		if digits == 0 || part == len(parts) || n > math.MaxInt64 {
			return GarbledID()
		}
		parts[part] = int64(n) //nolint:gosec // checked
		part, digits, n = part+1, 0, 0
	}
	delayed := part == 3 || part == 5
	if part < 2 || parts[0] == 0 || delayed && parts[part-1] == 0 {
		return GarbledID()
	}
	id := ID{Run: parts[0], Producer: parts[1], Number: Unnumbered}
	if delayed {
		id.Delay = parts[part-1]
	}
	if part >= 4 {
		id.Number, id.Sum = parts[2], parts[3]
	}
	return id
}

// IDReader reads the IDs of the messages of one consumer. Without --verify all messages of a producer carry the same
// text, so it compares the text with the last one before parsing. The zero value is ready to use; not for concurrent
// use.
type IDReader struct {
	text []byte
	id   ID
}

// Read returns the same ID as [ParseID]. It does not keep text, and allocates only for its copy of a text that is
// longer than all earlier ones.
func (r *IDReader) Read(text []byte) ID {
	if len(text) > 0 && bytes.Equal(text, r.text) {
		return r.id
	}
	id := ParseID(text)
	if id.Number == Unnumbered {
		r.text, r.id = append(r.text[:0], text...), id
	}
	return id
}
