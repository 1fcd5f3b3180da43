package amqp_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

func readerOf(b []byte, buffer int, limit uint32) *amqp.FrameReader {
	return amqp.NewFrameReader(bufio.NewReaderSize(bytes.NewReader(b), buffer), limit)
}

// sized is a frame of that many bytes in all.
func sized(n int) []byte {
	b := amqp.BeginFrame(nil, amqp.FrameAMQP, 7)
	for i := len(b); i < n; i++ {
		b = append(b, byte(i))
	}
	amqp.EndFrame(b, 0)
	return b
}

// TestFrameReader: frames of all sizes, whatever the pieces they come in.
func TestFrameReader(t *testing.T) {
	const buffer = 5000
	sizes := []int{8, 9, 511, 512, 513, 1023, 1024, 1025, 2048, 5000, 8, 9}
	var stream []byte
	for _, n := range sizes {
		stream = append(stream, sized(n)...)
	}
	for name, in := range map[string]io.Reader{
		"at once":       bytes.NewReader(stream),
		"byte by byte":  iotest.OneByteReader(bytes.NewReader(stream)),
		"half of it":    iotest.HalfReader(bytes.NewReader(stream)),
		"end with data": iotest.DataErrReader(bytes.NewReader(stream)),
		"deadlines":     &flaky{Reader: iotest.HalfReader(bytes.NewReader(stream))},
	} {
		t.Run(name, func(t *testing.T) {
			r := amqp.NewFrameReader(bufio.NewReaderSize(in, buffer), 1<<20)
			for _, n := range sizes {
				f, err := r.Next()
				for errors.Is(err, os.ErrDeadlineExceeded) {
					f, err = r.Next()
				}
				require.NoError(t, err)
				require.Equal(t, amqp.Frame{Type: amqp.FrameAMQP, Channel: 7, Body: sized(n)[8:]}, f)
			}
			_, err := r.Next()
			for errors.Is(err, os.ErrDeadlineExceeded) {
				_, err = r.Next()
			}
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// flaky passes a deadline before each read.
type flaky struct {
	io.Reader
	passed bool
}

func (f *flaky) Read(b []byte) (int, error) {
	if f.passed = !f.passed; f.passed {
		return 0, os.ErrDeadlineExceeded
	}
	return f.Reader.Read(b)
}

func TestFrameReaderRefuses(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      error
	}{
		{"too large", "00002711 02000000", &amqp.FrameError{Size: 10001, Max: 10000}},
		{"4 GiB", "ffffffff 02000000", &amqp.FrameError{Size: 1<<32 - 1, Max: 10000}},
		{"smaller than a header", "00000007 02000000", &amqp.FrameError{Size: 7, DataOffset: 2}},
		{"of no size", "00000000 02000000", &amqp.FrameError{Size: 0, DataOffset: 2}},
		{"header of one word", "00000008 01000000", &amqp.FrameError{Size: 8, DataOffset: 1}},
		{"header of none", "00000008 00000000", &amqp.FrameError{Size: 8, DataOffset: 0}},
		{"header beyond the frame", "0000000b 03000000 000000", &amqp.FrameError{Size: 11, DataOffset: 3}},
	} {
		r := readerOf(append(sized(8), unhex(t, c.hex)...), 16<<10, 10_000)
		musttest.Get(r.Next())(t)
		_, err := r.Next()
		require.Equal(t, c.want, err, c.name)
		_, err = r.Next()
		require.Equal(t, c.want, err, "and so it stays")
	}
	for _, n := range []int{1, 7, 8, 11, 600, 5000} {
		r := readerOf(sized(5001)[:n], 16<<10, 10_000)
		_, err := r.Next()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
	}
	r := readerOf(nil, 512, 0)
	_, err := r.Next()
	require.Equal(t, io.EOF, err)
	r = readerOf(sized(513), 1024, 0)
	_, err = r.Next()
	require.Equal(t, &amqp.FrameError{Size: 513, Max: amqp.MinMaxFrameSize}, err, "what every peer takes is the least limit")
	musttest.Get(readerOf(sized(513), 1024, 513).Next())(t)
	_, err = readerOf(sized(1025), 1024, 1<<20).Next()
	require.Equal(t, &amqp.FrameError{Size: 1025, Max: 1024}, err, "it does not fit the buffer")
}

// TestExtendedHeader: bytes between header and body are passed over (Transport, section 2.3.1).
func TestExtendedHeader(t *testing.T) {
	f := musttest.Get(readerOf(unhex(t, "0000000e 03 01 0002 aabbccdd 4041"), 512, 512).Next())(t)
	assert.Equal(t, amqp.Frame{Type: amqp.FrameSASL, Channel: 2, Body: []byte{0x40, 0x41}}, f)
}

func TestProtocolHeaders(t *testing.T) {
	r := readerOf(append([]byte(amqp.HeaderSASL+amqp.HeaderAMQP), sized(8)...), 512, 512)
	for _, want := range []string{amqp.HeaderSASL, amqp.HeaderAMQP} {
		h := musttest.Get(r.ReadProtocolHeader())(t)
		assert.Equal(t, want, string(h[:]))
	}
	f := musttest.Get(r.Next())(t)
	assert.Empty(t, f.Body)
	_, err := r.ReadProtocolHeader()
	require.Equal(t, io.EOF, err)
	h, err := readerOf([]byte("HTTP"), 512, 512).ReadProtocolHeader()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	assert.Equal(t, "HTTP\x00\x00\x00\x00", string(h[:]))
	b := amqp.AppendHeartbeat(nil)
	assert.Equal(t, sizedHeartbeat(), b)
}

func sizedHeartbeat() []byte { return []byte{0, 0, 0, 8, 2, 0, 0, 0} }
