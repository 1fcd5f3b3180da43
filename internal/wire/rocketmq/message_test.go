package rocketmq_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

func TestProperties(t *testing.T) {
	t.Parallel()
	const all = "time\x015\x02\x01none\x02none\x02\x02empty\x01\x02a\x01b\x01c\x02last\x01x"
	var list []string
	for b := []byte(all); len(b) > 0; {
		var name, value []byte
		name, value, b = wire.CutProperty(b)
		list = append(list, string(name)+"="+string(value))
	}
	require.Equal(t, []string{"time=5", "=", "=", "=", "empty=", "a=b\x01c", "last=x"}, list)
	for name, want := range map[string]string{"time": "5", "empty": "", "a": "b\x01c", "last": "x"} {
		got := wire.Property([]byte(all), name)
		require.NotNil(t, got, name)
		require.Equal(t, want, string(got), name)
	}
	for _, name := range []string{"tim", "none", "5", "times"} {
		require.Nil(t, wire.Property([]byte(all), name), name)
	}
	require.True(t, wire.CarriesProperty("a b=ü\n\x00"))
	require.False(t, wire.CarriesProperty("a\x01"))
	require.False(t, wire.CarriesProperty("\x02"))
}

func TestDamagedBatches(t *testing.T) {
	t.Parallel()
	b := readGolden(t)["batch"]
	_, rest, ok := wire.CutBatched(b)
	require.True(t, ok)
	for n := range len(b) - len(rest) {
		_, _, ok := wire.CutBatched(b[:n])
		require.False(t, ok, "%d bytes", n)
	}
	long, at := wire.BeginBatched(nil, 0, []byte("body"))
	long = append(long, make([]byte, wire.MaxProperties+1)...)
	wire.EndBatched(long, at, len("body"))
	_, _, ok = wire.CutBatched(long)
	require.False(t, ok)
}

func TestCompression(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	var i wire.Inflater
	for _, body := range []string{"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", strings.Repeat("b", limit), "c"} {
		for _, flag := range []uint32{0, wire.SysCompressionZlib} {
			got := musttest.Get(i.Inflate(wire.SysCompressed|flag, wire.Deflate([]byte(body)), limit))(t)
			require.Equal(t, body, string(got))
		}
	}
	for _, kind := range []uint32{1 << 8, 2 << 8, 4 << 8} {
		_, err := i.Inflate(wire.SysCompressed|kind, []byte("x"), limit)
		require.ErrorIs(t, err, wire.ErrCompression)
	}
	whole := wire.Deflate([]byte("hello"))
	for n := range whole {
		_, err := i.Inflate(0, whole[:n], limit)
		require.ErrorIs(t, err, wire.ErrMessage)
	}
	var small wire.Inflater
	for _, size := range []int{limit + 1, 1 << 24} {
		_, err := small.Inflate(0, wire.Deflate(make([]byte, size)), limit)
		require.ErrorIs(t, err, wire.ErrTooLong)
	}
	require.Less(t, small.Cap(), 2*limit, "memory for what is beyond the limit")
	got, err := small.Inflate(0, wire.Deflate([]byte("abc")), limit)
	require.NoError(t, err, "it still works")
	require.Equal(t, "abc", string(got))
}

func TestUnmarshalJSON(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{0:"a:1",1:"b"}`:                  `{"0":"a:1","1":"b"}`,
		`{"x":{-1:"{0:"},"y":[1,2,{3:4}]}`: `{"x":{"-1":"{0:"},"y":[1,2,{"3":4}]}`,
		`{"a\"{1:":2}`:                     `{"a\"{1:":2}`,
	} {
		var got, same map[string]any
		require.NoError(t, wire.UnmarshalJSON([]byte(given), &got))
		require.NoError(t, wire.UnmarshalJSON([]byte(want), &same))
		require.Equal(t, same, got)
	}
	var b wire.BrokerData // as name servers before 4.9.4 write it
	require.NoError(t, wire.UnmarshalJSON([]byte(`{"brokerAddrs":{0:"127.0.0.1:10911"}}`), &b))
	require.Equal(t, map[string]string{wire.MasterID: "127.0.0.1:10911"}, b.Addresses)
	require.Error(t, wire.UnmarshalJSON([]byte(`{"brokerAddrs":`), &b))
	require.ErrorContains(t, wire.UnmarshalJSON([]byte(strings.Repeat(" ", wire.MaxJSON)+"{}"), &b), "at most 1048576")
}
