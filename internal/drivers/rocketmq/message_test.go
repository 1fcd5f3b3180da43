package rocketmq

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestOwnPropertiesAreRead(t *testing.T) {
	const id = "perfmq_id\x017-0-123-9223372036854775807"
	whole := driver.ID{Run: 7, Number: 123, Sum: 1<<63 - 1}
	for properties, want := range map[string]driver.Delivery{
		"":                                    {},
		"time\x015\x02" + id:                  {Time: 5, HasTime: true, ID: whole},
		id + "\x02TAGS\x01A\x02time\x016\x02": {Time: 6, HasTime: true, ID: whole},
		"time\x01x\x02" + id:                  {ID: whole},
		"time\x02perfmq_id\x02\x02\x01":       {},
		"perfmq_id\x01\x02":                   {ID: driver.GarbledID()},
		id + "0":                              {ID: driver.GarbledID()}, // beyond an int64
		"perfmq_ids\x011-2-3-4\x02":           {},
		"perfmq-tx\x01c\x02time\x015":         {Time: 5, HasTime: true},
		"perfmq-tx\x01uc\x02time\x015":        {Time: 5, HasTime: true, Deferred: true},
		"perfmq-tx\x01\x02":                   {},
	} {
		got := driver.Delivery{Time: 99, HasTime: true, ID: driver.ID{Run: 99}, Deferred: true}
		readProperties([]byte(properties), new(driver.IDReader), &got)
		require.Equal(t, want, got, "%q", properties)
	}
	var b []byte
	p := producer{opts: defaultOptions()}
	for _, want := range []driver.ID{{}, whole, {Run: 1, Producer: 2, Number: 3, Sum: 4}} {
		b = p.appendProperties(b[:0], &kind{}, &driver.Message{Time: 5, ID: want})
		var got driver.Delivery
		readProperties(b, new(driver.IDReader), &got)
		require.Equal(t, driver.Delivery{Time: 5, HasTime: true, ID: want}, got)
		require.Equal(t, want != driver.ID{}, bytes.Contains(b, []byte("perfmq_")))
	}
}

func TestPropertiesOfVariants(t *testing.T) {
	o := producer{opts: &Options{Tag: "A"}, level: 3}
	spec := driver.ProducerSpec{}
	v := driver.Variant{Group: "g", Properties: []driver.Property{{Key: "color", Value: "red"}, {Key: "empty"}}}
	b, err := o.properties(&spec, &v)
	require.NoError(t, err)
	require.Equal(t, "TAGS\x01A\x02DELAY\x013\x02color\x01red\x02empty\x01\x02__SHARDINGKEY\x01g\x02", string(b))
	for _, p := range []driver.Property{{Key: "time", Value: "1"}, {Key: "perfmq_id", Value: "1"}, {Key: "TAGS", Value: "x"}, {Key: ""}, {Key: "a", Value: "b\x02c"}} {
		v.Properties = []driver.Property{p}
		_, err := o.properties(&spec, &v)
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", p)
	}
	v.Properties = []driver.Property{{Key: "long", Value: string(make([]byte, 40_000))}}
	_, err = o.properties(&spec, &v)
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err))
}

func TestCompressedBodies(t *testing.T) {
	const limit = 100_000
	var z wire.Inflater
	message := func(sysFlag uint32, size int) *wire.Message {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = w.Write(make([]byte, size))
		_ = w.Close()
		m := wire.Message{Body: b.Bytes()}
		m.SysFlag = wire.SysCompressed | sysFlag
		return &m
	}
	_, err := bodyOf(message(1<<8, 1), &z, limit)
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
	_, err = bodyOf(&wire.Message{MessageHead: wire.MessageHead{SysFlag: wire.SysCompressed}, Body: []byte("x")}, &z, limit)
	require.ErrorIs(t, err, wire.ErrMessage)
	require.Equal(t, driver.ClassProtocol, driver.ClassOf(err))
	_, err = bodyOf(message(wire.SysCompressionZlib, limit+1), &z, limit)
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err))
	require.ErrorContains(t, err, fmt.Sprintf("a message of %d compressed bytes is more than the 100000 that perfmq accepts",
		len(message(0, limit+1).Body)))
	got, err := bodyOf(message(0, limit), &z, limit)
	require.NoError(t, err, "it still works")
	require.Len(t, got, limit)
}

// Values of properties stand behind the prepared ones, and cost no allocation. The longest ones count against the limit.
func TestPropertiesOfMessages(t *testing.T) {
	p := producer{opts: &Options{}}
	v := driver.Variant{Group: "g", Properties: []driver.Property{{Key: "same", Value: "x"}, {Key: "order", Value: "99", Varies: true}}}
	prepared, err := p.properties(&driver.ProducerSpec{}, &v)
	require.NoError(t, err)
	k := kind{properties: prepared, varying: v.Varying(), groupAt: len(prepared) - 2}
	b := make([]byte, 0, 1000)
	m := driver.Message{Time: 5, Group: "h", Values: [][]byte{[]byte("7")}}
	b = p.appendProperties(b, &k, &m)
	require.Regexp(t, "^same\x01x\x02__SHARDINGKEY\x01h\x02order\x017\x02time\x015\x02", string(b))
	require.Zero(t, testing.AllocsPerRun(100, func() { p.appendProperties(b[:0], &k, &m) }))
	v.Properties[1].Value = string(make([]byte, 40_000))
	_, err = p.properties(&driver.ProducerSpec{}, &v)
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err))
}
