package transport

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestReadBody(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 5<<20/16)
	var b []byte
	for _, n := range []int{0, 1, 1000, 5 << 20, 3, 1<<20 + 1} {
		in := strings.NewReader(text + "more")
		var err error
		b, err = ReadBody(in, b, n)
		require.NoError(t, err)
		require.True(t, string(b) == text[:n], "%d bytes", n)
		require.Equal(t, len(text)+len("more")-n, in.Len())
	}
	_, err := ReadBody(iotest.OneByteReader(strings.NewReader("abc")), nil, 4)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestReadBodyOfALie: bytes that do not arrive take no memory.
func TestReadBodyOfALie(t *testing.T) {
	in := &sized{}
	_, err := ReadBody(in, nil, 1<<40)
	require.Error(t, err)
	require.LessOrEqual(t, in.most, 8<<20, "three MiB had arrived")
}

// sized has three MiB, and notes the size of each read.
type sized struct{ read, most int }

func (s *sized) Read(b []byte) (int, error) {
	s.most = max(s.most, len(b))
	if s.read >= 3<<20 {
		return 0, io.EOF
	}
	n := copy(b, bytes.Repeat([]byte{1}, 64<<10))
	s.read += n
	return n, nil
}
