package rocketmq5

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the protocol signs with HMAC-SHA1
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	heartbeatEvery = 20 * time.Second // the proxy drops clients after 120 s
	heartbeatLimit = 10 * time.Second
	lookEvery      = 50 * time.Millisecond
	lookPause      = 50 * time.Microsecond // longer, for each connection of a driver
	identifyEvery  = time.Minute
	// callLimit is what we tell the proxy of the time for a call that has no limit of its own.
	callLimit = 10 * time.Second

	// clientVersion is the version of the official clients whose behaviour ours has: the proxy judges by it.
	clientVersion = "5.1.3"
)

func proxy() *transport.Protocol { return protocol.RocketMQProxy() }

// proxyDriver is a [driver.Driver].
type proxyDriver struct {
	cfg   transport.Settings[Options]
	pool  transport.Pool[*conn]
	mem   transport.Buffers
	conns atomic.Int64       // that are open
	spare sync.Pool          // of streams that have ended
	calls map[string]*method // that have no time limit of a producer or consumer
	known sync.Map           // groups that have got an answer, as topic and group
	open  rocketmq.OpenTransactions
	admin *rocketmq.Admin // with a name server; else nil
	users sync.Map        // number of consumers by group, *atomic.Int64
}

// method is a call with its headers.
type method struct {
	key    string
	fields []hpack.HeaderField
}

// newMethod returns a call; limit is what the proxy is told, none if 0.
func newMethod(name string, limit time.Duration) *method {
	m := &method{key: name + limit.String(), fields: []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme"},
		{Name: ":path", Value: name},
		{Name: ":authority"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}}
	if limit > 0 {
		const most = 99_999_999 // eight digits
		text := strconv.FormatInt(min(limit.Milliseconds(), most), 10) + "m"
		m.fields = append(m.fields, hpack.HeaderField{Name: "grpc-timeout", Value: text})
	}
	return m
}

func newDriver(cfg transport.Settings[Options]) *proxyDriver {
	d := &proxyDriver{cfg: cfg, calls: map[string]*method{wire.CallTelemetry: newMethod(wire.CallTelemetry, 0)}}
	for _, name := range []string{
		wire.CallQueryRoute, wire.CallHeartbeat, wire.CallAckMessage, wire.CallForwardMessageToDeadLetterQueue,
		wire.CallChangeInvisibleDuration, wire.CallEndTransaction, wire.CallNotifyClientTermination,
	} {
		d.calls[name] = newMethod(name, callLimit)
	}
	d.pool.Open = d.dial
	if o := &cfg.Options; o.NameServer != "" {
		t, _ := protocol.RocketMQ().Parse("rocketmq://" + o.NameServer) // checked
		t.User, t.Password = cfg.Target.User, cfg.Target.Password
		d.admin = rocketmq.NewAdmin(t, cfg.ConnectTimeout)
	}
	return d
}

// identity appends the headers that say who we are. The signature is HMAC-SHA1 of the time.
func (d *proxyDriver) identity(fields []hpack.HeaderField, now time.Time) []hpack.HeaderField {
	date := now.UTC().Format("20060102T150405Z")
	fields = append(fields, hpack.HeaderField{Name: "x-mq-language", Value: "GO"},
		hpack.HeaderField{Name: "x-mq-protocol", Value: "v2"},
		hpack.HeaderField{Name: "x-mq-client-version", Value: clientVersion},
		hpack.HeaderField{Name: "x-mq-date-time", Value: date})
	if user := d.cfg.Target.User; user != "" {
		sum := hmac.New(sha1.New, []byte(d.cfg.Target.Password))
		sum.Write([]byte(date))
		fields = append(fields, hpack.HeaderField{
			Name: "authorization",
			Value: "MQv2-HMAC-SHA1 Credential=" + user + "//Rocketmq, SignedHeaders=x-mq-date-time, Signature=" +
				strings.ToUpper(hex.EncodeToString(sum.Sum(nil))),
		})
	}
	return fields
}

// dial opens a connection.
func (d *proxyDriver) dial(ctx context.Context, spec driver.Connection) (*conn, error) {
	cfg := &d.cfg
	return transport.First(ctx, cfg.Target.Hosts, spec.Order, cfg.ConnectTimeout,
		func(ctx context.Context, host transport.Endpoint) (*conn, error) {
			nc, raw, err := proxy().Dial(ctx, host, cfg.Target.TLS, cfg.TLS, &spec)
			if err != nil {
				return nil, err
			}
			c := newConn(d, host, nc, raw)
			if err = c.Shake(ctx, c.shake); err != nil {
				if errors.Is(err, context.DeadlineExceeded) {
					err = proxy().Unanswered("the preface of HTTP/2", cfg.Target.TLS, time.Since(c.begin), err)
				}
				return nil, proxy().ConnectError(host, err)
			}
			c.Start(c.Out.Flush, c.run, 0, 0, nil, "")
			d.conns.Add(1)
			c.mu.Lock()
			c.beatAt, c.idAt = heartbeatEvery, identifyEvery
			c.looks = time.AfterFunc(lookEvery, c.look)
			c.mu.Unlock()
			return c, nil
		})
}

// opening bounds all the steps of opening a producer or consumer.
func (d *proxyDriver) opening(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.cfg.ConnectTimeout)
}

// Close implements [driver.Driver].
func (d *proxyDriver) Close(ctx context.Context) error {
	if d.admin != nil {
		d.admin.Close()
	}
	return d.pool.Close(ctx)
}

// Inspect implements [driver.Inspector]. The proxy knows no counts.
func (d *proxyDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) ([]driver.DestinationCount, error) {
	if d.admin == nil {
		return nil, driver.Errorf(driver.ClassUnsupported, "ask for counters", "give -o name-server=HOST:PORT",
			"RocketMQ's proxy does not count")
	}
	list, err := d.admin.Inspect(ctx, d.cfg.Options.Group, destinations)
	for i := range list { // the broker saves the offsets of acknowledged messages later
		list[i].Depth, list[i].Acknowledged = driver.Count{}, driver.Count{}
	}
	return list, err
}

// client is a client as the proxy knows it: an id with settings. Each producer and each consumer is one, and several
// may share a connection.
type client struct {
	*conn
	header   []byte // the id, as a field that no table keeps
	settings wire.Settings
	told     chan error // the proxy's answer to the settings
	ready    atomic.Bool
	opened   time.Time
	fifo     atomic.Bool // the group consumes in order
	topic    wire.Resource
	group    wire.Resource // of a consumer
	orphaned func(*wire.RecoverOrphanedTransactionCommand)
	ended    func(error) // the proxy or the connection has ended it
}

// newClient makes a client on a connection, of a topic and, with a name, a group.
func newClient(c *conn, spec *driver.Connection, topic, group string) *client {
	const most = 60
	name := spec.ClientID
	if name == "" {
		name = spec.Name
	}
	id := "perfmq-" + transport.Clip(name, most) + "@" + unique()
	id = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, id)
	const neverIndexed, key = 0x10, "x-mq-client-id"
	header := append([]byte{neverIndexed, byte(len(key))}, key...)
	header = append(append(header, byte(len(id))), id...)
	return &client{
		conn: c, header: header, topic: wire.ResourceOf(topic), group: wire.ResourceOf(group),
		told: make(chan error, 1),
	}
}

// open tells the proxy the settings and waits for its answer: with the first of a connection we are logged in.
func (l *client) open(ctx context.Context, stages driver.Stages) error {
	l.settings.BackoffPolicy.MaxAttempts, l.settings.RequestTimeout = 1, wire.DurationOf(callLimit)
	l.settings.UserAgent = wire.UA{Language: wire.LanguageGolang, Version: []byte(clientVersion)}
	command := wire.TelemetryCommand{Command: wire.TelemetryCommandSettings, Settings: l.settings}
	err := l.start(ctx, &request{
		of: l, call: l.d.calls[wire.CallTelemetry], to: l, parts: whole(command.Append(nil)), open: true,
		limit: unlimited,
	})
	if err != nil {
		return err
	}
	select {
	case err = <-l.told:
	case <-ctx.Done():
		err = driver.Errorf(driver.ClassTimeout, "", hintNotProxy,
			"the proxy does not answer our settings: %w", ctx.Err())
	}
	if err != nil {
		l.endCalls(err, func(s *stream) bool { return s.to == caller(l) })
		return err
	}
	l.ready.Store(true)
	select {
	case err = <-l.told: // it has ended meanwhile
		return err
	default:
	}
	l.opened = time.Now()
	if stages != nil && l.loggedIn.CompareAndSwap(false, true) {
		l.opened = stages.Ended(driver.StageLogin, l.begin)
	}
	l.mu.Lock()
	l.clients[l] = true
	l.mu.Unlock()
	return nil
}

// take implements [streamer] for the proxy's commands.
func (l *client) take(body []byte) error {
	var command wire.TelemetryCommand
	if err := wire.Read(body, &command); err != nil {
		return malformed("a command: %w", err)
	}
	switch command.Command {
	case wire.TelemetryCommandSettings:
		l.fifo.Store(command.Settings.Subscription.Fifo)
		l.tell(nil)
	case wire.TelemetryCommandRecoverOrphanedTransactionCommand:
		if l.orphaned != nil {
			l.orphaned(&command.RecoverOrphanedTransactionCommand)
		}
	case wire.TelemetryCommandReconnectEndpointsCommand:
		return driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog, "the proxy asks for another connection")
	default:
		if command.Status.Code != 0 && command.Status.Code != wire.CodeOk {
			l.tell(codeError(&command.Status))
		}
	}
	return nil
}

func (l *client) tell(err error) {
	select {
	case l.told <- err:
	default:
	}
}

// answer implements [caller]: the proxy has no more commands for us.
func (l *client) answer(_ uint64, _ []byte, err error) {
	if err == nil {
		err = driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog, "the proxy ended the client")
	}
	if l.tell(err); l.ready.Load() {
		l.Fail(err)
		l.ended(err)
	}
}

// ask makes a call with one answer, and returns a copy of that. The error has the proxy's refusal.
func (l *client) ask(ctx context.Context, op, call string, m interface{ Append(b []byte) []byte }) ([]byte, error) {
	w := make(result, 1)
	r := &request{of: l, call: l.d.calls[call], parts: whole(m.Append(nil)), to: w, limit: unlimited}
	if err := l.start(ctx, r); err != nil {
		return nil, transport.Explain(op, err)
	}
	var a answered
	select {
	case a = <-w:
	case <-ctx.Done():
		l.endCalls(errAbandoned, func(s *stream) bool { return s.to == caller(w) })
		a = <-w
	}
	var answer wire.HeartbeatResponse // all answers have a status as this one
	if a.err == nil {
		if err := wire.Read(a.body, &answer); err != nil {
			a.err = malformed("an answer to %s: %w", call, err)
		} else {
			a.err = codeError(&answer.Status)
		}
	}
	return a.body, transport.Explain(op, a.err)
}

// queues returns the topic's queues with one of these permissions, which a client needs that wants to do that.
func (l *client) queues(
	ctx context.Context, do string, permissions ...wire.Permission,
) (list []wire.MessageQueue, err error) {
	topic := string(l.topic.Name)
	op := "look up topic " + topic
	port, _ := strconv.ParseInt(l.host.Port, 10, 32)
	body, err := l.ask(ctx, op, wire.CallQueryRoute, &wire.QueryRouteRequest{Topic: l.topic, Endpoints: wire.Endpoints{
		Scheme:    wire.AddressSchemeDomainName,                                   // any text
		Addresses: []wire.Address{{Host: []byte(l.host.Host), Port: int32(port)}}, //nolint:gosec // of 32 bits
	}})
	if err != nil {
		return nil, err
	}
	var route wire.QueryRouteResponse
	if err = wire.Read(body, &route); err != nil {
		return nil, transport.Explain(op, malformed("a route: %w", err))
	}
	for _, q := range route.MessageQueues {
		if slices.Contains(permissions, q.Permission) {
			list = append(list, q)
		}
	}
	switch {
	case len(route.MessageQueues) == 0:
		err = driver.Errorf(driver.ClassNotFound, op, "are the brokers up?", "the topic has no queues")
	case len(list) == 0:
		err = driver.Errorf(driver.ClassAuth, "", "look at the topic's perm (mqadmin updateTopicPerm)",
			"no queue of topic %s may be %s", topic, do)
	}
	return list, err
}

// beat tells the proxy that we live.
func (l *client) beat(ctx context.Context, op string) error {
	request := &wire.HeartbeatRequest{Group: l.group, ClientType: l.settings.ClientType}
	_, err := l.ask(ctx, op, wire.CallHeartbeat, request)
	return err
}

// leave takes leave of the proxy.
func (l *client) leave(ctx context.Context) {
	l.ready.Store(false)
	l.mu.Lock()
	delete(l.clients, l)
	l.mu.Unlock()
	if !l.Dead() && ctx.Err() == nil {
		// Without an answer it learns of our end by the end of the stream.
		_, _ = l.ask(ctx, "", wire.CallNotifyClientTermination, &wire.NotifyClientTerminationRequest{Group: l.group})
	}
	l.endCalls(errAbandoned, func(s *stream) bool { return s.to == caller(l) })
}

// unique returns a text that no other run has.
func unique() string { return strings.ToLower(rand.Text()[:10]) }
