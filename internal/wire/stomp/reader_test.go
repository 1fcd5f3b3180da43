package stomp_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

const inputSize = 4096

// readerOf returns a reader with limits of 500 headers in 64 KiB.
func readerOf(r io.Reader, maxBody int) *wire.Reader {
	reader := wire.NewReader(bufio.NewReaderSize(r, inputSize), 64<<10, maxBody)
	reader.MaxLines = 500
	return reader
}

// tell returns a frame as text, with long parts cut.
func tell(f *wire.Received) string {
	cut := func(b []byte) string {
		if len(b) > 100 {
			return fmt.Sprintf("%s...%d", b[:3], len(b))
		}
		return string(b)
	}
	text := f.Command
	for _, h := range f.Headers {
		text += " " + string(h.Key) + "=" + cut(h.Value)
	}
	return text + "; " + cut(f.Body)
}

// TestReader reads the same input whole and byte by byte.
func TestReader(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3*inputSize)
	for name, test := range map[string]struct {
		in   string
		want []string // each frame; then the error
	}{
		"plain":           {"SEND\na:b\n\nbody\x00", []string{"SEND a=b; body", "EOF"}},
		"CRLF":            {"SEND\r\na:b\r\nc:\r\n\r\nbody\x00\r\n", []string{"SEND a=b c=; body", "EOF"}},
		"heart-beats":     {"\n\r\n\nACK\nid:1\n\n\x00\n\n\nACK\nid:2\n\n\x00", []string{"ACK id=1; ", "ACK id=2; ", "EOF"}},
		"STOMP":           {"STOMP\n\n\x00", []string{"CONNECT; ", "EOF"}},
		"length":          {"SEND\ncontent-length:3\n\na\x00b\x00", []string{"SEND content-length=3; a\x00b", "EOF"}},
		"first length":    {"SEND\ncontent-length:1\ncontent-length:3\n\na\x00", []string{"SEND content-length=1 content-length=3; a", "EOF"}},
		"no body":         {"ERROR\ncontent-length:0\n\n\x00", []string{"ERROR content-length=0; ", "EOF"}},
		"colons":          {"SEND\na:b:c\n\n\x00", []string{"SEND a=b:c; ", "EOF"}},
		"spaces stay":     {"SEND\na: b \n\n\x00", []string{"SEND a= b ; ", "EOF"}},
		"escapes stay":    {"MESSAGE\na:b\\c\\n\n\nb\\c\x00", []string{"MESSAGE a=b\\c\\n; b\\c", "EOF"}},
		"long header":     {"MESSAGE\na:" + large + "\n\nb\x00ACK\n\n\x00", []string{"MESSAGE a=xxx...12288; b", "ACK; ", "EOF"}},
		"long":            {"MESSAGE\na:b\n\n" + large + "\x00ACK\n\n\x00", []string{"MESSAGE a=b; xxx...12288", "ACK; ", "EOF"}},
		"long, length":    {"MESSAGE\ncontent-length:12288\n\n" + large + "\x00ACK\n\n\x00", []string{"MESSAGE content-length=12288; xxx...12288", "ACK; ", "EOF"}},
		"two long ones":   {strings.Repeat("SEND\n\n"+large+"\x00\n", 2), []string{"SEND; xxx...12288", "SEND; xxx...12288", "EOF"}},
		"largest":         {"SEND\n\n" + strings.Repeat("x", 20_000) + "\x00", []string{"SEND; xxx...20000", "EOF"}},
		"too long":        {"SEND\n\n" + strings.Repeat("x", 20_001) + "\x00", []string{"is larger than the limit of 20000"}},
		"too long said":   {"SEND\ncontent-length:20001\n\n", []string{"a body of 20001 bytes is larger than the limit of 20000"}},
		"endless":         {"SEND\n\n" + strings.Repeat("x", 100_000), []string{"is larger than the limit of 20000"}},
		"cut":             {"SEND\na:b\n\nbo", []string{"unexpected EOF"}},
		"cut head":        {"SEND\na", []string{"unexpected EOF"}},
		"cut body":        {"MESSAGE\ncontent-length:5\n\nab", []string{"unexpected EOF"}},
		"cut long body":   {"MESSAGE\ncontent-length:12288\n\n" + large, []string{"unexpected EOF"}},
		"cut in the word": {"SEN", []string{"unexpected EOF"}},
		"no NUL":          {"SEND\ncontent-length:1\n\nab\x00", []string{"no NUL after a body of 1 bytes"}},
		"negative":        {"SEND\ncontent-length:-1\n\n\x00", []string{`content-length "-1"`}},
		"huge length":     {"SEND\ncontent-length:99999999999999999999\n\n\x00", []string{"content-length \"9999"}},
		"no colon":        {"SEND\nab\n\n\x00", []string{`header line "ab" has no name or no colon`}},
		"no name":         {"SEND\n:b\n\n\x00", []string{`header line ":b" has no name or no colon`}},
		"command":         {"HELLO\n\n\x00", []string{`unknown command "HELLO"`}},
		"case":            {"send\n\n\x00", []string{`unknown command "send"`}},
		"other protocol":  {"AMQP\x00\x01\x00\x00" + strings.Repeat("x", 40), []string{"this is not STOMP"}},
		"many headers":    {"SEND\n" + strings.Repeat("a:b\n", 501) + "\n\x00", []string{"more than 500 headers"}},
		"long headers":    {"SEND\na:" + strings.Repeat("b", 70_000) + "\n\n\x00", []string{"more than 500 headers, or more than 65536 bytes"}},
		"endless header":  {"SEND\na:" + strings.Repeat("b", 200_000), []string{"more than 500 headers, or more than 65536 bytes"}},
	} {
		for way, r := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "bytes": iotest.OneByteReader(strings.NewReader(test.in)),
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				reader := readerOf(r, 20_000)
				for i, want := range test.want {
					f, err := reader.Next()
					if i == len(test.want)-1 {
						require.ErrorContains(t, err, want)
						return
					}
					require.NoError(t, err)
					assert.Equal(t, want, tell(f))
				}
			})
		}
	}
}

func TestReceived(t *testing.T) {
	t.Parallel()
	r := readerOf(strings.NewReader("SEND\na: 1 \na:2\n\n\\\x00SEND\nb:\\c\n\n\x00"), 1000)
	f := musttest.Get(r.Next())(t)
	assert.Equal(t, " 1 ", string(f.Get("a")), "the first counts")
	assert.Nil(t, f.Get("b"))
	assert.False(t, f.Escaped(), "only the body has a backslash")
	f = musttest.Get(r.Next())(t)
	assert.True(t, f.Escaped())
}

// TestReaderMemory: memory for large frames is asked for as their bytes arrive, and given back.
func TestReaderMemory(t *testing.T) {
	t.Parallel()
	const size, keep = 3 << 20, 1 << 20
	used, most := 0, 0
	reader := readerOf(strings.NewReader("SEND\ncontent-length:3145728\n\n"+strings.Repeat("y", size)+"\x00ACK\nid:1\n\n\x00"+
		"SEND\ncontent-length:3145728\n\ny"), 4<<20)
	reader.Keep = keep
	reader.Memory = func(n int) bool {
		used += n
		most = max(most, used)
		return true
	}
	f := musttest.Get(reader.Next())(t)
	require.Len(t, f.Body, size)
	require.GreaterOrEqual(t, used, size)
	require.LessOrEqual(t, used, size+inputSize, "no more than the frame needs")
	f = musttest.Get(reader.Next())(t)
	require.Equal(t, "1", string(f.Get("id")))
	require.Zero(t, used)
	most = 0
	_, err := reader.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.LessOrEqual(t, most, 2*inputSize, "a length that is a lie")

	reader = readerOf(strings.NewReader("SEND\ncontent-length:3145728\n\n"+strings.Repeat("y", size)), 4<<20)
	reader.Memory = func(n int) bool { return n < 100_000 }
	_, err = reader.Next()
	require.ErrorIs(t, err, wire.ErrMemory)
}

// TestReaderLetsMemoryGo: the memory for a large frame is used again, until large frames have passed.
func TestReaderLetsMemoryGo(t *testing.T) {
	t.Parallel()
	const spare = 1000 // frames
	large, small := "SEND\n\n"+strings.Repeat("y", 2*inputSize)+"\x00", "ACK\nid:1\n\n\x00"
	used := 0
	reader := readerOf(strings.NewReader(large+strings.Repeat(small, spare)+large+strings.Repeat(small, spare+1)), 4<<20)
	reader.Memory = func(n int) bool { used += n; return true }
	read := func(frames int) {
		t.Helper()
		for range frames {
			_, err := reader.Next()
			require.NoError(t, err)
		}
	}
	read(1)
	before := used
	require.Positive(t, before)
	read(spare + 1)
	require.Equal(t, before, used, "memory for the second large frame, with that for the first")
	read(spare)
	require.Equal(t, before, used, "memory while another large frame is not unlikely")
	read(1)
	require.Zero(t, used, "memory when large frames have passed")
}

// FuzzReader compares our reader with the frame package, and reading whole with reading byte by byte.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		"MESSAGE\nsubscription:4\nmessage-id:m\ntime:12\ncontent-length:3\n\na\x00b\x00\nRECEIPT\nreceipt-id:s1.2.3\n\n\x00",
		"MESSAGE\nredelivered:true\r\n\r\nabc\x00", "CONNECT\naccept-version:1.2\n\n\x00\n",
		"SEND\ndestination:a\\cb\ncontent-length:3\n\na\x00b\x00", "\r\nSEND\r\na:b\r\n\r\n\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || bytes.Contains(data, []byte("content-length:")) && len(data) > 1<<12 {
			return
		}
		ours, theirs := readerOf(bytes.NewReader(data), 1<<20), frame.NewReader(bytes.NewReader(data))
		bytewise, same := readerOf(iotest.OneByteReader(bytes.NewReader(data)), 1<<20), true
		for {
			got, err := ours.Next()
			again, err2 := bytewise.Next()
			require.Equal(t, err == nil, err2 == nil, "%v, %v", err, err2)
			if err != nil {
				var large *wire.TooLargeError
				require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, wire.ErrSyntax) ||
					errors.As(err, &large), "%v", err)
				return
			}
			require.Equal(t, got.Command, again.Command)
			require.Equal(t, got.Headers, again.Headers)
			require.Equal(t, string(got.Body), string(again.Body))
			var want *frame.Frame
			for want == nil && err == nil && same {
				want, err = theirs.Read()
			}
			if same = same && err == nil; !same {
				continue // it is stricter in places: an empty line may hold a carriage return more, for example
			}
			if want.Command == "STOMP" {
				want.Command = frame.CONNECT
			}
			require.Equal(t, want.Command, got.Command)
			require.Equal(t, want.Header.Len(), len(got.Headers))
			require.Equal(t, string(want.Body), string(got.Body))
		}
	})
}
