package amqp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// TestForeignFrames: encodings that other implementations write, and we do not.
func TestForeignFrames(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      frame
	}{
		{"open of symbols alone", "00 53 10 c0 30 0a a3 01 63 40 40 40 40 a3 05 656e2d5553 e0 08 01 a3 05 656e2d5553" +
			" a3 01 61 e0 02 00 a3 d1 0000000b 00000002 a3 01 6b a1 02 7676", &amqp.Open{
			ContainerID: "c", OfferedCapabilities: []string{"a"},
			Properties: []byte{0xd1, 0, 0, 0, 11, 0, 0, 0, 2, 0xa3, 1, 'k', 0xa1, 2, 'v', 'v'},
		}},
		{
			"begin with all the width", "00 80 0000000000000011 d0 0000001b 00000005 60 0000 70 00000001 70 00000002 70 00000003 70 000003ff",
			&amqp.Begin{
				RemoteChannel: amqp.Some[uint16](0), NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 3, HandleMax: amqp.Some[uint32](1023),
			},
		},
		{"flow of nulls at the end", "00 53 13 c0 0c 0b 40 43 43 43 40 40 40 40 40 40 40", &amqp.Flow{}},
		{"detach with a boolean in a byte", "00 53 16 c0 05 02 52 07 56 01", &amqp.Detach{Handle: 7, Closed: true}},
		{
			"end with a symbol for a description", "00 53 17 c0 0d 01 00 53 1d c0 07 02 a3 01 63 a3 01 64",
			&amqp.End{Error: &amqp.Error{Condition: "c", Description: "d"}},
		},
		{"end with more fields than there are", "00 53 17 c0 03 02 40 40", &amqp.End{}},
		{"close, wide and empty", "00 53 18 d0 00000004 00000000", &amqp.End{}},
		{"discharge", "00 53 32 c0 05 02 a0 01 07 41", &amqp.Discharge{TxnID: []byte{7}, Fail: true}},
	} {
		p, err := amqp.ParseBody(unhex(t, c.hex))
		require.NoError(t, err, c.name)
		got := blank(p.Kind)
		require.NoError(t, got.Decode(&p.Fields), c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

// TestMalformedFrames: errors name the place.
func TestMalformedFrames(t *testing.T) {
	for _, c := range []struct {
		hex, says string
		want      error
	}{
		{"00 53 10 45", "open: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 11 c0 05 04 40 43 43 40", "begin: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 12 c0 04 01 a1 01 61", "attach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 12 c0 05 02 a1 01 61 43", "attach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 13 c0 05 04 a1 00 43 43", "flow, field 1: a value of another type was expected", amqp.ErrType},
		{"00 53 13 c0 04 03 43 43 43", "flow: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 14 45", "transfer: a mandatory field is missing", amqp.ErrMissing},
		{
			"00 53 14 c0 26 03 43 43 a0 21" + "000000000000000000000000000000000000000000000000000000000000000000",
			"transfer, field 3: a value out of its range", amqp.ErrValue,
		},
		{"00 53 15 c0 02 01 41", "disposition: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 15 c0 03 02 40 43", "disposition: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 15 c0 03 02 41 52", "disposition, field 2: a value is longer than the data that contains it", amqp.ErrTruncated},
		{"00 53 16 45", "detach: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 18 c0 05 01 00 53 1d 45", "end, field 1: error: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 18 c0 05 01 00 53 24 45", "end, field 1: an unexpected descriptor", amqp.ErrDescriptor},
		{"00 53 18 c0 0c 01 00 53 1d c0 06 03 a3 01 63 40 45", "end, field 1: error, field 3: a value of another type was expected", amqp.ErrType},
		{"00 53 12 c0 0e 06 a1 01 61 43 41 40 40 00 53 1d c0 01 00", "attach, field 6: an unexpected descriptor", amqp.ErrDescriptor},
		{
			"00 53 12 c0 0f 06 a1 01 61 43 41 40 40 00 53 28 c0 02 01 43",
			"attach, field 6: source, field 1: a value of another type was expected", amqp.ErrType,
		},
		{
			"00 53 12 c0 10 07 a1 01 61 43 41 40 40 40 00 53 30 c0 02 01 43",
			"attach, field 7: coordinator, field 1: a value of another type was expected", amqp.ErrType,
		},
		{"00 53 40 45", "sasl-mechanisms: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 41 45", "sasl-init: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 42 45", "sasl-step: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 43 45", "sasl-step: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 44 45", "sasl-outcome: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 32 45", "discharge: a mandatory field is missing", amqp.ErrMissing},
		{"00 53 10 40", "performative: a value of another type was expected", amqp.ErrType},
		{"00 53 10 a1 00", "performative: a value of another type was expected", amqp.ErrType},
		{"45", "performative: a value of another type was expected", amqp.ErrType},
		{"40", "performative: a value is longer than the data that contains it", amqp.ErrTruncated},
		{"", "performative: a value is longer than the data that contains it", amqp.ErrTruncated},
		{"00 53 10", "performative: a value is longer than the data that contains it", amqp.ErrTruncated},
	} {
		p, err := amqp.ParseBody(unhex(t, c.hex))
		if err == nil {
			err = blank(p.Kind).Decode(&p.Fields)
		}
		require.EqualError(t, err, c.says, c.hex)
		require.ErrorIs(t, err, c.want)
		var d *amqp.DecodeError
		require.True(t, errors.As(err, &d))
	}
	for text, says := range map[string]string{
		"43":          "delivery-state: a value of another type was expected",
		"00 53 24 40": "delivery-state: a value of another type was expected",
		"00 53 10 45": "delivery-state: an unexpected descriptor",
		"00 53 33 45": "delivery-state: declared: a mandatory field is missing",
		"00 53 34 45": "delivery-state: transactional-state: a mandatory field is missing",
		"00 53 34 c0 0a 02 a0 00 00 53 34 c0 02 01 40": "delivery-state: transactional-state, field 2: an unexpected descriptor",
		"00 53 27 c0 02 01 43":                         "delivery-state: modified, field 1: a value of another type was expected",
	} {
		_, err := amqp.ParseState(unhex(t, text))
		require.ErrorContains(t, err, says, text)
	}
}

// TestFilters: of all filters the selector is read, by its descriptor or its name.
func TestFilters(t *testing.T) {
	attach := func(set []byte) (amqp.Opt[string], error) {
		p := musttest.Get(amqp.ParseBody(attachWith(set)))(t)
		var a amqp.Attach
		err := a.Decode(&p.Fields)
		return a.Source.Selector, err
	}
	for text, want := range map[string]string{
		"a3 01 61 00 80 0000468c00000004 a1 01 78": "x", // a: selector x
		"a3 01 62 40":                   "", // null
		"a3 01 63 b1 00000001 79":       "", // the string y, not described
		"a3 01 65 00 a3 01 7a a3 01 77": "", // described by an unknown symbol
	} {
		set := unhex(t, text)
		got := musttest.Get(attach(append([]byte{amqp.CodeMap8, byte(len(set) + 1), 2}, set...)))(t)
		assert.Equal(t, amqp.Opt[string]{V: want, OK: want != ""}, got, text)
	}
	named := amqp.AppendStr(amqp.AppendSymbol(amqp.BeginMap(nil), amqp.SelectorFilterName), "z")
	amqp.EndCompound(named, 0, 2)
	assert.Equal(t, amqp.Some("z"), musttest.Get(attach(named))(t))
	_, err := attach(unhex(t, "c1 03 02 43 40"))
	require.EqualError(t, err, "attach, field 6: source, field 8: filter-set, field 1: a value of another type was expected")
}

// TestErrorText: a peer's text of an error is shown in quotes.
func TestErrorText(t *testing.T) {
	for want, e := range map[string]*amqp.Error{
		`"amqp:not-found": "no queue Q"`: {Condition: amqp.CondNotFound, Description: "no queue Q"},
		`"a\nb": "c\xffd"`:               {Condition: "a\nb", Description: "c\xffd"},
	} {
		require.EqualError(t, e, want)
	}
	require.EqualError(t, &amqp.FrameError{Size: 7, DataOffset: 2}, "a frame of 7 bytes with a header of 8")
	for _, secret := range []any{
		amqp.SASL{Mechanism: "PLAIN", Data: []byte("secret")},
		&amqp.SASL{Data: []byte("secret")},
	} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			text := fmt.Sprintf(format, secret)
			for _, form := range []string{"secret", "736563", "115 101 99", "0x73, 0x65"} {
				assert.NotContains(t, text, form, format)
			}
		}
	}
}
