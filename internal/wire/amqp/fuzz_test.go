package amqp_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"testing"
	"testing/iotest"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// within fails unless part lies within whole: nothing that is decoded comes from elsewhere.
func within(t testing.TB, whole, part []byte) {
	t.Helper()
	if len(part) == 0 {
		return
	}
	start, end := uint(reflect.ValueOf(whole).Pointer()), uint(len(whole))
	at := uint(reflect.ValueOf(part).Pointer())
	if at < start || at+uint(len(part)) > start+end {
		t.Fatalf("%d bytes from outside of the input", len(part))
	}
}

// FuzzDecoder reads any bytes in any way. It ends, errors stick, and values that can be written again stay the same.
func FuzzDecoder(f *testing.F) {
	for _, g := range readGolden(f, "types.golden") {
		f.Add(g.bytes, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
	}
	for i, c := range foreignTypes {
		f.Add(unhex(f, c.hex), []byte{byte(i), 12, 13, 0, 1})
	}
	f.Fuzz(func(t *testing.T, b, program []byte) {
		d := amqp.NewDecoder(b)
		var outer []amqp.Decoder
		for _, op := range program {
			failed, left := d.Err(), len(d.Rest())
			d.Peek()
			if d.More() && d.Len() > len(b) {
				t.Fatal("more values than bytes")
			}
			readAny(t, &d, op, b, &outer)
			if op%20 == 19 { // back to the containing value
				continue
			}
			if failed != nil && (!errors.Is(d.Err(), failed) || d.More() || len(d.Rest()) > 0) {
				t.Fatal("the error was forgotten")
			}
			if len(outer) == 0 && len(d.Rest()) > left {
				t.Fatal("bytes were read twice")
			}
		}
	})
}

func readAny(t testing.TB, d *amqp.Decoder, op byte, b []byte, outer *[]amqp.Decoder) {
	t.Helper()
	switch op % 20 {
	case 0:
		v := d.Scalar()
		if _, large := v.(uint64); d.Err() == nil && !large {
			sameAgain(t, v)
		}
	case 1:
		within(t, b, d.Raw())
	case 2:
		d.Skip()
	case 3:
		d.Bool()
	case 4:
		d.Ubyte()
	case 5:
		d.Ushort()
	case 6:
		d.Uint()
	case 7:
		d.Ulong(1)
	case 8:
		d.Timestamp()
	case 9:
		within(t, b, d.Bytes())
	case 10:
		within(t, b, d.Bytes())
	case 11:
		within(t, b, d.Bytes())
	case 12:
		if in, ok := d.List(); ok {
			*outer = append(*outer, *d)
			*d = in
		}
	case 13:
		if in, ok := d.Map(); ok {
			if in.Len()%2 != 0 {
				t.Fatal("half a pair")
			}
			*outer = append(*outer, *d)
			*d = in
		}
	case 14:
		if n := len(d.Symbols()); n > amqp.MaxEntries || n > len(b) {
			t.Fatalf("%d symbols", n)
		}
	case 15:
		d.Descriptor()
	case 16:
		text, _ := d.Text()
		within(t, b, text)
	case 17:
		d.Integer()
	case 18:
		in := amqp.Lookup(d.Raw(), "k")
		in.Scalar()
	case 19:
		if n := len(*outer); n > 0 {
			*d, *outer = (*outer)[n-1], (*outer)[:n-1]
		}
	}
}

// sameAgain writes a value and reads it again.
func sameAgain(t testing.TB, v any) {
	t.Helper()
	b := musttest.Get(amqp.AppendScalar(nil, v))(t)
	d := amqp.NewDecoder(b)
	got := d.Scalar()
	require.NoError(t, d.Err())
	require.False(t, d.More())
	require.Equal(t, bits(v), bits(got))
}

// bits makes numbers comparable that are none.
func bits(v any) any {
	if v, ok := v.(float64); ok {
		return math.Float64bits(v)
	}
	return v
}

// FuzzPerformatives decodes any bytes as any performative. A decoded performative is the same after an encoding.
func FuzzPerformatives(f *testing.F) {
	for _, g := range readGolden(f, "frames.golden") {
		f.Add(g.bytes[amqp.FrameHeaderSize:])
	}
	f.Add((&amqp.Discharge{TxnID: []byte{1}, Fail: true}).AppendMessage(nil)[3:])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := amqp.ParseBody(b)
		if err != nil {
			assertDecodeError(t, err)
			return
		}
		within(t, b, p.Payload)
		for kind := amqp.DescOpen; kind <= amqp.DescOutcome; kind++ {
			fr, fields := blank(kind), p.Fields
			if fr == nil {
				continue
			}
			if err := fr.Decode(&fields); err != nil {
				assertDecodeError(t, err)
				continue
			}
			if kind == p.Kind {
				checkAgain(t, fr)
			}
		}
	})
}

func assertDecodeError(t testing.TB, err error) {
	t.Helper()
	var d *amqp.DecodeError
	if !errors.As(err, &d) || errors.Unwrap(err) == nil {
		t.Fatalf("an error of another type: %v", err)
	}
}

// checkAgain writes a frame, and reads it again.
func checkAgain(t testing.TB, fr frame) {
	t.Helper()
	again := blankLike(fr)
	var body []byte
	if m, ok := fr.(interface{ AppendMessage(b []byte) []byte }); ok {
		body = m.AppendMessage(nil)[3:]
	} else {
		body = encode(nil, fr)[amqp.FrameHeaderSize:]
	}
	p := musttest.Get(amqp.ParseBody(body))(t)
	require.Empty(t, p.Payload)
	require.NoError(t, again.Decode(&p.Fields))
	require.Equal(t, fr, again)
	switch fr := fr.(type) {
	case *amqp.Transfer:
		checkState(t, fr.State)
	case *amqp.Disposition:
		checkState(t, fr.State)
	}
}

func checkState(t testing.TB, raw []byte) {
	t.Helper()
	s, err := amqp.ParseState(raw)
	if err != nil {
		assertDecodeError(t, err)
		return
	}
	again := s.Append(nil)
	if s.Kind == 0 && !s.Transactional {
		again = nil
	}
	require.Equal(t, s, musttest.Get(amqp.ParseState(again))(t))
}

// FuzzFrameReader reads any stream. It gives the same frames in whatever pieces it comes, and none that is too large.
func FuzzFrameReader(f *testing.F) {
	f.Add(append(amqp.AppendAccepted(nil, 1, 2, 3), amqp.AppendHeartbeat(nil)...), uint16(512))
	f.Add(append(sized(20), sized(30)[:15]...), uint16(100))
	f.Add(append(sized(600), sized(8)...), uint16(5000))
	f.Add([]byte(amqp.HeaderSASL+amqp.HeaderAMQP), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, limit uint16) {
		want, wantErr := readFrames(t, bytes.NewReader(b), uint32(limit))
		for _, in := range []io.Reader{
			iotest.HalfReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b)), &flaky{Reader: bytes.NewReader(b)},
		} {
			got, err := readFrames(t, in, uint32(limit))
			require.Equal(t, want, got)
			require.Equal(t, wantErr, err)
		}
		var malformed *amqp.FrameError
		if !errors.Is(wantErr, io.EOF) && !errors.Is(wantErr, io.ErrUnexpectedEOF) && !errors.As(wantErr, &malformed) {
			t.Fatalf("an error of another type: %v", wantErr)
		}
	})
}

func readFrames(t testing.TB, in io.Reader, limit uint32) (list []amqp.Frame, err error) {
	t.Helper()
	r := amqp.NewFrameReader(bufio.NewReaderSize(in, 512), limit)
	for {
		fr, err := r.Next()
		switch {
		case err == nil:
			if len(fr.Body)+amqp.FrameHeaderSize > int(max(limit, amqp.MinMaxFrameSize)) {
				t.Fatalf("a frame of %d bytes", len(fr.Body))
			}
			fr.Body = append([]byte{}, fr.Body...)
			list = append(list, fr)
		case !isDeadline(err):
			return list, err
		}
	}
}

func isDeadline(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// FuzzMessage decodes any bytes as a message. A decoded message is put together again from its parts, and is the same.
func FuzzMessage(f *testing.F) {
	for _, g := range readGolden(f, "messages.golden") {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m amqp.Message
		if err := m.Decode(b); err != nil {
			assertDecodeError(t, err)
			return
		}
		for _, part := range [][]byte{m.MessageAnnotations, m.Properties, m.ApplicationProperties, m.Body, m.Forward} {
			within(t, b, part)
		}
		payload := m.Payload(nil)
		if len(payload) > len(b) {
			t.Fatal("more than there was")
		}
		var p amqp.Properties
		if err := p.Decode(m.Properties); err != nil {
			assertDecodeError(t, err)
			return
		}
		var again amqp.Message
		require.NoError(t, again.Decode(assemble(&m, &p)))
		var q amqp.Properties
		require.NoError(t, q.Decode(again.Properties))
		require.Equal(t, p, q)
		require.Equal(t, m.Header, again.Header)
		require.Equal(t, m.ApplicationProperties, again.ApplicationProperties)
		require.Equal(t, m.MessageAnnotations, again.MessageAnnotations)
		require.Equal(t, m.BodyKind, again.BodyKind)
		require.Equal(t, payload, again.Payload(nil))
		if m.BodySections == 1 {
			require.Equal(t, m.Body, again.Body)
		}
		var kept amqp.Message
		require.NoError(t, kept.Decode(m.Forward))
		require.Equal(t, payload, kept.Payload(nil))
		for _, pairs := range [][]byte{m.ApplicationProperties, m.MessageAnnotations} {
			d := pairsOf(pairs)
			for d.More() {
				key, _ := d.Text()
				d.Scalar()
				found := amqp.Lookup(pairs, string(key))
				found.Scalar()
			}
		}
	})
}

// assemble writes a message from its parts; data sections become one.
func assemble(m *amqp.Message, p *amqp.Properties) []byte {
	b := m.Header.AppendSection(nil)
	add := func(d amqp.Descriptor, value []byte) {
		if value != nil {
			b = append(amqp.AppendDescriptor(b, d), value...)
		}
	}
	add(amqp.DescMessageAnnotations, m.MessageAnnotations)
	b = p.AppendSection(b)
	add(amqp.DescApplicationProperties, m.ApplicationProperties)
	switch m.BodyKind {
	case amqp.DescData:
		b = amqp.AppendData(b, m.Payload(nil))
	case amqp.DescSequence, amqp.DescValue:
		add(m.BodyKind, m.Body)
	}
	return b
}

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
