package stomp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	q, topic := driver.Queue, driver.Topic
	for _, test := range []struct {
		name string
		want driver.Destination // without a name it is refused
	}{
		{"/queue/a/b", driver.Destination{Kind: q, Name: "a/b"}},
		{"queue://a", driver.Destination{Kind: q, Name: "a"}},
		{"/topic/a", driver.Destination{Kind: topic, Name: "a"}},
		{"topic://a", driver.Destination{Kind: topic, Name: "a"}},
		{"a", driver.Destination{Kind: q, Name: "a"}},
		{"/a", driver.Destination{Kind: q, Name: "/a"}},
		{"queue:///queue/a", driver.Destination{Kind: q, Name: "/queue/a"}},
		{"", driver.Destination{}},
		{"/queue/", driver.Destination{}},
	} {
		got, err := address(test.name)
		if test.want.Name == "" {
			require.ErrorContains(t, err, "no header destination")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, test.want, got, test.name)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	m := &store.Message{
		Content: storetest.Content{Data: "b", List: []store.Property{
			{Key: "s", Value: "a\nb"},
			{Key: "b", Value: true},
			{Key: "i", Value: int64(-5)},
			{Key: "f", Value: 1.5},
			{Key: "y", Value: []byte{0, 1}},
			{Key: "destination", Value: "no"},
			{Key: "ack", Value: "no"},
			{Key: "reply-to", Value: "no"},
		}, Address: store.Addressing{MessageID: "m:1", CorrelationID: "c:1", ReplyTo: "queue://R"}},
		Priority: 6, Durable: true, Group: "g", Expires: 99,
	}
	const want = `content-length:1
JMSXGroupID:g
expires:99
reply-to:queue\c//R
correlation-id:c\c1
priority:6
persistent:true
s:a\nb
b:true
i:-5
f:1.5
y:AAE=
`
	assert.Equal(t, want, string(appendHead(nil, m)))
}

// TestContent sends a frame and reads it as the other protocols do.
func TestContent(t *testing.T) {
	s, c := begin(t, store.Config{})
	c.ask("SEND", "bo\x00dy", "destination:/queue/q", "content-length:5", `colour:a\\c\cb`, "colour:second",
		"priority:9", "expires:9999999999999", "persistent:true", "JMSXGroupID:g", "message-id:mine", "ack:mine")
	k := musttest.Get(s.store.Queue("q").Consume(nil, func() {}))(t)
	var got [2]store.Delivery
	require.Equal(t, 1, k.Take(got[:]))
	m := got[0].Message
	assert.Equal(t, "bo\x00dy", string(m.Content.Body()))
	assert.Equal(t, []store.Property{{Key: "colour", Value: `a\c:b`}}, m.Content.Properties())
	assert.False(t, m.Content.Text())
	assert.Equal(t, `a\c:b`, m.Content.(*message).Property("colour"))
	assert.Nil(t, m.Content.(*message).Property("destination"))
	assert.Equal(t, [4]any{uint8(9), true, "g", int64(9999999999999)}, [4]any{m.Priority, m.Durable, m.Group, m.Expires})
	damaged := m.Content.WithBody([]byte("other"))
	assert.Equal(t, "other", string(damaged.Body()))
	assert.Equal(t, m.Content.Properties(), damaged.Properties())
	k.Close(false)
	r := connected(t, s.addr)
	r.put("SUBSCRIBE", "", "destination:/queue/q", "id:1", "ack:client")
	a := r.get()
	assert.Equal(t, `a\\c\cb`, a.headers["colour"])
	assert.Equal(t, "bo\x00dy", a.body)
	assert.NotEqual(t, "mine", a.headers["message-id"])
	r.ask("DISCONNECT", "")
	require.Equal(t, "EOF", r.get().command)
}
