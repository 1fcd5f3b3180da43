package amqp_test

import (
	"math"
	"testing"

	client "github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// FuzzMessageBesideGoAMQP: a message that we and go-amqp can read is the same to both. Which malformed ones are refused
// may differ.
func FuzzMessageBesideGoAMQP(f *testing.F) {
	for _, g := range readGolden(f, "messages.golden") {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m amqp.Message
		var p amqp.Properties
		if m.Decode(b) != nil || p.Decode(m.Properties) != nil || !plain(t, b) {
			return
		}
		var theirs client.Message
		if err := theirs.UnmarshalBinary(b); err != nil {
			return
		}
		sameMessage(t, b, &theirs)
		again, err := theirs.MarshalBinary()
		if err != nil || m.BodyKind == amqp.DescValue && theirs.Value == nil {
			return // it has no UTF-8, or go-amqp drops a null
		}
		sameMessage(t, again, &theirs)
	})
}

// plain reports whether both sides can show the content of a message: no nested values, no key twice, no unknown
// properties, nothing behind the last value of a list, where go-amqp reads on, and no malformed value in a body, which
// we read on request.
func plain(t testing.TB, b []byte) bool {
	t.Helper()
	for d := amqp.NewDecoder(b); d.More(); {
		switch section := d.Descriptor(); section {
		case amqp.DescData:
			d.Skip()
		case amqp.DescValue:
			if !shown(&d) || d.Err() != nil {
				return false
			}
		case amqp.DescHeader, amqp.DescProperties, amqp.DescSequence:
			list, _ := d.List()
			if section != amqp.DescSequence && list.Len() > 13 || !plainValues(t, &list, false) {
				return false
			}
		default:
			pairs, _ := d.Map()
			if !plainValues(t, &pairs, true) {
				return false
			}
		}
	}
	return true
}

// plainValues reads a list or a map.
func plainValues(t testing.TB, in *amqp.Decoder, isMap bool) bool {
	t.Helper()
	keys := map[any]bool{}
	for i := 0; in.More(); i++ {
		key := *in
		if !shown(in) {
			return false
		}
		if isMap && i%2 == 0 {
			k := key.Scalar()
			if _, isBytes := k.([]byte); isBytes || keys[k] {
				return false
			}
			keys[k] = true
		}
	}
	return in.Err() == nil && len(in.Rest()) == 0
}

// shown reads a value, and reports whether go-amqp has its type, and it can be compared.
func shown(d *amqp.Decoder) bool {
	null := d.Peek() == amqp.CodeNull
	v := d.Scalar()
	number, isFloat := v.(float64)
	return (v != nil || null) && !(isFloat && math.IsNaN(number))
}
