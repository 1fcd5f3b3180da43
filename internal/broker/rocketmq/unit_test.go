package rocketmq

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

func other(body string, properties ...store.Property) *store.Message {
	return &store.Message{Content: storetest.Content{Data: body, List: properties}, Priority: 4}
}

func sendN(t *topic, from, n int) {
	for i := range n {
		t.dest.Send(other(strconv.Itoa(from + i)))
	}
}

// contents returns what a queue holds.
func contents(q *queue) (list []string) {
	buf := make([]entry, 1000)
	first, _ := q.limits()
	n, _, _ := q.read(buf, first, nil)
	for _, e := range buf[:n] {
		list = append(list, string(e.m.body))
	}
	return list
}

func TestOtherProtocolsAreDealtOutOverTheQueues(t *testing.T) {
	s := New(store.New(store.Config{}), Options{})
	defer s.Close()
	topic := s.makeTopic("T", 3)
	sendN(topic, 0, 9)
	for id := range int64(3) {
		require.Len(t, contents(topic.queue(id)), 3)
	}
}

func TestConversion(t *testing.T) {
	in := &store.Message{Group: "g", Content: storetest.Content{Data: "body", IsText: true, List: []store.Property{
		{Key: "s", Value: "x"}, {Key: "n", Value: int64(-5)}, {Key: "f", Value: 1.5}, {Key: "b", Value: true}, {Key: "bad", Value: "a\x01b"},
	}}}
	m := convert(in, "T")
	require.True(t, m.Text())
	require.Equal(t, []store.Property{
		{Key: "CONTENT_TYPE", Value: "text/plain"}, {Key: "s", Value: "x"}, {Key: "n", Value: "-5"}, {Key: "f", Value: "1.5"}, {Key: "b", Value: "true"},
	}, m.Properties())
	require.Equal(t, "g", string(wire.Property(m.properties, wire.PropShardingKey)))
	require.Equal(t, "body", string(m.Body()))
	require.Equal(t, "-5", m.Property("n"))
	require.Nil(t, m.Property("none"))
	require.Zero(t, m.born, "a time in the queue is no part of B2C if the sender's time is unknown")
}

// TestAddressing: what responders and requesters of other protocols see, and what comes back from them.
func TestAddressing(t *testing.T) {
	property := func(m *message, name string) string { return string(wire.Property(m.properties, name)) }
	request := &message{properties: withProperties(nil, wire.PropUniqueKey, "m", wire.PropCorrelationID, "c", wire.PropReplyTo, "1.2.3.4@5")}
	a := request.Addressing()
	require.Equal(t, store.Addressing{MessageID: "m", CorrelationID: "c@1.2.3.4@5", ReplyTo: "topic://DefaultCluster_REPLY_TOPIC"}, a)
	reply := convert(&store.Message{Content: storetest.Content{Address: store.Addressing{CorrelationID: a.CorrelationID}}}, replyTopic)
	require.Equal(t, [3]string{"c", "1.2.3.4@5", "reply"}, [3]string{
		property(reply, wire.PropCorrelationID), property(reply, wire.PropReplyTo), property(reply, wire.PropMessageType),
	})
	require.Equal(t, store.Addressing{CorrelationID: "c"}, reply.Addressing())

	for id, want := range map[string]string{"": "m", "c": "c"} {
		asked := convert(&store.Message{Content: storetest.Content{Address: store.Addressing{MessageID: "m", CorrelationID: id, ReplyTo: "R"}}}, "T")
		require.Equal(t, [4]string{"m", want, "R", "DefaultCluster"}, [4]string{
			property(asked, wire.PropUniqueKey), property(asked, wire.PropCorrelationID), property(asked, wire.PropReplyTo),
			property(asked, wire.PropCluster),
		})
		require.Empty(t, asked.Properties())
	}
}

func TestTopicWithoutGroupsDropsTheOldest(t *testing.T) {
	s := New(store.New(store.Config{Limit: 100}), Options{})
	defer s.Close()
	topic := s.makeTopic("T", 1)
	sendN(topic, 0, 1000)
	require.LessOrEqual(t, topic.size.Load(), int64(100))
	require.GreaterOrEqual(t, topic.size.Load(), int64(100-100/keptShare-1))
	require.True(t, topic.Room())
	list := contents(topic.queue(0))
	require.Equal(t, "999", list[len(list)-1])
	require.EqualValues(t, 1000-len(list), s.Stats().Dropped)
}

func TestGroupsHoldTheirMessages(t *testing.T) {
	s := New(store.New(store.Config{Limit: 80}), Options{})
	defer s.Close()
	topic := s.makeTopic("T", 2)
	for id := range int64(2) {
		topic.commit(topic.queue(id), "a", 0)
		topic.commit(topic.queue(id), "b", 0)
	}
	sendN(topic, 0, 80)
	require.EqualValues(t, 80, topic.size.Load())
	require.False(t, topic.Room())
	topic.commit(topic.queue(0), "a", 40)
	topic.commit(topic.queue(1), "a", 40)
	require.False(t, topic.Room(), "b has seen nothing yet")
	require.EqualValues(t, 80, topic.size.Load())
	topic.commit(topic.queue(0), "b", 30)
	require.True(t, topic.Room())
	require.EqualValues(t, 50, topic.size.Load())
	first, next := topic.queue(0).limits()
	require.EqualValues(t, 30, first)
	require.EqualValues(t, 40, next)
	topic.commit(topic.queue(0), "b", 40)
	topic.commit(topic.queue(1), "b", 40)
	require.Zero(t, topic.size.Load())
	sendN(topic, 80, 9)
	for id := range int64(2) {
		_, next = topic.queue(id).limits()
		topic.commit(topic.queue(id), "a", next)
		topic.commit(topic.queue(id), "b", next)
	}
	require.EqualValues(t, 9, topic.size.Load(), "below an eighth all stay for groups to come")
	require.Zero(t, s.Stats().Dropped)
}

func TestDeletedGroupsHoldNothing(t *testing.T) {
	s := New(store.New(store.Config{Limit: 10}), Options{})
	defer s.Close()
	topic := s.makeTopic("T", 1)
	require.NotNil(t, s.makeGroup("a"))
	topic.commit(topic.queue(0), "a", 0)
	sendN(topic, 0, 10)
	topic.commit(topic.queue(0), "b", 10)
	require.False(t, topic.Room())
	c := &conn{s: s, req: wire.Frame{Fields: wire.AppendField(nil, "groupName", "a")}}
	require.NoError(t, c.deleteGroup(&c.req))
	require.Eventually(t, topic.Room, 3*time.Second, 10*time.Millisecond)
}

func TestBytesAreBounded(t *testing.T) {
	s := New(store.New(store.Config{LimitBytes: 100_000}), Options{})
	defer s.Close()
	topic := s.makeTopic("T", 4)
	for range 1000 {
		topic.dest.Send(other(strings.Repeat("x", 1000)))
		require.LessOrEqual(t, topic.bytes.Load(), int64(100_000))
	}
	var held int64
	for _, q := range *topic.queues.Load() {
		for pos := q.log.First; pos < q.log.Next; pos++ {
			held += q.log.At(pos).m.weight()
		}
	}
	require.Equal(t, held, topic.bytes.Load())
}

// TestTwoThatTrimAtOnce: each found the same messages to be done with; the second finds them gone and drops nothing
// more.
func TestTwoThatTrimAtOnce(t *testing.T) {
	q := &queue{}
	for range 100 {
		q.push(&message{}, 1)
	}
	q.commit("group", 32)
	for _, want := range []int64{32, 0} {
		n, _, unread, claimed := q.drop(nil, true)
		require.Equal(t, want, n)
		require.Zero(t, unread)
		require.True(t, claimed)
	}
	first, _ := q.limits()
	require.EqualValues(t, 32, first)
}

func TestPositionsInTheLog(t *testing.T) {
	s := New(store.New(store.Config{}), Options{})
	defer s.Close()
	s.makeTopic("A", 2)
	topic := s.makeTopic("B", 5)
	sendN(topic, 0, 20)
	require.Same(t, topic.queue(3).log.At(2).m, s.messageAt(logOffset(topic.id, 3, 2)))
	require.Nil(t, s.messageAt(logOffset(topic.id, 3, 200)))
	c := &conn{s: s, req: wire.Frame{Fields: wire.AppendField(nil, "topic", "B")}}
	require.NoError(t, c.deleteTopic(&c.req))
	require.Nil(t, s.messageAt(logOffset(topic.id, 3, 2)))
	for _, log := range []int64{-1, 0, 1 << 62, 1<<63 - 1} {
		require.Nil(t, s.messageAt(log))
	}
}

func TestTagsAndHashes(t *testing.T) {
	f := musttest.Get(newFilter("TAG", "A || B"))(t)
	for tag, want := range map[string]bool{"A": true, "B": true, "C": false, "": false} {
		require.Equal(t, want, f(&(&message{properties: wire.AppendProperty(nil, wire.PropTags, tag)}).complete().Message), tag)
	}
	for _, all := range []string{"*", "", "  ", "A || *"} {
		require.Nil(t, musttest.Get(newFilter("TAG", all))(t))
	}
	_, err := newFilter(wire.KindSQL, "color =")
	require.Error(t, err)
	f = musttest.Get(newFilter(wire.KindSQL, "n > 5 AND TAGS = 'x'"))(t)
	m := (&message{properties: wire.AppendProperty(wire.AppendProperty(nil, "n", "7"), wire.PropTags, "x")}).complete()
	require.True(t, f(&m.Message))
}

func TestOwnProperties(t *testing.T) {
	m := &message{properties: []byte("TRAN_MSG\x01true\x02__SHARDINGKEY\x01k\x02UNIQ_KEY\x01u\x02")}
	require.True(t, m.applyProperties())
	require.Equal(t, store.Message{Group: "k"}, m.Message)
	before := time.Now()
	m = &message{properties: []byte("DELAY\x013")}
	require.False(t, m.applyProperties())
	require.GreaterOrEqual(t, m.NotBefore, before.Add(10*time.Second).UnixNano())
	require.LessOrEqual(t, m.NotBefore, time.Now().Add(10*time.Second).UnixNano())
	require.Equal(t, 2*time.Hour, delayOf(99))
	require.Zero(t, delayOf(0))
}

// TestNotificationsAreBounded: members that come together notify each other a few times, the last of them included.
func TestNotificationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 1000
		g := &group{name: "g", members: map[member]bool{}, subs: map[string]*subscription{}}
		conns := make([]*conn, clients)
		notified := func(c *conn) (n int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for b := c.out; len(b) > 0; n++ {
				size := 4 + int(binary.BigEndian.Uint32(b))
				var f wire.Frame
				require.NoError(t, f.Parse(b[4:size]))
				require.Equal(t, int(wire.ReqNotifyConsumerIDsChanged), f.Code)
				require.Equal(t, "g", string(f.Get("consumerGroup")))
				b = b[size:]
			}
			c.out = nil
			return n
		}
		join := func(i int) {
			conns[i] = &conn{wake: make(chan struct{}, 1)}
			g.join(member{conns[i], g, fmt.Sprint(i)}, &wire.ConsumerData{})
			g.notifyMembers()
		}
		join(0)
		<-time.After(time.Millisecond)
		require.Equal(t, 1, notified(conns[0]), "soon")
		for i := 1; i < clients-1; i++ {
			join(i)
		}
		<-time.After(time.Second)
		for i, c := range conns[:clients-1] {
			n := notified(c)
			require.Positive(t, n, "client %d", i)
			require.LessOrEqual(t, n, 2, "client %d", i)
		}
		join(clients - 1)
		<-time.After(time.Second)
		for i, c := range conns {
			require.Equal(t, 1, notified(c), "client %d, of the last", i)
		}
		<-time.After(time.Second)
		for i, c := range conns {
			require.Zero(t, notified(c), "client %d, of nothing", i)
		}
	})
}

// sink is a connection that takes all and gives nothing.
type sink struct{ net.Conn }

func (sink) Read([]byte) (int, error)         { return 0, io.EOF }
func (sink) Write(b []byte) (int, error)      { return len(b), nil }
func (sink) Close() error                     { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (sink) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// TestAllocations: a message that is sent costs itself and its texts, and one that is delivered nothing.
func TestAllocations(t *testing.T) {
	s := New(store.New(store.Config{Limit: 1000}), Options{Queues: 1})
	c := newConn(s, sink{})
	w := wire.Writer{}
	w.Begin(wire.ReqSendMessageV2, 0, 1, "")
	for _, f := range [][2]string{{"a", "p"}, {"b", "T"}, {"e", "0"}, {"f", "0"}, {"g", "1700000000000"}, {"i", "time\x0112\x02UNIQ_KEY\x01id\x02"}, {"m", "false"}} {
		w.Text(f[0], f[1])
	}
	w.End(1024)
	w.B = append(w.B, make([]byte, 1024)...)
	send := func() {
		require.NoError(t, c.frame(w.B[4:]))
		require.NoError(t, c.flush())
	}
	for range 2000 { // until all buffers are there
		send()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(500, send), 2.0)

	p := &pull{c: c, q: s.findTopic([]byte("T")).queue(0), max: 32, deadline: time.Now().Add(time.Hour)}
	first, _ := p.q.limits()
	pull := func() {
		p.offset = first + 300
		c.written.B = c.written.B[:0]
		require.True(t, c.answerPull(&c.written, p))
	}
	first, _ = p.q.limits()
	pull()
	require.Zero(t, testing.AllocsPerRun(100, pull))
	c.release()
	s.Close()
}

// sender sends to a topic as a producer does that waits whenever there is no room.
func sender(topic *topic, from, n int) (sent *atomic.Int64) {
	sent = &atomic.Int64{}
	go func() {
		for i := range n {
			sendN(topic, from+i, 1)
			sent.Add(1)
			for !topic.dest.Room() {
				<-time.After(time.Millisecond)
			}
		}
	}()
	return sent
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // a fake clock
	synctest.Wait()
}

// TestNoGroupNoWait: a topic without groups accepts all messages, also of a sender that sends one at a time.
func TestNoGroupNoWait(t *testing.T) {
	for _, limit := range []int64{1, 8, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := New(store.New(store.Config{Limit: limit}), Options{})
			defer s.Close()
			sent := sender(s.makeTopic("T", 2), 0, 300)
			synctest.Wait()
			assert.EqualValues(t, 300, sent.Load())
			assert.GreaterOrEqual(t, s.Stats().Dropped, uint64(300-limit))
		})
	}
}

// TestGroupsThatHaveGone: the claim of a group ends some time after its last member, and its unread messages are
// counted. A group that returns in time misses none.
func TestGroupsThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.Config{Limit: 80}), Options{})
		defer s.Close()
		topic := s.makeTopic("T", 1)
		g := s.makeGroup("g")
		topic.commit(topic.queue(0), "g", 0)
		sent := sender(topic, 0, 100)
		pass(time.Minute)
		require.EqualValues(t, 80, sent.Load())
		g.touch() // it pulled, or committed
		pass(goneAfter - time.Second)
		require.EqualValues(t, 80, sent.Load(), "it has its claim")
		require.Zero(t, s.Stats().Dropped)
		pass(3 * time.Second)
		require.EqualValues(t, 100, sent.Load())
		require.EqualValues(t, 100-topic.size.Load(), s.Stats().Dropped)

		g.touch() // and so it has again
		first, next := topic.queue(0).limits()
		topic.commit(topic.queue(0), "g", first)
		sent = sender(topic, 100, 100)
		pass(time.Minute)
		require.EqualValues(t, 80-(next-first), sent.Load())
		dropped := s.Stats().Dropped
		topic.commit(topic.queue(0), "g", first+40)
		pass(time.Second)
		require.Greater(t, sent.Load(), int64(20))
		require.Equal(t, dropped, s.Stats().Dropped, "it was done with these")
		_, next = topic.queue(0).limits()
		topic.commit(topic.queue(0), "g", next)
		pass(time.Second)
		require.EqualValues(t, 100, sent.Load())
	})
}

// TestARejectingTopicForgetsGroups: a topic that refuses messages for a group accepts them after the end of its claim.
func TestARejectingTopicForgetsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.Config{Limit: 8, Reject: true}), Options{})
		defer s.Close()
		topic := s.makeTopic("T", 1)
		require.NotNil(t, s.makeGroup("g"))
		topic.commit(topic.queue(0), "g", 0)
		sendN(topic, 0, 8)
		require.Equal(t, store.Full, topic.dest.Send(other("x")))
		pass(goneAfter + time.Second)
		require.Equal(t, store.Stored, topic.dest.Send(other("x")))
	})
}
