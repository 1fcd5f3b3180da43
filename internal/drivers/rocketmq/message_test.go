package rocketmq

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// storedMessage is a message as MessageDecoder.encode writes it.
func storedMessage(body, topic, properties string) []byte {
	b := make([]byte, 4, 200)
	b = binary.BigEndian.AppendUint32(b, magicV1)
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3)       // checksum, queue, flag
	b = binary.BigEndian.AppendUint64(b, 77)                // queue offset
	b = binary.BigEndian.AppendUint64(b, 4242)              // log offset
	b = binary.BigEndian.AppendUint32(b, 0)                 // system flag
	b = binary.BigEndian.AppendUint64(b, 1_700_000_000_123) // born
	b = append(b, 127, 0, 0, 1, 0, 0, 0, 9)                 // born host
	b = binary.BigEndian.AppendUint64(b, 1_700_000_000_456) // stored
	b = append(b, 127, 0, 0, 1, 0, 0, 0, 8)                 // store host
	b = binary.BigEndian.AppendUint32(b, 2)                 // deliveries
	b = binary.BigEndian.AppendUint64(b, 0)                 // half message
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
	b = append(append(b, byte(len(topic))), topic...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(properties))), properties...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

func TestMessageIsReadAsTheLibraryReadsIt(t *testing.T) {
	b := storedMessage("hello", "T", "time\x01123456\x02TAGS\x01A\x02color\x01red")
	two := append(append([]byte{}, b...), b...)
	var m stored
	rest, err := m.cutMessage(two)
	require.NoError(t, err)
	require.Equal(t, b, rest)
	theirs := primitive.DecodeMessage(b)[0]
	require.Equal(t, string(theirs.Body), string(m.body))
	require.Equal(t, theirs.Topic, string(m.topic))
	require.Equal(t, theirs.QueueOffset, m.queueOffset)
	require.Equal(t, theirs.CommitLogOffset, m.commitOffset)
	require.Equal(t, theirs.BornTimestamp, m.born)
	require.Equal(t, theirs.StoreTimestamp, m.store)
	require.Equal(t, theirs.ReconsumeTimes, m.retries)
	for _, name := range []string{"time", "TAGS", "color"} {
		require.Equal(t, theirs.GetProperty(name), string(property(m.properties, name)))
	}
	require.Nil(t, property(m.properties, "tim"))
	require.Nil(t, property(m.properties, "123456"))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := m.cutMessage(b); err != nil {
			panic(err)
		}
		if n, ok := parseInt(property(m.properties, "time")); !ok || n != 123456 {
			panic("misread")
		}
	}))
}

func TestDamagedMessages(t *testing.T) {
	b := storedMessage("hello", "T", "time\x01123456\x02")
	var m stored
	for n := range b {
		_, err := m.cutMessage(b[:n])
		require.ErrorIs(t, err, errMessage)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add(storedMessage("hello", "T", "time\x01123456\x02TAGS\x01A\x02"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var m stored
		var err error
		for len(b) > 0 && err == nil {
			b, err = m.cutMessage(b)
			_ = property(m.properties, "time")
			var d driver.Delivery
			readProperties(m.properties, &d)
		}
	})
}

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
	} {
		got := driver.Delivery{Time: 99, HasTime: true, ID: driver.ID{Run: 99}}
		readProperties([]byte(properties), &got)
		require.Equal(t, want, got, "%q", properties)
	}
	var b []byte
	p := producer{opts: defaultOptions()}
	for _, want := range []driver.ID{{}, whole, {Run: 1, Producer: 2, Number: 3, Sum: 4}} {
		b = p.appendProperties(b[:0], &kind{}, &driver.Message{Time: 5, ID: want})
		var got driver.Delivery
		readProperties(b, &got)
		require.Equal(t, driver.Delivery{Time: 5, HasTime: true, ID: want}, got)
		require.Equal(t, want != driver.ID{}, bytes.Contains(b, []byte("perfmq_")))
	}
}

func TestPropertiesOfVariants(t *testing.T) {
	o := Options{Tag: "A", Keys: "k1 k2", DelayLevel: 3}
	spec := driver.ProducerSpec{}
	v := driver.Variant{Group: "g", Properties: []driver.Property{{Key: "color", Value: "red"}, {Key: "empty"}}}
	b, err := o.properties(&spec, &v)
	require.NoError(t, err)
	require.Equal(t, "TAGS\x01A\x02KEYS\x01k1 k2\x02DELAY\x013\x02__SHARDINGKEY\x01g\x02color\x01red\x02empty\x01\x02", string(b))
	for _, p := range []driver.Property{{Key: "time", Value: "1"}, {Key: "perfmq_id", Value: "1"}, {Key: "TAGS", Value: "x"}, {Key: ""}, {Key: "a", Value: "b\x02c"}} {
		v.Properties = []driver.Property{p}
		_, err := o.properties(&spec, &v)
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", p)
	}
	v.Properties = []driver.Property{{Key: "long", Value: string(make([]byte, 40_000))}}
	_, err = o.properties(&spec, &v)
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err))
}

func TestCompression(t *testing.T) {
	var c compressor
	d := decompressor{maxBody: 100_000}
	for _, body := range []string{"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", strings.Repeat("b", 100_000), "c"} {
		m := stored{sysFlag: sysCompressed | sysZlib, body: c.compress([]byte(body))}
		got, err := d.body(&m)
		require.NoError(t, err)
		require.Equal(t, body, string(got))
	}
	_, err := d.body(&stored{sysFlag: sysCompressed | 1<<8, body: []byte("x")})
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
	_, err = d.body(&stored{sysFlag: sysCompressed, body: []byte("x")})
	require.ErrorIs(t, err, errMessage)
	require.Equal(t, driver.ClassProtocol, driver.ClassOf(err))
	for _, size := range []int{100_001, 32 << 20} {
		_, err = d.body(&stored{sysFlag: sysCompressed, body: packed(t, size)})
		require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err))
		require.ErrorContains(t, err, "are more than 100000; perfmq accepts at most 100000")
	}
	require.Less(t, cap(d.out), 200_000)
	got, err := d.body(&stored{sysFlag: sysCompressed, body: packed(t, 3)})
	require.NoError(t, err, "it still works")
	require.Len(t, got, 3)
}

// packed returns zeros, compressed.
func packed(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	for chunk := make([]byte, 1<<20); n > 0; n -= len(chunk) {
		_, err := w.Write(chunk[:min(n, len(chunk))])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}
