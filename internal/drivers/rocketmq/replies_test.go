package rocketmq

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestReplyProperties: what requests and replies carry, and what is read of them.
func TestReplyProperties(t *testing.T) {
	p := &producer{op: "send", replyTTL: 1500e6}
	var d driver.Delivery
	read := func(m *driver.Message, more ...string) string {
		b := p.appendReply(nil, m)
		for i := 0; i < len(more); i += 2 {
			b = wire.AppendProperty(b, more[i], more[i+1])
		}
		readReply(nil, b, &d)
		return strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(b))
	}
	got := read(&driver.Message{Correlation: []byte("c"), ReplyTo: "perfmq-1@2"}, wire.PropCluster, "C", wire.PropUniqueKey, "u")
	assert.Equal(t, "CORRELATION_ID=c;REPLY_TO_CLIENT=perfmq-1@2;TTL=1500;CLUSTER=C;UNIQ_KEY=u;", got)
	assert.Equal(t, [3]string{"client://C/perfmq-1@2", "c", "u"}, [3]string{string(d.ReplyTo), string(d.Correlation), string(d.MessageID)})
	got = read(&driver.Message{Correlation: []byte("c"), ReplyTo: "queue://R"})
	assert.Equal(t, "CORRELATION_ID=c;REPLY_TO=queue://R;", got)
	assert.Equal(t, "queue://R", string(d.ReplyTo))
	p.requester = []byte("1.2.3.4@5")
	got = read(&driver.Message{Correlation: []byte("c"), To: []byte("client://C/1.2.3.4@5")})
	assert.Equal(t, "CORRELATION_ID=c;MSG_TYPE=reply;REPLY_TO_CLIENT=1.2.3.4@5;", got)
	assert.Empty(t, d.ReplyTo)
	scratch, properties := make([]byte, 0, 64), p.appendReply(nil, &driver.Message{Correlation: []byte("c")})
	require.Zero(t, testing.AllocsPerRun(100, func() { scratch = readReply(scratch, properties, &d) }))
}

// TestRepliesToNobody: a request with an illegal address, or IDs that do not fit, fails its reply alone.
func TestRepliesToNobody(t *testing.T) {
	o := &outcomes{}
	p := &producer{op: "send", done: o, targets: map[string]*target{}, kinds: []kind{{body: []byte("x")}}}
	p.brokers.Store(&sendBrokers{})
	for _, m := range []driver.Message{
		{To: []byte("")},
		{To: []byte("queue://")},
		{To: []byte("topic://a b")},
		{To: []byte("client://")},
		{To: []byte("client://C")},
		{To: []byte("queue://R"), Correlation: []byte("a\x01b")},
		{To: []byte("queue://R"), Correlation: []byte("a\x02b")},
		{To: []byte("queue://R"), Correlation: make([]byte, maxReplyIDs+1)},
		{To: []byte("client://C/a\x02b")},
	} {
		require.NoError(t, p.Send(t.Context(), &m))
	}
	require.Equal(t, 9, o.total())
	for i := range maxTargets {
		p.targets[string(rune(i+1))] = &target{}
	}
	require.NoError(t, p.Send(t.Context(), &driver.Message{To: []byte("queue://ONE_MORE")}))
	require.Equal(t, 10, o.total())
	for _, out := range o.list {
		require.Equal(t, driver.Rejected, out.State, "%v", out.Err)
	}
}

// TestPushedReplies: a client takes replies up to a limit of bytes, and without a consumer none.
func TestPushedReplies(t *testing.T) {
	c := drained(t)
	owner := &client{consumers: map[string]*consumer{}}
	to := &replyConsumer{client: owner, d: &rocketDriver{}, arrived: make(chan struct{}, 1), input: driver.NewMeter(), conns: []*conn{c}}
	to.d.cfg.MaxBody = holdLimit
	r := &reply{from: c}
	r.Body = make([]byte, holdLimit/2+1)
	owner.takeReply(r)
	require.Empty(t, to.waiting.list)
	owner.setReplies(to)
	r.Body = []byte("first")
	r.Fields = wire.AppendField(wire.AppendInt(nil, "storeTimestamp", 7), "properties", "CORRELATION_ID\x01c\x02time\x0112\x02")
	owner.takeReply(r)
	r.Body, r.Fields = make([]byte, holdLimit/2), nil
	owner.takeReply(r)
	owner.takeReply(r) // too much
	require.Len(t, to.waiting.list, 2)
	owner.losesReplies(drained(t))
	require.NoError(t, to.err)
	c.Fail(errNoAnswer)
	owner.losesReplies(c)
	var got []driver.Delivery
	err := to.Run(t.Context(), func(d *driver.Delivery) driver.Verdict {
		kept := *d
		kept.Body, kept.Correlation = []byte(string(d.Body)), []byte(string(d.Correlation))
		got = append(got, kept)
		return driver.Accept
	})
	require.Error(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, driver.Delivery{Body: []byte("first"), Correlation: []byte("c"), Time: 12, HasTime: true, Stored: 7000, MessageID: nil}, got[0])
	assert.Empty(t, got[1].Correlation)
}
