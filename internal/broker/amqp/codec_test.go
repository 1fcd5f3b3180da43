package amqp

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func bytesOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

// TestValueSize has the examples of Types, section 1.6, by hand.
func TestValueSize(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"null":                  {"40", 1},
		"ulong0":                {"44", 1},
		"ubyte":                 {"50 07", 2},
		"ushort":                {"60 0102", 3},
		"uint":                  {"70 01020304", 5},
		"ulong":                 {"80 0102030405060708", 9},
		"uuid":                  {"98 000102030405060708090a0b0c0d0e0f", 17},
		"str8":                  {"a1 03 616263 ff", 5},
		"str32":                 {"b1 00000003 616263", 8},
		"list0":                 {"45", 1},
		"list8":                 {"c0 03 02 41 42", 5},
		"array8":                {"e0 04 02 50 01 02", 6},
		"described":             {"00 53 24 45", 4},
		"described twice":       {"00 53 01 00 53 02 40", 7},
		"described descriptor":  {"00 00 53 01 40 40", 6},
		"empty":                 {"", 0},
		"short ubyte":           {"50", 0},
		"short uuid":            {"98 00", 0},
		"short string":          {"a1 04 616263", 0},
		"no size":               {"b1 0000", 0},
		"size beyond the input": {"b1 ffffffff 61", 0},
		"list beyond the input": {"d0 fffffffc 00000000", 0},
		"no value":              {"00 53 24", 0},
		"no such code":          {"30", 0},
		"only descriptors":      {strings.Repeat("00", 5000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, valueSize(bytesOf(t, c.text)))
		})
	}
}

func TestScalars(t *testing.T) {
	for text, want := range map[string]any{
		"40": nil, "41": true, "42": false, "56 01": true, "56 00": false,
		"50 ff": int64(255), "51 ff": int64(-1), "60 ffff": int64(65535), "61 ffff": int64(-1),
		"43": int64(0), "52 80": int64(128), "70 ffffffff": int64(1<<32 - 1), "54 80": int64(-128), "71 ffffffff": int64(-1),
		"44": uint64(0), "53 80": uint64(128), "80 ffffffffffffffff": uint64(1<<64 - 1),
		"55 ff": int64(-1), "81 8000000000000000": int64(-1 << 63), "83 0000000000000001": int64(1),
		"72 3fc00000": 1.5, "82 3ff8000000000000": 1.5, "73 00000041": "A",
		"a0 02 0102": []byte{1, 2}, "b0 00000001 07": []byte{7}, "a1 01 61": "a", "b1 00000001 61": "a", "a3 01 62": "b",
		"98 00112233445566778899aabbccddeeff": "00112233-4455-6677-8899-aabbccddeeff",
		"45":                                  nil, "c0 01 00": nil, "94 00112233445566778899aabbccddeeff": nil, "00 53 01 41": nil,
	} {
		f := values(bytesOf(t, text))
		assert.Equal(t, want, f.scalar(), text)
		assert.False(t, f.bad, text)
		assert.Empty(t, f.b, text)
	}
}

func TestRoundTrip(t *testing.T) {
	long := strings.Repeat("x", 300)
	b, at := begin(nil, codeList32)
	b = appendUint(appendUint(appendUint(b, 0), 255), 1<<31)
	b = appendUlong(appendUlong(appendUlong(b, 0), 255), 1<<63)
	b = appendLong(appendLong(b, -5), 1<<40)
	b = appendStr(appendSymbol(appendStr(b, "a"), long), long)
	b = appendBool(appendBool(b, true), false)
	b = appendSymbols(appendSymbols(b, []string{"p", long}), nil)
	b = appendTimestamp(appendUshort(b, 7), 123)
	b = appendDouble(appendBinary(b, []byte{1}), 2.5)
	b = finish(b, at, 19)
	v := values(b)
	f, ok := v.list()
	require.True(t, ok)
	for _, want := range []uint32{0, 255, 1 << 31} {
		assert.Equal(t, want, f.uintOr(9))
	}
	for _, want := range []uint64{0, 255, 1 << 63} {
		assert.Equal(t, want, f.ulong())
	}
	assert.Equal(t, int64(-5), f.scalar())
	assert.Equal(t, int64(1<<40), f.scalar())
	assert.Equal(t, "a", string(f.str()))
	assert.Equal(t, long, string(f.symbol()))
	assert.Equal(t, long, string(f.str()))
	assert.True(t, f.boolean())
	assert.False(t, f.boolean())
	assert.Equal(t, []string{"p", long}, f.symbols())
	assert.Nil(t, f.symbols())
	assert.Equal(t, uint16(7), f.ushort(0))
	assert.Equal(t, int64(123), f.timestamp())
	assert.Equal(t, []byte{1}, f.binary())
	assert.InDelta(t, 2.5, f.scalar(), 0)
	assert.Zero(t, f.n)
	assert.False(t, f.bad)
	assert.Nil(t, f.binary(), "fields that are not there are null")
}

// TestLies: counts and sizes that are not true, and values of other types.
func TestLies(t *testing.T) {
	for name, text := range map[string]string{
		"count beyond the size":   "c0 02 ff 40",
		"count of 4 billion":      "d0 00000008 ffffffff 40404040",
		"map of three":            "c1 04 03 404040",
		"array of 4 billion":      "f0 00000005 ffffffff a3",
		"symbol beyond the array": "e0 04 01 a3 05 61",
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(*fields){
				func(f *fields) { f.list() }, func(f *fields) { f.pairs() }, func(f *fields) { f.symbols() },
				func(f *fields) { f.uint() }, func(f *fields) { f.str() }, func(f *fields) { f.boolean() },
			} {
				f := values(bytesOf(t, text))
				read(&f)
				assert.True(t, f.bad)
				assert.Nil(t, f.raw())
			}
		})
	}
}

func TestDescriptors(t *testing.T) {
	for symbol, want := range map[string]uint64{
		"amqp:open:list": descOpen, "amqp:transactional-state:list": descTxState, "amqp:data:binary": descData,
		"amqp:application-properties:map": descAppProperties, "amqp:amqp-value:*": descValue, "amqp:header:list": descHeader,
		selectorFilter: descSelector, "amqp:nonsense": 0, "x": 0,
	} {
		f := values(append(appendSymbol([]byte{codeDescribed}, symbol), codeList0))
		assert.Equal(t, want, f.described(), symbol)
		_, ok := f.list()
		assert.True(t, ok)
	}
}

// TestUnsettled: numbers are serial, and one that stays does not keep the rest.
func TestUnsettled(t *testing.T) {
	var u unsettled
	u.next, u.first = 1<<32-3, 1<<32-3
	l := &outLink{}
	ids := func(first, last uint32) (list []uint64) {
		u.each(first, last, func(n uint64) { list = append(list, u.get(n).id) })
		return list
	}
	for i := range uint64(6) {
		assert.Equal(t, uint32(1<<32-3+i), u.add(delivered{l, i}))
	}
	assert.Equal(t, []uint64{1, 2, 3, 4}, ids(1<<32-2, 1))
	assert.Equal(t, []uint64{3, 4, 5}, ids(0, 1<<31-1), "a range with an end far away")
	assert.Empty(t, ids(5, 0), "an end before the beginning")
	assert.Empty(t, ids(3, 100), "the future")
	for i := range uint64(10_000) {
		n := u.next
		u.add(delivered{l, 100 + i})
		u.remove(n)
	}
	assert.LessOrEqual(t, len(u.ring), 64)
	assert.ElementsMatch(t, []uint64{0, 1, 2, 3, 4, 5}, ids(1<<32-3, uint32(u.next)-1))
	u.remove(1<<32 - 3)
	u.forget(l)
	assert.Zero(t, u.live)
	assert.Empty(t, u.old)
	number := u.skip()
	assert.Equal(t, uint32(u.next), number+1)
}
