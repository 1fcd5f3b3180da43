package amqp_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

var (
	long = strings.Repeat("x", 300)
	uuid = []byte{0x98, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
)

// scalars are the values that are written, with all widths.
var scalars = []struct {
	name  string
	value any
}{
	{"null", nil},
	{"true", true},
	{"false", false},
	{"smalllong", int64(127)},
	{"long", int64(128)},
	{"long, lowest", int64(math.MinInt64)},
	{"double", -2.25},
	{"binary8", []byte{0, 255}},
	{"binary, empty", []byte{}},
	{"binary32", []byte(long)},
	{"string8", "grüße"},
	{"string, empty", ""},
	{"string of 255", long[:255]},
	{"string32", long},
}

// TestScalars: every type of a property is written as in the golden file, and read again.
func TestScalars(t *testing.T) {
	cases := make([]golden, 0, len(scalars))
	for _, c := range scalars {
		b := musttest.Get(amqp.AppendScalar(nil, c.value))(t)
		cases = append(cases, golden{c.name, b})
	}
	checkGolden(t, "types.golden", cases)
	for i, g := range readGolden(t, "types.golden") {
		d := amqp.NewDecoder(g.bytes)
		assert.Equal(t, scalars[i].value, d.Scalar(), g.name)
		require.NoError(t, d.Err(), g.name)
		assert.False(t, d.More(), g.name)
	}
	_, err := amqp.AppendScalar(nil, struct{}{})
	require.ErrorIs(t, err, amqp.ErrEncode)
}

// foreignTypes are encodings that we read and do not write, from the examples and tables of Types, section 1.6.
var foreignTypes = []struct {
	name, hex string
	value     any
}{
	{"boolean in a byte", "56 01", true},
	{"boolean in a byte, false", "56 00", false},
	{"ubyte", "50 ff", int64(255)},
	{"ushort", "60 ffff", int64(65535)},
	{"uint0", "43", int64(0)},
	{"smalluint", "52 ff", int64(255)},
	{"uint", "70 ffffffff", int64(math.MaxUint32)},
	{"ulong0", "44", int64(0)},
	{"smallulong", "53 ff", int64(255)},
	{"ulong of a small value", "80 0000000000000001", int64(1)},
	{"ulong, highest", "80 ffffffffffffffff", uint64(math.MaxUint64)},
	{"int", "71 ffffff7f", int64(-129)},
	{"long of a small value", "81 ffffffffffffffff", int64(-1)},
	{"smallint, negative", "54 ff", int64(-1)},
	{"smalllong, negative", "55 ff", int64(-1)},
	{"short", "61 ffff", int64(-1)},
	{"byte", "51 80", int64(-128)},
	{"timestamp before 1970", "83 ffffffffffffffff", int64(-1)},
	{"float", "72 3fc00000", 1.5},
	{"uuid", "98 00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"},
	{"binary32 of a byte", "b0 00000001 07", []byte{7}},
	{"string32 of a letter", "b1 00000001 61", "a"},
	{"symbol8", "a3 01 61", "a"},
	{"symbol32 of a letter", "b3 00000001 61", "a"},
	{"char", "73 0001f600", nil},
	{"decimal32", "74 22500001", nil},
	{"list0", "45", nil},
	{"list8", "c0 03 02 41 42", nil},
	{"list32", "d0 00000006 00000002 41 42", nil},
	{"map8", "c1 05 02 a1 01 6b 41", nil},
	{"map32", "d1 00000008 00000002 a1 01 6b 41", nil},
	{"array8", "e0 04 02 50 01 02", nil},
	{"array32", "f0 00000007 00000002 50 01 02", nil},
	{"described", "00 53 24 45", nil},
	{"described by a symbol", "00 a3 01 78 a1 01 61", nil},
	{"described twice", "00 53 01 00 53 02 40", nil},
	{"described descriptor", "00 00 53 01 40 40", nil},
}

func TestForeignTypes(t *testing.T) {
	for _, c := range foreignTypes {
		b := append(unhex(t, c.hex), 0xff) // the bytes after a value are not touched
		d := amqp.NewDecoder(b)
		assert.Equal(t, c.value, d.Scalar(), c.name)
		require.NoError(t, d.Err(), c.name)
		assert.Equal(t, []byte{0xff}, d.Rest(), c.name)
		d = amqp.NewDecoder(b)
		assert.Equal(t, b[:len(b)-1], d.Raw(), c.name)
	}
}

// TestMalformedTypes: each is refused, for the reason that it has, by all ways to read it.
func TestMalformedTypes(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      error
	}{
		{"nothing", "", amqp.ErrTruncated},
		{"ubyte without its byte", "50", amqp.ErrTruncated},
		{"uint of three bytes", "70 000000", amqp.ErrTruncated},
		{"ulong of seven", "80 00000000000000", amqp.ErrTruncated},
		{"uuid of one", "98 00", amqp.ErrTruncated},
		{"string beyond the end", "a1 04 616263", amqp.ErrTruncated},
		{"string without a size", "b1 0000", amqp.ErrTruncated},
		{"string of 4 GiB", "b1 ffffffff 61", amqp.ErrTruncated},
		{"list of 4 GiB", "d0 fffffffc 00000000", amqp.ErrTruncated},
		{"descriptor without a value", "00 53 24", amqp.ErrTruncated},
		{"descriptors alone", strings.Repeat("00", 5000), amqp.ErrTruncated},
		{"no format code", "30", amqp.ErrType},
		{"no format code either", "01", amqp.ErrType},
	} {
		for _, read := range []func(*amqp.Decoder){
			func(d *amqp.Decoder) { d.Raw() },
			func(d *amqp.Decoder) { d.Skip() },
			func(d *amqp.Decoder) { d.Scalar() },
		} {
			d := amqp.NewDecoder(unhex(t, c.hex))
			read(&d)
			require.ErrorIs(t, d.Err(), c.want, c.name)
			assert.False(t, d.More(), c.name)
			assert.Nil(t, d.Raw(), "after an error all is null")
			assert.Nil(t, d.Scalar())
		}
	}
}

// TestLies: counts and sizes that are not true, and values of other types than are asked for.
func TestLies(t *testing.T) {
	list := func(d *amqp.Decoder) { d.List() }
	pairs := func(d *amqp.Decoder) { d.Map() }
	symbols := func(d *amqp.Decoder) { d.Symbols() }
	for _, c := range []struct {
		name, hex string
		read      func(*amqp.Decoder)
		want      error
	}{
		{"count beyond the size", "c0 02 ff 40", list, amqp.ErrCount},
		{"count of 4 billion", "d0 00000008 ffffffff 40404040", list, amqp.ErrCount},
		{"no room for the count", "c0 00", list, amqp.ErrTruncated},
		{"no room for the count, wide", "d0 00000003 000000", list, amqp.ErrTruncated},
		{"map of three", "c1 04 03 404040", pairs, amqp.ErrCount},
		{"array of 4 billion", "f0 00000005 ffffffff a3", symbols, amqp.ErrCount},
		{"array without symbols' bytes", "e0 04 03 a3 0000", symbols, amqp.ErrTruncated},
		{"symbol beyond the array", "e0 04 01 a3 05 61", symbols, amqp.ErrTruncated},
		{"array of strings", "e0 03 01 a1 00", symbols, amqp.ErrType},
		{"array with too many", "f0 00000406 00000401 a3" + strings.Repeat("00", 1025), symbols, amqp.ErrCount},
		{"a list for a map", "45", pairs, amqp.ErrType},
		{"a map for a list", "c1 01 00", list, amqp.ErrType},
		{"boolean of 2", "56 02", func(d *amqp.Decoder) { d.Bool() }, amqp.ErrValue},
		{"uint for a boolean", "43", func(d *amqp.Decoder) { d.Bool() }, amqp.ErrType},
		{"ulong for an uint", "44", func(d *amqp.Decoder) { d.Uint() }, amqp.ErrType},
		{"uint for an ulong", "43", func(d *amqp.Decoder) { d.Ulong(0) }, amqp.ErrType},
		{"byte for an ubyte", "51 00", func(d *amqp.Decoder) { d.Ubyte() }, amqp.ErrType},
		{"uint for an ushort", "43", func(d *amqp.Decoder) { d.Ushort() }, amqp.ErrType},
		{"long for a timestamp", "55 00", func(d *amqp.Decoder) { d.Timestamp() }, amqp.ErrType},
		{"uint for bytes", "43", func(d *amqp.Decoder) { d.Bytes() }, amqp.ErrType},
		{"null for a descriptor", "00 40 40", func(d *amqp.Decoder) { d.Descriptor() }, amqp.ErrType},
		{"string for a descriptor", "00 a1 00 40", func(d *amqp.Decoder) { d.Descriptor() }, amqp.ErrType},
		{"no descriptor", "45", func(d *amqp.Decoder) { d.Descriptor() }, amqp.ErrType},
		{"descriptor without its byte", "00 53", func(d *amqp.Decoder) { d.Descriptor() }, amqp.ErrTruncated},
	} {
		d := amqp.NewDecoder(unhex(t, c.hex))
		c.read(&d)
		require.ErrorIs(t, d.Err(), c.want, c.name)
		assert.Nil(t, d.Raw(), c.name)
	}
}

// TestNulls: a field that is null, or left out at the end of a list, is absent, and no error.
func TestNulls(t *testing.T) {
	ten := append([]byte{amqp.CodeList8, 13, 12}, bytes.Repeat([]byte{amqp.CodeNull}, 12)...)
	for _, b := range [][]byte{ten, {amqp.CodeList0}} {
		outer := amqp.NewDecoder(b)
		d, ok := outer.List()
		require.True(t, ok)
		assert.False(t, d.Bool())
		assert.Equal(t, amqp.Opt[uint8]{}, d.Ubyte())
		assert.Equal(t, amqp.Opt[uint16]{}, d.Ushort())
		assert.Equal(t, amqp.Opt[uint32]{}, d.Uint())
		assert.Equal(t, uint64(7), d.Ulong(7))
		assert.Equal(t, amqp.Opt[int64]{}, d.Timestamp())
		assert.Nil(t, d.Bytes())
		assert.Nil(t, d.Symbols())
		_, ok = d.List()
		assert.False(t, ok)
		_, ok = d.Map()
		assert.False(t, ok)
		assert.Equal(t, amqp.Descriptor(0), d.Descriptor())
		assert.Nil(t, d.Raw())
		require.NoError(t, d.Err())
		assert.False(t, d.More())
	}
}

// TestIntegerAndText: Integer and Text pass over values of all types.
func TestIntegerAndText(t *testing.T) {
	check := func(b []byte, value any) {
		t.Helper()
		b = append(b, amqp.CodeTrue)
		d := amqp.NewDecoder(b)
		n, ok := d.Integer()
		want, isInteger := value.(int64)
		assert.Equal(t, want, n)
		assert.Equal(t, isInteger, ok)
		assert.True(t, d.Bool(), "the value is passed over")
		d = amqp.NewDecoder(b)
		text, ok := d.Text()
		switch want := value.(type) {
		case string, []byte:
			assert.True(t, ok)
			assert.EqualValues(t, want, text)
		default:
			assert.Equal(t, b[0] == amqp.CodeNull, ok)
			assert.Nil(t, text)
		}
		assert.True(t, d.Bool(), "the value is passed over")
		require.NoError(t, d.Err())
	}
	for _, c := range scalars {
		check(encoded(t, c.value), c.value)
	}
	for _, c := range foreignTypes {
		if c.name == "uuid" || strings.HasPrefix(c.name, "timestamp") {
			c.value = nil // neither integers nor texts
		}
		check(unhex(t, c.hex), c.value)
	}
}

func TestLookup(t *testing.T) {
	m := amqp.BeginMap(nil)
	m = amqp.AppendLong(amqp.AppendStr(m, "a"), 1)
	m = amqp.AppendStr(amqp.AppendSymbol(m, "b"), "text")
	m = amqp.AppendStr(amqp.AppendLong(m, 3), "a key that is no text")
	m = amqp.AppendNull(amqp.AppendStr(m, "n"))
	m = amqp.AppendLong(amqp.AppendStr(m, ""), 5)
	amqp.EndCompound(m, 0, 10)
	d := amqp.Lookup(m, "a")
	assert.Equal(t, int64(1), d.Scalar())
	assert.False(t, d.More(), "there is one value")
	d = amqp.Lookup(m, "b")
	assert.Equal(t, "text", d.Scalar())
	d = amqp.Lookup(m, "n")
	assert.True(t, d.More())
	assert.Nil(t, d.Scalar())
	d = amqp.Lookup(m, "")
	assert.Equal(t, int64(5), d.Scalar())
	for _, m := range [][]byte{m, nil, {amqp.CodeMap8, 9, 9}, {amqp.CodeNull}, {}} {
		d = amqp.Lookup(m, "none")
		assert.False(t, d.More())
		_, ok := d.Integer()
		assert.False(t, ok)
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { amqp.Lookup(m, "n") }))
}

func TestDescriptors(t *testing.T) {
	symbol := amqp.AppendSymbol([]byte{amqp.CodeDescribed}, amqp.SelectorFilterName)
	for want, b := range map[amqp.Descriptor][]byte{
		0:                 unhex(t, "00 a3 04 61626364 40"),
		amqp.DescTransfer: unhex(t, "00 80 0000000000000014 40"),
		amqp.DescSelector: append(symbol, amqp.CodeNull),
	} {
		d := amqp.NewDecoder(b)
		assert.Equal(t, want, d.Descriptor())
		assert.Nil(t, d.Raw())
		require.NoError(t, d.Err())
	}
}

// TestDescribedFieldCount: a described value is one field, however it is read.
func TestDescribedFieldCount(t *testing.T) {
	list := amqp.BeginList(nil)
	list = append(list, amqp.Accepted...)
	list = append(append(list, amqp.CodeDescribed, amqp.CodeUlong, 0, 0, 0, 0, 0, 0, 0, 0x24), amqp.CodeList0)
	list = amqp.AppendUlong(list, 7)
	amqp.EndCompound(list, 0, 3)
	outer := amqp.NewDecoder(append(list, amqp.CodeTrue))
	d, _ := outer.List()
	for range 2 {
		assert.Equal(t, amqp.DescAccepted, d.Descriptor())
		_, ok := d.List()
		assert.True(t, ok)
	}
	assert.Equal(t, 1, d.Len())
	assert.Equal(t, uint64(7), d.Ulong(0))
	assert.False(t, d.More())
	assert.Equal(t, uint64(9), d.Ulong(9))
	assert.True(t, outer.Bool())
}
