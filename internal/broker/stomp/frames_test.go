package stomp

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

func newScanner(r io.Reader) *scanner {
	return &scanner{r: r, idle: func() error { return nil }, maxBody: 1000, account: store.New(store.Config{}).NewAccount()}
}

// TestScan reads the same input whole and byte by byte.
func TestScan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   string
		want []string // command, headers and body of each frame; then the error
	}{
		"plain":          {"SEND\na:b\n\nbody\x00", []string{"1 a=b; body", "EOF"}},
		"CRLF":           {"SEND\r\na:b\r\nc:\r\n\r\nbody\x00\r\n", []string{"1 a=b c=; body", "EOF"}},
		"heart-beats":    {"\n\r\n\nACK\nid:1\n\n\x00\n\n\nACK\nid:2\n\n\x00", []string{"2 id=1; ", "2 id=2; ", "EOF"}},
		"length":         {"SEND\ncontent-length:3\n\na\x00b\x00", []string{"1 content-length=3; a\x00b", "EOF"}},
		"first length":   {"SEND\ncontent-length:1\ncontent-length:3\n\na\x00", []string{"1 content-length=1 content-length=3; a", "EOF"}},
		"colons":         {"SEND\na:b:c\n\n\x00", []string{"1 a=b:c; ", "EOF"}},
		"spaces stay":    {"SEND\na: b \n\n\x00", []string{"1 a= b ; ", "EOF"}},
		"long":           {"SEND\n\n" + strings.Repeat("x", 1000) + "\x00", []string{"1; " + strings.Repeat("x", 1000), "EOF"}},
		"too long":       {"SEND\n\n" + strings.Repeat("x", 1001) + "\x00", []string{"is larger than the limit of 1000"}},
		"too long said":  {"SEND\ncontent-length:1001\n\n", []string{"a body of 1001 bytes is larger than the limit of 1000"}},
		"endless":        {"SEND\n\n" + strings.Repeat("x", 100_000), []string{"is larger than the limit of 1000"}},
		"cut":            {"SEND\na:b\n\nbo", []string{"unexpected EOF"}},
		"cut head":       {"SEND\na", []string{"unexpected EOF"}},
		"no NUL":         {"SEND\ncontent-length:1\n\nab\x00", []string{"no NUL after a body of content-length 1"}},
		"negative":       {"SEND\ncontent-length:-1\n\n\x00", []string{`content-length "-1"`}},
		"huge length":    {"SEND\ncontent-length:99999999999999999999\n\n\x00", []string{"content-length \"9999"}},
		"no colon":       {"SEND\nab\n\n\x00", []string{`header line "ab" has no name or no colon`}},
		"no name":        {"SEND\n:b\n\n\x00", []string{`header line ":b" has no name or no colon`}},
		"command":        {"HELLO\n\n\x00", []string{`unknown command "HELLO"`}},
		"case":           {"send\n\n\x00", []string{`unknown command "send"`}},
		"other protocol": {"AMQP\x00\x01\x00\x00" + strings.Repeat("x", 40), []string{"this is not STOMP"}},
		"many headers":   {"SEND\n" + strings.Repeat("a:b\n", 501) + "\n\x00", []string{"more than 500 headers"}},
		"long headers":   {"SEND\na:" + strings.Repeat("b", 70_000) + "\n\n\x00", []string{"more than 500 headers, or more than 65536 bytes"}},
		"endless header": {"SEND\na:" + strings.Repeat("b", 200_000), []string{"more than 500 headers, or more than 65536 bytes"}},
	} {
		for way, r := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "bytes": iotest.OneByteReader(strings.NewReader(test.in)),
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				s := newScanner(r)
				for i, want := range test.want {
					f, err := s.next()
					if i == len(test.want)-1 {
						require.Error(t, err)
						require.Contains(t, err.Error(), want)
						return
					}
					require.NoError(t, err)
					got := string('0' + rune(f.command))
					for _, h := range f.headers {
						got += " " + string(h.key) + "=" + string(h.value)
					}
					assert.Equal(t, want, got+"; "+string(f.body))
				}
			})
		}
	}
}

func TestScanLargeBuffer(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("y", 3<<20)
	s := newScanner(strings.NewReader("SEND\ncontent-length:3145728\n\n" + big + "\x00ACK\nid:1\n\n\x00"))
	s.maxBody = 4 << 20
	f, err := s.next()
	require.NoError(t, err)
	assert.Equal(t, big, string(f.body))
	f, err = s.next()
	require.NoError(t, err)
	assert.Equal(t, "1", string(f.get("id")))
	_, err = s.next()
	require.ErrorIs(t, err, io.EOF)
	assert.Len(t, s.buf, readBuffer, "the large buffer is not kept")
}

func TestBeats(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]time.Duration{
		"": {}, "0,0": {}, "1000,0": {0, time.Second}, "0,2000": {2 * time.Second, 0}, "1,1": {minBeat, minBeat},
		" 500 , 700 ": {700 * time.Millisecond, 500 * time.Millisecond},
	} {
		send, hear, err := beats(header)
		require.NoError(t, err, header)
		assert.Equal(t, want, [2]time.Duration{send, hear}, header)
	}
	for _, header := range []string{"x", "1", "1,-1", ","} {
		_, _, err := beats(header)
		assert.Error(t, err, header)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	q, topic := store.KindQueue, store.KindTopic
	for _, test := range []struct {
		name, kind string
		want       store.Address
		wrong      string
	}{
		{"/queue/a/b", "", store.Address{Kind: q, Name: "a/b"}, ""},
		{"queue://a", "ANYCAST", store.Address{Kind: q, Name: "a"}, ""},
		{"/topic/a", "multicast", store.Address{Kind: topic, Name: "a"}, ""},
		{"topic://a", "", store.Address{Kind: topic, Name: "a"}, ""},
		{"a", "", store.Address{Kind: q, Name: "a"}, ""},
		{"/a", "", store.Address{Kind: q, Name: "/a"}, ""},
		{"a", "MULTICAST", store.Address{Kind: topic, Name: "a"}, ""},
		{"queue:///queue/a", "", store.Address{Kind: q, Name: "/queue/a"}, ""},
		{"/topic/a", "ANYCAST", store.Address{}, "has not the routing type ANYCAST"},
		{"a", "FOO", store.Address{}, `routing type "FOO" is neither`},
		{"", "", store.Address{}, "no destination"},
		{"/queue/", "", store.Address{}, "no destination"},
	} {
		got, err := address(test.name, test.kind)
		if test.wrong != "" {
			require.ErrorContains(t, err, test.wrong)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, test.want, got, test.name)
	}
}

// other is a message of another protocol.
type other struct{ h store.Header }

func (o *other) Size() int                     { return 1 }
func (o *other) Body() []byte                  { return []byte("b") }
func (o *other) Header() store.Header          { return o.h }
func (o *other) WithBody([]byte) store.Content { return o }

func TestForeign(t *testing.T) {
	t.Parallel()
	m := &store.Message{
		Content: &other{store.Header{
			MessageID: "m1", CorrelationID: "c:1", ReplyTo: "queue://r", ContentType: "text/plain", Subject: "s", Created: 17,
			Properties: []store.Property{
				{Key: "s", Value: "a\nb"},
				{Key: "b", Value: true},
				{Key: "i", Value: int64(-5)},
				{Key: "f", Value: 1.5},
				{Key: "y", Value: []byte{0, 1}},
				{Key: "destination", Value: "no"},
				{Key: "ack", Value: "no"},
			},
		}},
		Priority: 6, Durable: true, Group: "g", Expires: 99,
	}
	const want = `content-length:1
JMSMessageID:m1
correlation-id:c\c1
reply-to:queue\c//r
content-type:text/plain
type:s
JMSXGroupID:g
timestamp:17
expires:99
priority:6
persistent:true
s:a\nb
b:true
i:-5
f:1.5
y:AAE=
`
	assert.Equal(t, want, string(appendHead(nil, m, wire.V12)))
}

// TestContent sends frames of each version and looks at what the other protocols see of them.
func TestContent(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Options{})
	for version, colour := range map[string]string{"1.0": `a\c:b`, "1.1": `a\\c\cb`, "1.2": `a\\c\cb`} {
		c := connected(t, s.addr, version)
		c.ask("SEND", "bo\x00dy", "destination:/queue/"+version, "content-length:5", "colour:"+colour, "colour:second",
			"correlation-id:c1", "reply-to:/queue/r", "content-type:text/x", "type:T", "timestamp:17", "priority:9", "expires:9999999999999",
			"persistent:true", "JMSXGroupID:g", "message-id:mine", "ack:mine")
		k, err := s.store.Queue(version).Consume(nil, func() {})
		require.NoError(t, err)
		var got [2]store.Delivery
		require.Equal(t, 1, k.Take(got[:]))
		m := got[0].Message
		assert.Equal(t, "bo\x00dy", string(m.Content.Body()))
		assert.Equal(t, store.Header{
			Properties:    []store.Property{{Key: "colour", Value: `a\c:b`}},
			CorrelationID: "c1", ReplyTo: "/queue/r", ContentType: "text/x", Subject: "T", Created: 17,
		}, m.Content.Header(), version)
		assert.Equal(t, `a\c:b`, m.Content.(*content).Property("colour"))
		assert.Nil(t, m.Content.(*content).Property("destination"))
		assert.Equal(t, [4]any{uint8(9), true, "g", int64(9999999999999)}, [4]any{m.Priority, m.Durable, m.Group, m.Expires})
		damaged := m.Content.WithBody([]byte("other"))
		assert.Equal(t, "other", string(damaged.Body()))
		assert.Equal(t, m.Content.Header(), damaged.Header())
		k.Close(false)
		for other, want := range map[string]string{"1.0": `a\c:b`, "1.1": `a\\c\cb`, "1.2": `a\\c\cb`} {
			r := connected(t, s.addr, other)
			r.put("SUBSCRIBE", "", "destination:/queue/"+version, "id:1", "ack:client")
			a := r.get()
			assert.Equal(t, want, a.headers["colour"], "%s to %s", version, other)
			assert.Equal(t, "bo\x00dy", a.body)
			assert.NotEqual(t, "mine", a.headers["message-id"])
			r.ask("DISCONNECT", "")
			require.Equal(t, "EOF", r.get().command)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"CONNECT\naccept-version:1.2\n\n\x00\n", "SEND\ndestination:a\\cb\ncontent-length:3\n\na\x00b\x00", "\r\nSEND\r\na:b\r\n\r\n\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, bytewise := newScanner(strings.NewReader(string(in))), newScanner(iotest.OneByteReader(strings.NewReader(string(in))))
		for {
			a, err := whole.next()
			b, err2 := bytewise.next()
			if err != nil || err2 != nil {
				require.Equal(t, err == nil, err2 == nil, "%v, %v", err, err2)
				return
			}
			require.Equal(t, a.command, b.command)
			require.Equal(t, a.headers, b.headers)
			require.Equal(t, string(a.body), string(b.body))
		}
	})
}
