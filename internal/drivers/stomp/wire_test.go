package stomp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestReceipts(t *testing.T) {
	for _, r := range []receipt{
		{kind: receiptOfSend, owner: 3, slot: driver.NewSlot(17, 1042)},
		{kind: receiptOfSend, slot: driver.NewSlot(0, 1)},
		{kind: receiptOfSend, owner: 1, slot: driver.NewSlot(math.MaxUint32, math.MaxUint32)},
		{kind: receiptOfCommit, owner: 7, number: 9},
		{kind: receiptOfReceive, owner: 2, number: 3},
		{kind: receiptOfRequest, number: 12},
	} {
		back, ok := parseReceipt([]byte(r.String()))
		require.True(t, ok, r)
		require.Equal(t, r, back)
	}
	for _, text := range []string{
		"", "s", "s1", "s1.2", "s1.2.", "s1.2.x", "s.2.3", "s1..3", "x1", "c", "c-1", "c 1", "t1", "t1.", "s1.2.3.4",
		"c99999999999999999999", "C1", "message-12345", "r1", "s1.4294967296.3", "s1.2.4294967296",
	} {
		_, ok := parseReceipt([]byte(text))
		require.False(t, ok, "%q", text)
	}
}

func FuzzReceipt(f *testing.F) {
	f.Add("s1.2.3")
	f.Add("t1.2")
	f.Fuzz(func(t *testing.T, text string) {
		if r, ok := parseReceipt([]byte(text)); ok {
			again, ok := parseReceipt([]byte(r.String()))
			require.True(t, ok)
			require.Equal(t, r, again)
		}
	})
}

// scannerOf returns a scanner that reads from r.
func scannerOf(r io.Reader, maxBody int) *scanner {
	return newScanner(transport.NewInput(r, nil, new(transport.Buffers), nil), maxBody)
}

// tell returns the fields of a frame as text, with long bodies cut.
func tell(f *inbound) string {
	body := string(f.body)
	if len(body) > 100 {
		body = fmt.Sprintf("%s... %d", body[:5], len(body))
	}
	d := f.delivery()
	return fmt.Sprintf("%c receipt=%v sub=%d ack=%q time=%d/%t ID=%v redelivered=%t body=%q",
		f.kind, f.receipt, f.sub, f.ack, d.Time, d.HasTime, d.ID, d.Redelivered, body)
}

func TestScan(t *testing.T) {
	large := strings.Repeat("x", 3*transport.InputSize)
	for name, c := range map[string]struct {
		input string
		want  inbound
	}{
		"receipt":           {"RECEIPT\nreceipt-id:s1.2.3\n\n\x00", inbound{kind: kindReceipt, sub: -1, receipt: receipt{kind: receiptOfSend, owner: 1, slot: driver.NewSlot(2, 3)}}},
		"after heart-beats": {"\n\r\n\nRECEIPT\r\nreceipt-id:c1\r\n\r\n\x00", inbound{kind: kindReceipt, sub: -1, receipt: receipt{kind: receiptOfRequest, number: 1}}},
		"message": {
			"MESSAGE\nsubscription:4\nmessage-id:m\\c1\nack:a\\c1\ntime:-12\nredelivered:true\ncontent-length:3\n\na\x00b\x00",
			inbound{kind: kindMessage, sub: 4, ack: []byte("a\\c1"), time: -12, hasTime: true, redelivered: true, body: []byte("a\x00b")},
		},
		"first header counts": {
			"MESSAGE\nsubscription:4\nsubscription:5\ntime:1\ntime:2\nmessage-id:m\ncontent-length:1\ncontent-length:9\n\na\x00",
			inbound{kind: kindMessage, sub: 4, ack: []byte("m"), time: 1, hasTime: true, body: []byte("a")},
		},
		"ID": {
			"MESSAGE\nperfmq_id:1-0-12-9223372036854775807\nperfmq_id:7-0-0-0\n\n\x00",
			inbound{kind: kindMessage, sub: -1, id: driver.ID{Run: 1, Number: 12, Sum: 1<<63 - 1}},
		},
		"ID with a delay": {"MESSAGE\nperfmq_id:1-0-12\n\n\x00", inbound{kind: kindMessage, sub: -1, id: driver.ID{Run: 1, Number: driver.Unnumbered, Delay: 12}}},
		"no ID at all":    {"MESSAGE\nperfmq_id:\nperfmq_id:1-2-3-4\n\n\x00", inbound{kind: kindMessage, sub: -1, id: driver.GarbledID()}},
		"no length":       {"MESSAGE\nmessage-id:m\n\nabc\x00", inbound{kind: kindMessage, sub: -1, ack: []byte("m"), body: []byte("abc")}},
		"not a time":      {"MESSAGE\ntime:1e3\n\n\x00", inbound{kind: kindMessage, sub: -1}},
		"long header":     {"MESSAGE\nx:" + large + "\nsubscription:1\n\n\x00", inbound{kind: kindMessage, sub: 1}},
		"long body":       {"MESSAGE\nsubscription:1\n\n" + large + "\x00", inbound{kind: kindMessage, sub: 1, body: []byte(large)}},
		"large body": {
			"MESSAGE\nsubscription:1\ncontent-length:196608\n\n" + large + "\x00",
			inbound{kind: kindMessage, sub: 1, body: []byte(large)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(c.input + c.input), iotest.OneByteReader(strings.NewReader(c.input + c.input)),
			} {
				s := scannerOf(r, driver.DefaultMaxBody)
				s.version = wire.V12
				for range 2 {
					var f inbound
					require.NoError(t, s.next(&f))
					require.Equal(t, tell(&c.want), tell(&f))
				}
				var f inbound
				require.ErrorIs(t, s.next(&f), io.EOF)
			}
		})
	}
}

func TestScanErrors(t *testing.T) {
	const maxBody = 200_000
	for input, want := range map[string]string{
		"MESSAGE\nsubscription":                                                 "unexpected EOF",
		"MESSAGE\ncontent-length:5\n\nab":                                       "unexpected EOF",
		"MESSAGE\ncontent-length:2\n\nabc\x00":                                  "no NUL after a body of 2 bytes",
		"MESSAGE\ncontent-length:-2\n\nabc\x00":                                 `content-length "-2"`,
		"MESSAGE\ncontent-length:9999999999\n\na\x00":                           "a message with a body of 9999999999 bytes; perfmq accepts at most 200000",
		"MESSAGE\n\n" + strings.Repeat("x", maxBody+1) + "\x00":                 "a message with a body without an end; perfmq accepts at most 200000",
		"ERROR\ncontent-length:9999999999\n\na\x00":                             "a body of 9999999999 bytes; perfmq accepts at most 200000",
		"ERROR\n\n" + strings.Repeat("x", maxBody+transport.InputSize) + "\x00": "a body without an end; perfmq accepts at most 200000",
		"ERROR\ncontent-length:2\n\nabc\x00":                                    "no NUL after a body of 2 bytes",
		"ERROR\ncontent-length:5\n\nabc":                                        "unexpected EOF",
		"ERROR\n\nabc":                                                          "unexpected EOF",
		"MESSAGE\nno colon\n\n\x00":                                             `header line "no colon"`,
		"ERROR\nno colon\n\n\x00":                                               `header line "no colon"`,
		"MESSAGES\n\n\x00":                                                      "not a STOMP frame",
		"HTTP/1.1 400 Bad Request\r\n\r\n":                                      `one of type "HTTP/1.1 400 Bad Request"`,
		"MESSAGE\n" + strings.Repeat("a:b\n", maxHead/4+1) + "\n\x00":           "more than the 1048576 bytes that perfmq accepts",
		"ERROR\n" + strings.Repeat("a:b\n", maxHead/4+1) + "\n\x00":             "more than the 1048576 bytes that perfmq accepts",
		"MESSAGE\na:" + strings.Repeat("b", maxHead) + "\n\x00":                 "more than the 1048576 bytes that perfmq accepts",
	} {
		var f inbound
		require.ErrorContains(t, scannerOf(strings.NewReader(input), maxBody).next(&f), want, "%.40q", input)
	}
}

// TestScanOther reads frames that are no messages.
func TestScanOther(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		input string
		want  *wire.Frame
		body  string
	}{
		"CONNECTED has no escapes": {"CONNECTED\nserver:a\\cb\n\n\x00", wire.NewFrame(wire.CONNECTED, "server", "a\\cb"), ""},
		"ERROR has":                {"ERROR\nmessage:a\\cb\\nc\\\\n\n\nwhy\x00", wire.NewFrame(wire.ERROR, "message", "a:b\nc\\n"), "why"},
		"first length counts": {
			"ERROR\ncontent-length:3\ncontent-length:9\n\nw\x00y\x00", wire.NewFrame(wire.ERROR, "content-length", "3", "content-length", "9"), "w\x00y",
		},
		"a long body":               {"ERROR\n\n" + large + "\x00", wire.NewFrame(wire.ERROR), large[:maxWordsRead]},
		"a long body with a length": {"ERROR\ncontent-length:100000\n\n" + large + "\x00", wire.NewFrame(wire.ERROR, "content-length", "100000"), large[:maxWordsRead]},
		"an empty one":              {"ERROR\ncontent-length:0\n\n\x00", wire.NewFrame(wire.ERROR, "content-length", "0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(c.input + c.input), iotest.OneByteReader(strings.NewReader(c.input + c.input)),
			} {
				s := scannerOf(r, driver.DefaultMaxBody)
				for range 2 {
					var f inbound
					require.NoError(t, s.next(&f))
					require.Equal(t, c.want.Command, f.other.Command)
					require.Equal(t, c.want.Headers, f.other.Headers)
					require.Equal(t, c.body, string(f.other.Body))
				}
				var f inbound
				require.ErrorIs(t, s.next(&f), io.EOF)
			}
		})
	}
}

// FuzzScan holds our reading against the frame package's.
func FuzzScan(f *testing.F) {
	f.Add([]byte("MESSAGE\nsubscription:4\nmessage-id:m\ntime:12\ncontent-length:3\n\na\x00b\x00\nRECEIPT\nreceipt-id:s1.2.3\n\n\x00"))
	f.Add([]byte("MESSAGE\nredelivered:true\r\n\r\nabc\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || bytes.Contains(data, []byte("content-length:")) && len(data) > 1<<12 {
			return
		}
		ours, theirs := scannerOf(bytes.NewReader(data), driver.DefaultMaxBody), frame.NewReader(bytes.NewReader(data))
		for {
			var got inbound
			err := ours.next(&got)
			if err != nil {
				require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errNotSTOMP) ||
					driver.ClassOf(err) == driver.ClassTooLarge, "%v", err)
				return
			}
			want, err := theirs.Read()
			for want == nil && err == nil {
				want, err = theirs.Read()
			}
			if err != nil {
				return // it is stricter in places: an empty line may hold a carriage return more, for example
			}
			if got.kind == kindOther {
				require.Equal(t, want.Command, got.other.Command)
				require.Equal(t, want.Header.Len(), len(got.other.Headers))
				require.Equal(t, string(want.Body[:min(len(want.Body), maxWordsRead)]), string(got.other.Body))
				continue
			}
			require.Equal(t, want.Command == frame.MESSAGE, got.kind == kindMessage)
			require.Equal(t, len(want.Body), len(got.body))
			require.True(t, bytes.Equal(want.Body, got.body))
			if id, ok := want.Header.Contains(frame.ReceiptId); ok && !strings.ContainsAny(id, "\\\r\n:") {
				r, ok := parseReceipt([]byte(id))
				require.Equal(t, ok, got.receipt.kind != 0)
				require.True(t, !ok || r == got.receipt)
			}
		}
	})
}
