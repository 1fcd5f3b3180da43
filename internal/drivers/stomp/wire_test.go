package stomp

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
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

// connectionOf returns a connection that reads from r.
func connectionOf(r io.Reader, maxBody int) *connection {
	c := &connection{}
	c.in = wire.NewReader(transport.NewInput(r, nil, new(transport.Buffers)), maxHead, maxBody)
	return c
}

// TestMessage reads the parts of a MESSAGE that the driver needs.
func TestMessage(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		want  message
	}{
		"all": {
			"MESSAGE\nsubscription:4\nmessage-id:m\\c1\nack:a\\c1\ntime:-12\nredelivered:true\ncontent-length:3\n\na\x00b\x00",
			message{Delivery: driver.Delivery{Time: -12, HasTime: true, Redelivered: true, Body: []byte("a\x00b")}, sub: 4, ack: []byte("a\\c1")},
		},
		"first header counts": {
			"MESSAGE\nsubscription:4\nsubscription:5\ntime:1\ntime:2\nmessage-id:m\ncontent-length:1\ncontent-length:9\n\na\x00",
			message{Delivery: driver.Delivery{Time: 1, HasTime: true, Body: []byte("a")}, sub: 4, ack: []byte("m")},
		},
		"ID": {
			"MESSAGE\nperfmq_id:1-0-12-9223372036854775807\nperfmq_id:7-0-0-0\n\n\x00",
			message{Delivery: driver.Delivery{ID: driver.ID{Run: 1, Number: 12, Sum: 1<<63 - 1}}, sub: -1},
		},
		"ID with a delay": {
			"MESSAGE\nperfmq_id:1-0-12\n\n\x00",
			message{Delivery: driver.Delivery{ID: driver.ID{Run: 1, Number: driver.Unnumbered, Delay: 12}}, sub: -1},
		},
		"no ID at all": {"MESSAGE\nperfmq_id:\nperfmq_id:1-2-3-4\n\n\x00", message{Delivery: driver.Delivery{ID: driver.GarbledID()}, sub: -1}},
		"not a time":   {"MESSAGE\ntime:1e3\n\n\x00", message{sub: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connectionOf(strings.NewReader(c.input+c.input), driver.DefaultMaxBody)
			var m message
			for range 2 {
				f, err := conn.next("")
				require.NoError(t, err)
				m.read(f)
				got := m
				got.ids, got.id = driver.IDReader{}, nil
				if len(got.Body) == 0 {
					got.Body = nil
				}
				require.Equal(t, c.want, got)
			}
		})
	}
}

// TestReadErrors: errors name the side that broke the protocol, and the setting for messages that are too large.
func TestReadErrors(t *testing.T) {
	const maxBody = 200_000
	for input, want := range map[string]struct {
		class driver.Class
		text  string
	}{
		"MESSAGE\nsubscription":                                 {driver.ClassConnectionLost, "unexpected EOF"},
		"MESSAGE\ncontent-length:2\n\nabc\x00":                  {driver.ClassProtocol, "the broker broke the protocol: invalid frame: no NUL after a body of 2 bytes"},
		"MESSAGE\ncontent-length:9999999999\n\na\x00":           {driver.ClassTooLarge, "the broker sends a message with a body of 9999999999 bytes; perfmq accepts at most 200000"},
		"MESSAGE\n\n" + strings.Repeat("x", maxBody+1) + "\x00": {driver.ClassTooLarge, "the broker sends a message with a body of"},
		"ERROR\ncontent-length:9999999999\n\na\x00":             {driver.ClassProtocol, "a body of 9999999999 bytes is larger than the limit of 200000"},
		"MESSAGES\n\n\x00":                                      {driver.ClassProtocol, "unknown command \"MESSAGES\""},
		"MESSAGE\na:" + strings.Repeat("b", maxHead) + "\n\x00": {driver.ClassProtocol, "more than 1048576 bytes of headers"},
	} {
		_, err := connectionOf(strings.NewReader(input), maxBody).next("the hint")
		require.ErrorContains(t, err, want.text, "%.40q", input)
		require.Equal(t, want.class, driver.ClassOf(err), "%.40q", input)
		if want.class == driver.ClassProtocol {
			require.Equal(t, "the hint", driver.HintOf(err))
		}
	}
}
