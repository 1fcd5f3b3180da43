package rocketmq

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	libconsumer "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]transport.Target{
		"rocketmq://ns1":                     {Hosts: []transport.Endpoint{{Host: "ns1", Port: "9876"}}},
		"rocketmq://ns1:1,ns2:2;[::1]:3/":    {Hosts: []transport.Endpoint{{Host: "ns1", Port: "1"}, {Host: "ns2", Port: "2"}, {Host: "::1", Port: "3"}}},
		"rocketmq://ns1:1;ns2:2;":            {Hosts: []transport.Endpoint{{Host: "ns1", Port: "1"}, {Host: "ns2", Port: "2"}}},
		"ROCKETMQ+SSL://ak:s%40k@[fe80::1]":  {TLS: true, Hosts: []transport.Endpoint{{Host: "fe80::1", Port: "9876"}}, User: "ak", Password: "s@k"},
		"rocketmq://ak:p@ss@127.0.0.1:19876": {Hosts: []transport.Endpoint{{Host: "127.0.0.1", Port: "19876"}}, User: "ak", Password: "p@ss"},
	} {
		got, err := protocol.RocketMQ().Parse(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
	for _, raw := range []string{
		"", "ns1", "tcp://ns1", "rocketmq://", "rocketmq://ns:0", "rocketmq://ns:x", "rocketmq://a:1:2", "rocketmq://ns/x",
		"rocketmq://ns?x=1", "rocketmq://a b", "rocketmq://%zz:hush@ns",
	} {
		_, err := protocol.RocketMQ().Parse(raw)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), "hush")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	f := Factory()
	check := func(assignments ...string) error {
		o := f.NewOptions()
		require.NoError(t, driver.SetOptions(o, assignments))
		return f.Check(driver.OpenOptions{URL: f.DefaultURL, ConnectTimeout: time.Second, Options: o})
	}
	require.NoError(t, check())
	require.NoError(t, check("send=batch", "batch-size=32", "tag=A", "group=g"))
	require.NoError(t, check("transactional=true", "rollback-percent=50", "unknown-percent=50"))
	for _, bad := range [][]string{
		{"batch-size=0"},
		{"batch-size=1025"},
		{"send-timeout=1ms"},
		{"send=batch", "transactional=true"},
		{"send=oneway", "transactional=true"},
		{"rollback-percent=5"},
		{"transactional=true", "rollback-percent=60", "unknown-percent=41"},
		{"tag=A||B"},
		{"tag= A"},
		{"group=a b"},
		{"pull-batch=0"},
		{"queues=-1"},
		{"broker-address=host"},
		{"broker-address=me@host:1"},
		{"broker-address=a:1,b:1"},
		{"broker-address=a:1;"},
	} {
		require.Error(t, check(bad...), "%v", bad)
	}
	// All mistakes at once, and the user's mistakes only.
	err := check("batch-size=0", "pull-batch=0", "group=a b")
	require.Len(t, strings.Split(err.Error(), "\n"), 3)
	err = f.Check(driver.OpenOptions{URL: "x://y", User: "u"})
	require.ErrorContains(t, err, "connect timeout")
	require.ErrorContains(t, err, "unknown scheme")
	require.ErrorContains(t, err, "secret key")
}

func TestAnswersAreClassified(t *testing.T) {
	for _, c := range []struct {
		code   int
		remark string
		state  driver.State
		class  driver.Class
	}{
		{wire.ResSystemBusy, "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while", driver.Failed, driver.ClassFull},
		{wire.ResFlowControl, "flow", driver.Failed, driver.ClassFull},
		{wire.ResFlushDiskTimeout, "", driver.Unknown, driver.ClassTimeout},
		{wire.ResFlushSlaveTimeout, "", driver.Unknown, driver.ClassTimeout},
		{wire.ResSlaveNotAvailable, "", driver.Unknown, driver.ClassTimeout},
		{wire.ResTopicNotExist, "topic[x] not exist, apply first please!", driver.Failed, driver.ClassNotFound},
		{wire.ResMessageIllegal, "message size is too big", driver.Rejected, driver.ClassTooLarge},
		{wire.ResMessageIllegal, "the message is illegal, maybe msg properties length not matched.", driver.Rejected, driver.ClassTooLarge},
		{wire.ResMessageIllegal, "TopicMessageType validate failed, the expected type is FIFO, but actual type is NORMAL", driver.Rejected, driver.ClassProtocol},
		{15, "Request doesn't have field bname", driver.Failed, driver.ClassProtocol},
		{wire.ResMessageIllegal, "bad", driver.Rejected, driver.ClassProtocol},
		{wire.ResNoPermission, "check signature failed.", driver.Rejected, driver.ClassAuth},
		{wire.ResNoPermission, "the broker[127.0.0.1] sending message is forbidden", driver.Rejected, driver.ClassAuth},
		{wire.ResServiceNotAvailable, "service not available now", driver.Failed, driver.ClassClosedByBroker},
		{wire.ResSystemError, "org.apache.rocketmq.acl.common.AclException: No accessKey is configured", driver.Failed, driver.ClassAuth},
		{wire.ResSystemError, "boom\n\tat x", driver.Failed, driver.ClassOther},
		{12345, "", driver.Failed, driver.ClassOther},
	} {
		o := outcome("send", &reply{Frame: wire.Frame{Code: c.code, Remark: []byte(c.remark)}})
		require.Equal(t, c.state, o.State, "%v", c)
		require.Equal(t, c.class, o.Class, "%v", c)
		require.ErrorContains(t, o.Err, fmt.Sprintf("(code %d)", c.code))
		require.NotContains(t, o.Err.Error(), "\n")
	}
	o := outcome("send", &reply{Frame: wire.Frame{Code: wire.ResFlushSlaveTimeout}})
	require.ErrorContains(t, o.Err, "the broker gives no reason (code 12)")
	require.Contains(t, driver.HintOf(o.Err), "the broker has the message")
	require.Equal(t, driver.Outcome{}, outcome("send", &reply{}))
	o = outcome("send", &reply{err: errNoAnswer})
	require.Equal(t, driver.Unknown, o.State)
	require.Equal(t, driver.ClassTimeout, o.Class)
	o = outcome("send", &reply{err: transport.Explain("", io.EOF)})
	require.Equal(t, driver.Unknown, o.State)
	require.Equal(t, driver.ClassConnectionLost, o.Class)
	require.NotEmpty(t, driver.HintOf(o.Err))
}

func TestGroups(t *testing.T) {
	c := *defaultOptions()
	queue, topic := driver.Destination{Name: "X"}, driver.Destination{Kind: driver.Topic, Name: "X"}
	of := func(spec driver.ConsumerSpec) membership { return c.membershipOf(&spec, "r1") }
	require.Equal(t, membership{group: "perfmq-queue-X"}, of(driver.ConsumerSpec{Destination: queue}))
	require.Equal(t, membership{group: "perfmq-run-X-r1", passing: true, alone: true, fromNext: true}, of(driver.ConsumerSpec{Destination: topic}))
	durable := driver.ConsumerSpec{Destination: topic, Durable: true, Subscription: "s", Connection: driver.Connection{ClientID: "me"}}
	require.Equal(t, membership{group: "perfmq-sub-X-me-s", passing: true, fromNext: true}, of(durable))
	durable.KeepSubscription = true
	require.Equal(t, membership{group: "perfmq-sub-X-me-s", fromNext: true}, of(durable))
	durable.Subscription = "a/b"
	require.Regexp(t, regexp.MustCompile(`^perfmq-sub-X-me-a_b-[0-9a-f]{8}$`), of(durable).group)
	filtered := of(driver.ConsumerSpec{Destination: queue, Selector: "tag:A"})
	require.NotEqual(t, "perfmq-queue-X", filtered.group)
	c.Group = "mine"
	require.Equal(t, membership{group: "mine", fromNext: true}, of(driver.ConsumerSpec{Destination: topic}))
}

func TestSelectors(t *testing.T) {
	all := wire.Subscription{Expression: "*", Kind: "TAG", Tags: []string{}, Codes: []int32{}}
	require.Equal(t, all, ParseSelector(""))
	require.Equal(t, all, ParseSelector("tag:*"))
	tags := wire.Subscription{Expression: "A || B", Kind: "TAG", Tags: []string{"A", "B"}, Codes: []int32{65, 66}}
	require.Equal(t, tags, ParseSelector("tag: A||B "))
	require.Equal(t, wire.Subscription{Expression: "a = 1", Kind: "SQL92", Tags: []string{}, Codes: []int32{}}, ParseSelector("a = 1"))
}

func TestQueuesAreDealtOutAsByTheLibrary(t *testing.T) {
	for queues := range 20 {
		for members := 1; members < 8; members++ {
			var all []queueID
			var list []*primitive.MessageQueue
			for i := range queues {
				all = append(all, queueID{"T", "b", i})
				list = append(list, &primitive.MessageQueue{Topic: "T", BrokerName: "b", QueueId: i})
			}
			var ids []string
			for i := range members {
				ids = append(ids, fmt.Sprintf("m%d", i))
			}
			for place, me := range ids {
				var want []queueID
				for _, q := range libconsumer.AllocateByAveragely("g", me, list, ids) {
					want = append(want, queueID{q.Topic, q.BrokerName, q.QueueId})
				}
				from, to := allocate(place, queues, members)
				require.ElementsMatch(t, want, all[from:to], "%d queues, %s of %d", queues, me, members)
			}
		}
	}
}

func TestShareIsExact(t *testing.T) {
	for percent := range 101 {
		n := 0
		for i := range 300 {
			if share(i, 0, percent) {
				n++
			}
		}
		require.Equal(t, 3*percent, n)
	}
}

func TestSignature(t *testing.T) {
	// Made with org.apache.rocketmq.acl.common.AclUtils of RocketMQ 5.5.0.
	c := &conn{sign: wire.NewSigner("perfmq-admin", "perfmq-secret")}
	frame := c.request(41, 0, inOrder([]string{"b", "1", "a", "2"}), []byte("hello"))
	var r reply
	require.NoError(t, r.Parse(append(frame[4:], "hello"...)))
	require.Equal(t, "mV1CDEn7VYi5Jdf7KJo5YCAb1S8=", string(r.Get("Signature")))
	require.Equal(t, "perfmq-admin", string(r.Get("AccessKey")))
	require.Nil(t, wire.NewSigner("", ""))
}

// answers collects the ends of requests.
type answers struct {
	mu   sync.Mutex
	list []string
}

func (a *answers) answer(arg uint64, r *reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, fmt.Sprintf("%d:%d:%v", arg, r.Code, r.err))
}

// TestConnection plays a broker that answers late, never, twice, and out of order, with a false clock.
func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, theirs := piped()
		var a answers
		submit := func(i uint64) error {
			b := wire.BeginFrame(nil, 1, 0, 0, "")
			wire.EndFrame(b, 0)
			return c.submit(t.Context(), driver.NewMeter(), b, nil, false, call{to: &a, arg: i, limit: time.Second})
		}
		for i := range uint64(200) { // more than the table holds at first
			require.NoError(t, submit(i))
		}
		requests := make([]byte, 200*wire.FieldsAt)
		_, err := io.ReadFull(theirs, requests)
		require.NoError(t, err)
		reply := func(i int) {
			b := append([]byte(nil), requests[i*wire.FieldsAt:(i+1)*wire.FieldsAt]...)
			b[wire.OpaqueAt+7] = wire.FlagAnswer // the flag follows the number
			musttest.Get(theirs.Write(b))(t)
		}
		reply(199)
		reply(0)
		reply(0)
		synctest.Wait()
		require.Equal(t, []string{"199:1:<nil>", "0:1:<nil>"}, a.list)
		for range 21 {
			c.sweep()
			<-time.After(sweepEvery) // the bubble's clock
		}
		require.Equal(t, 200, len(a.list)+c.live)
		c.sweep()
		require.Len(t, a.list, 200)
		require.Contains(t, a.list, "57:0:"+errNoAnswer.Error())
		reply(57) // too late
		require.NoError(t, submit(1000))
		musttest.Get(io.ReadFull(theirs, requests[:wire.FieldsAt]))(t)
		require.NoError(t, theirs.Close())
		synctest.Wait()
		require.Len(t, a.list, 201)
		require.Contains(t, a.list[200], "1000:0:the broker closed the connection without saying why")
		err = submit(1001)
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
		c.close()
		require.Len(t, a.list, 201)
	})
}

// piped returns a connection, and its other end.
func piped() (*conn, net.Conn) {
	ours, theirs := net.Pipe()
	raw := transport.Meter(ours)
	return newConn("broker", raw, raw, new(transport.Buffers), driver.DefaultMaxBody, nil, nil), theirs
}

// drained returns a connection to a peer that reads and says nothing.
func drained(t *testing.T) *conn {
	t.Helper()
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ours := musttest.Get(net.Dial("tcp", l.Addr().String()))(t)
	theirs := musttest.Get(l.Accept())(t)
	require.NoError(t, l.Close())
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
	raw := transport.Meter(ours)
	c := newConn("broker", raw, raw, new(transport.Buffers), driver.DefaultMaxBody, nil, nil)
	t.Cleanup(func() {
		c.close()
		reading.Wait()
		_ = theirs.Close()
	})
	return c
}

// sendingTo returns a producer of small messages to a queue for each of these connections, and the outcomes of its
// messages.
func sendingTo(opts *Options, conns ...*conn) (*producer, *outcomes) {
	o := &outcomes{}
	p := &producer{
		opts: opts, limit: opts.SendTimeout, topic: "T", done: o, kinds: []kind{{body: []byte("x")}}, idle: make(chan struct{}, 1),
		synced: make(chan struct{}, 1), socket: driver.NewMeter(), answers: driver.NewMeter(),
	}
	var list sendBrokers
	for i, c := range conns {
		if i > 0 && c == conns[i-1] {
			list[len(list)-1].write++
			continue
		}
		list = append(list, p.sendBroker(c, "broker", 1, "T", wire.ReqSendMessageV2))
	}
	p.brokers.Store(&list)
	if opts.Send == sendBatch {
		p.batch = newBatcher(p, 100)
	}
	return p, o
}

func TestSendDoesNotAllocate(t *testing.T) {
	for _, signed := range []bool{false, true} {
		for _, more := range []bool{false, true} {
			c := drained(t)
			p, _ := sendingTo(defaultOptions(), c)
			p.kinds[0].group = "key-00"
			p.done = driver.DoneFunc(func(driver.Slot, driver.Outcome) {})
			p.kinds[0].body = make([]byte, 1024)
			if signed {
				p.sign = wire.NewSigner("ak", "sk")
				p.brokers.Store(&sendBrokers{p.sendBroker(c, "broker-a", 1, "T", wire.ReqSendMessageV2)})
			}
			m := driver.Message{Time: time.Now().UnixMicro(), ID: driver.ID{Run: 1 << 62, Number: 1, Sum: 1 << 62}, More: more}
			m.Group = "key-11"
			p.kinds[0].properties, p.kinds[0].groupAt = wire.AppendProperty(nil, wire.PropShardingKey, "key-00"), len(wire.PropShardingKey)+1
			var r reply
			send := func() {
				m.ID.Number++
				if err := p.Send(t.Context(), &m); err != nil {
					panic(err)
				}
				c.mu.Lock()
				r = reply{Frame: wire.Frame{Flag: wire.FlagAnswer, Opaque: c.opaque - 1}}
				c.mu.Unlock()
				c.handle(&r)
			}
			for range 5000 {
				send() // buffers grow
			}
			require.Less(t, testing.AllocsPerRun(2000, send), 0.1)
		}
	}
}

// TestQueuesOfBrokers: queues are used in turn, without the queues of lost brokers, and a group keeps its queue.
func TestQueuesOfBrokers(t *testing.T) {
	dead := drained(t)
	dead.close()
	p := &producer{opts: defaultOptions()}
	a, b, c := p.sendBroker(drained(t), "a", 2, "T", wire.ReqSendMessageV2), p.sendBroker(dead, "b", 3, "T", wire.ReqSendMessageV2), p.sendBroker(drained(t), "c", 1, "T", wire.ReqSendMessageV2)
	p.brokers.Store(&sendBrokers{a, b, c})
	use := func(group string, n int) (names []string) {
		for range n {
			to, number, err := p.queue(*p.brokers.Load(), &p.next, group)
			require.NoError(t, err)
			names = append(names, fmt.Sprint(map[*sendBroker]string{a: "a", c: "c"}[to], number))
		}
		return names
	}
	require.Equal(t, []string{"a0", "a1", "c0", "a0", "a1", "c0", "a0"}, use("", 7))
	require.Equal(t, []string{"c0", "c0"}, use("f", 2))
	require.Equal(t, []string{"a1"}, use("", 1), "a group does not take a turn")
	p.brokers.Store(&sendBrokers{b})
	p.next = 0
	for _, group := range []string{"", "f"} {
		_, _, err := p.queue(*p.brokers.Load(), &p.next, group)
		require.Error(t, err)
		require.Error(t, p.reachable(group))
	}
	p.brokers.Store(&sendBrokers{b, c})
	require.NoError(t, p.reachable(""))
}

// TestRefusalsAreLosses: if a broker that stops or has a fault refuses a request of an open consumer, a new consumer
// may continue; not if a permission is missing.
func TestRefusalsAreLosses(t *testing.T) {
	for code, want := range map[int]driver.Class{
		wire.ResSystemError: driver.ClassClosedByBroker, wire.ResSystemBusy: driver.ClassClosedByBroker,
		wire.ResServiceNotAvailable: driver.ClassClosedByBroker, 12345: driver.ClassClosedByBroker,
		wire.ResNoPermission: driver.ClassAuth, wire.ResTopicNotExist: driver.ClassNotFound,
		wire.ResRequestCodeNotSupported: driver.ClassUnsupported,
	} {
		refused := refusal(&reply{Frame: wire.Frame{Code: code, Remark: []byte("why")}})
		for _, err := range []error{refused, wrap("find the members of group g", refused)} {
			got := lost("receive from queue://q", err)
			require.Equal(t, want, driver.ClassOf(got), "%d: %v", code, got)
			require.ErrorContains(t, got, "receive from queue://q: ")
			require.ErrorContains(t, got, "why")
			require.Equal(t, driver.HintOf(err), driver.HintOf(got))
		}
	}
	require.Equal(t, driver.ClassTimeout, driver.ClassOf(lost("receive", errNoAnswer)))
	require.Contains(t, driver.HintOf(errNoAnswer), "--send-timeout")
	require.Contains(t, driver.HintOf(errAbandoned), "--send-timeout")
	require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(lost("receive", transport.Explain("", io.EOF))))
}
