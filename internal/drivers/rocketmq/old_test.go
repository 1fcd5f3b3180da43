//go:build unix

package rocketmq

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// told is a name server and broker in one. It answers as RocketMQ of the given version does; the answers of 4.9 were
// seen on 4.9.7. Its topics have one queue, with ten messages.
type told struct {
	t        *testing.T
	l        net.Listener
	version  int
	stats    string            // the group's statistics
	config   string            // of the broker
	saved    map[string]string // offsets by the fields that brokers know them by; nil: none
	twice    bool              // the broker is in the route twice
	unknown  int               // a request that the server does not know
	unlocked bool              // it locks no queues

	mu       sync.Mutex
	clientID string
	updates  []string // offsets that were saved
	deleted  []string // names of fields of requests that delete groups
	held     []func() // answer pulls
	early    int      // groups deleted while pulls were held
	pulled   chan string
	sent     chan string // properties
}

const (
	version49 = 407
	version55 = 513
)

func newTold(t *testing.T, version int) *told {
	t.Helper()
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &told{t: t, l: l, version: version, pulled: make(chan string, 100), sent: make(chan string, 100)}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return p
}

func (p *told) url() string { return "rocketmq://" + p.l.Addr().String() }

// open opens a driver that has time, on a machine with much else to do; it is closed with the test.
func (p *told) open(options ...string) driver.Driver {
	p.t.Helper()
	f := Factory()
	o := f.NewOptions()
	require.NoError(p.t, driver.SetOptions(o, options))
	d, err := f.Open(p.t.Context(), driver.OpenOptions{URL: p.url(), ConnectTimeout: 2 * time.Minute, Options: o})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, d.Close(context.Background())) })
	return d
}

func (p *told) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		var r reply
		if r.Parse(b) != nil {
			return
		}
		code, fields, body := p.answer(&r)
		opaque := int32(r.Opaque)
		if code < 0 { // held until the client gives up, or leaves its group
			p.mu.Lock()
			p.held = append(p.held, func() { _ = p.write(c, opaque, wire.ResPullNotFound, nil, "") })
			p.mu.Unlock()
			continue
		}
		if p.write(c, opaque, code, fields, body) != nil {
			return
		}
	}
}

func (p *told) write(c net.Conn, opaque int32, code int, fields map[string]string, body string) error {
	header, _ := json.Marshal(map[string]any{
		"code": code, "flag": 1, "language": "JAVA", "opaque": opaque, "version": p.version, "extFields": fields,
	})
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(header)))
	_, err := c.Write(append(append(out, header...), body...))
	return err
}

// answerHeld answers the pulls that are held.
func (p *told) answerHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, answer := range p.held {
		answer()
	}
	p.held = nil
}

func (p *told) answer(r *reply) (code int, fields map[string]string, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Code {
	case p.unknown:
		return wire.ResRequestCodeNotSupported, nil, ""
	case wire.ReqGetRouteInfoByTopic:
		queues := `{"brokerName":"a","readQueueNums":1,"writeQueueNums":1,"perm":6}`
		if p.twice {
			queues += "," + queues
		}
		return wire.ResSuccess, nil, fmt.Sprintf(`{"queueDatas":[%s],"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":%q}}]}`, queues, p.l.Addr())
	case wire.ReqHeartBeat:
		var beat struct{ ClientID string }
		_ = json.Unmarshal(r.Body, &beat)
		p.clientID = beat.ClientID
	case wire.ReqGetConsumerListByGroup:
		if p.clientID == "" {
			return wire.ResSystemError, nil, ""
		}
		return wire.ResSuccess, nil, fmt.Sprintf(`{"consumerIdList":[%q]}`, p.clientID)
	case wire.ReqLockBatchMQ:
		var asked wire.Lock
		if !p.unlocked {
			_ = json.Unmarshal(r.Body, &asked)
		}
		locked, _ := json.Marshal(wire.Locked{Queues: asked.Queues})
		return wire.ResSuccess, nil, string(locked)
	case wire.ReqQueryConsumerOffset:
		switch offset, found := p.saved[string(r.Get("consumerGroup"))]; {
		case len(p.updates) > 0:
			return wire.ResSuccess, map[string]string{"offset": p.updates[len(p.updates)-1]}, ""
		case found:
			return wire.ResSuccess, map[string]string{"offset": offset}, ""
		case p.version < wire.Version5 || string(r.Get("setZeroIfNotFound")) != "false":
			return wire.ResSuccess, map[string]string{"offset": "0"}, ""
		default:
			return wire.ResQueryNotFound, nil, ""
		}
	case wire.ReqGetConsumeStats:
		return wire.ResSuccess, nil, p.stats
	case wire.ReqUpdateConsumerOffset:
		p.updates = append(p.updates, string(r.Get("commitOffset")))
	case wire.ReqGetMaxOffset:
		return wire.ResSuccess, map[string]string{"offset": "10"}, ""
	case wire.ReqGetMinOffset:
		return wire.ResSuccess, map[string]string{"offset": "0"}, ""
	case wire.ReqPullMessage:
		select {
		case p.pulled <- string(r.Get("queueOffset")):
		default:
		}
		return -1, nil, ""
	case wire.ReqGetBrokerConfig:
		return wire.ResSuccess, nil, p.config
	case wire.ReqSendMessageV2:
		p.sent <- string(r.Get("i"))
		return wire.ResSuccess, map[string]string{"msgId": "1", "queueId": "0", "queueOffset": "10"}, ""
	case wire.ReqUnregisterClient:
		p.clientID = ""
		time.AfterFunc(100*time.Millisecond, p.answerHeld)
	case wire.ReqDeleteSubscriptionGroup:
		if len(p.held) > 0 {
			p.early++
		}
		for _, name := range []string{"cleanOffset", "removeOffset"} {
			if string(r.Get(name)) == "true" {
				p.deleted = append(p.deleted, name)
			}
		}
	case wire.ReqGetBrokerClusterInfo:
		return wire.ResSuccess, nil, fmt.Sprintf(`{"brokerAddrTable":{"a":{"brokerName":"a","brokerAddrs":{"0":%q}}}}`, p.l.Addr())
	}
	return wire.ResSuccess, map[string]string{}, ""
}

// TestNewGroupOnOldBrokers: a new group of a topic starts at the next message. Brokers before 5 say of it that it
// stands at 0, and say the same of one that does.
func TestNewGroupOnOldBrokers(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		stats   string
		saved   bool // the group stands at 0
		next    string
	}{
		"4.9":            {version49, `{"consumeTps":0.0,"offsetTable":{}}`, false, "10"},
		"4.9 known at 0": {version49, `{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"brokerOffset":10,"consumerOffset":0}}}`, true, "0"},
		"4.9 of another": {version49, `{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t2"}:{"brokerOffset":10,"consumerOffset":0}}}`, false, "10"},
		"5.5":            {version55, "", false, "10"},
		"5.5 known at 0": {version55, "", true, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTold(t, c.version)
			p.stats = c.stats
			if c.saved {
				p.saved = map[string]string{"g": "0"}
			}
			d := p.open("group=g")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			k := musttest.Get(d.Consumer(ctx, consumerSpec(topicNamed("t"))))(t)
			run, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- k.Run(run, func(*driver.Delivery) driver.Verdict { return driver.Accept }) }()
			require.Equal(t, c.next, <-p.pulled)
			stop()
			require.NoError(t, <-ended)
			_ = k.Close(ctx)
		})
	}
}

// TestNewGroupStandsSomewhere: the driver saves the start of a new group of a queue before anything is consumed, one
// queue at a time, because a broker may lose one of two first offsets that come at the same moment (seen on 5.5.0).
func TestNewGroupStandsSomewhere(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		saved   string
		told    []string
	}{
		"5.5":            {version55, "", []string{"0"}},
		"5.5 known at 0": {version55, "0", nil},
		"5.5 known at 7": {version55, "7", nil},
		"4.9":            {version49, "", []string{"0"}}, // it answers 0
		"4.9 known at 7": {version49, "7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTold(t, c.version)
			if c.saved != "" {
				p.saved = map[string]string{"g": c.saved}
			}
			k := musttest.Get(p.open("group=g").Consumer(t.Context(), consumerSpec(queueNamed("t"))))(t)
			p.mu.Lock()
			require.Equal(t, c.told, p.updates)
			p.mu.Unlock()
			require.NoError(t, k.Close(t.Context()))
			p.mu.Lock()
			require.Equal(t, c.told, p.updates, "nothing was consumed")
			p.mu.Unlock()
		})
	}
}

// TestBrokerInRouteTwice: its queues are the same ones.
func TestBrokerInRouteTwice(t *testing.T) {
	p := newTold(t, version55)
	p.twice = true
	d := p.open().(*rocketDriver)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := musttest.Get(d.routeOf(ctx, "t"))(t)
	require.Len(t, r.brokers, 1)
	k := musttest.Get(d.Consumer(ctx, consumerSpec(queueNamed("t"))))(t)
	require.NoError(t, k.Close(ctx))
}

// TestLockPatience: a consumer proceeds without the locks that a broker does not give.
func TestLockPatience(t *testing.T) {
	t.Parallel()
	p := newTold(t, version55)
	p.unlocked = true
	k := musttest.Get(p.open().Consumer(t.Context(), consumerSpec(queueNamed("t"))))(t)
	require.NoError(t, k.Close(t.Context()))
}

// TestRouteIsWaitedFor: a user that waits for the look-up of another user gives up when its own context ends.
func TestRouteIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDriver(transport.Settings[Options]{})
		d.routing <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.routeOf(ctx, "t")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
		require.NotEmpty(t, driver.HintOf(err))
	})
}

// TestDelayOnOldBrokers: brokers before 5 ignore a delay that is no level.
func TestDelayOnOldBrokers(t *testing.T) {
	const levels = "brokerName=a\nmessageDelayLevel=1s 5s 10s 30s 1m 2h 1d\nfoo=bar\n"
	for name, c := range map[string]struct {
		version      int
		delay        time.Duration
		want, absent string // properties
		refused      string
	}{
		"a level":     {version49, 30 * time.Second, "DELAY\x014\x02", wire.PropTimerDelayMs, ""},
		"a day":       {version49, 24 * time.Hour, "DELAY\x017\x02", wire.PropTimerDelayMs, ""},
		"no level":    {version49, 3 * time.Second, "", "", "use one of [1s 5s 10s 30s 1m0s 2h0m0s 24h0m0s]"},
		"RocketMQ 5":  {version55, 3 * time.Second, wire.PropTimerDelayMs + "\x013000\x02", "DELAY\x01", ""},
		"not told":    {0, 3 * time.Second, wire.PropTimerDelayMs + "\x013000\x02", "DELAY\x01", ""},
		"5 and level": {version55, 5 * time.Second, wire.PropTimerDelayMs + "\x015000\x02", "DELAY\x01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTold(t, c.version)
			p.config = levels
			d := p.open()
			o := &outcomes{}
			spec := producerSpec(topicNamed("t"), 1)
			spec.Delay = c.delay
			producer, err := d.Producer(t.Context(), spec, o)
			if c.refused != "" {
				require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
				require.ErrorContains(t, err, "before 5 delays by levels")
				require.Contains(t, driver.HintOf(err), c.refused)
				return
			}
			require.NoError(t, err)
			require.NoError(t, producer.Send(t.Context(), &driver.Message{Time: 1}))
			properties := <-p.sent
			require.Contains(t, properties, c.want)
			require.NotContains(t, properties, c.absent)
			require.NoError(t, producer.Close(t.Context()))
			require.Equal(t, 1, o.count(driver.Accepted, driver.ClassNone))
		})
	}
}

// TestRemovedGroupLeavesNoOffsets: brokers before 5 know the wish by another name.
func TestRemovedGroupLeavesNoOffsets(t *testing.T) {
	p := newTold(t, version49)
	d := p.open().(*rocketDriver)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := d.newConns(nil)
	defer s.close()
	require.NoError(t, s.deleteGroup(ctx, "g"))
	require.ElementsMatch(t, []string{"cleanOffset", "removeOffset"}, p.deleted)
}

// TestGroupIsDeletedAfterHeldPulls: a broker would create the group again when it stops holding a pull.
func TestGroupIsDeletedAfterHeldPulls(t *testing.T) {
	durable := consumerSpec(topicNamed("t"))
	durable.Durable, durable.Subscription, durable.Connection.ClientID = true, "s", "me"
	kept := durable
	kept.KeepSubscription = true
	queue := consumerSpec(queueNamed("t"))
	for name, c := range map[string]struct {
		spec    driver.ConsumerSpec
		deleted bool
	}{
		"topic": {consumerSpec(topicNamed("t")), true}, "durable": {durable, true}, "kept": {kept, false}, "queue": {queue, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTold(t, version55)
			k := musttest.Get(p.open().Consumer(t.Context(), c.spec))(t)
			run, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- k.Run(run, func(*driver.Delivery) driver.Verdict { return driver.Accept }) }()
			<-p.pulled
			stop()
			require.NoError(t, <-ended)
			require.NoError(t, k.Close(t.Context()))
			p.mu.Lock()
			defer p.mu.Unlock()
			require.Zero(t, p.early)
			require.Equal(t, c.deleted, len(p.deleted) > 0)
		})
	}
}

func TestLevelOf(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "5m": 5 * time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour,
		"": 0, "s": 0, "1": 0, "-1s": 0, "1x": 0, "1099511627776d": 0,
	} {
		require.Equal(t, want, delayOf(text), text)
	}
}
