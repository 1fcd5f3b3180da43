package rocketmq5

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// peer is the other end of a connection: a server of HTTP/2 as golang.org/x/net/http2 writes and reads frames.
type peer struct {
	t       *testing.T
	framer  *http2.Framer
	conn    net.Conn
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// connect returns a connection of ours to a peer with these settings, and a client of it.
func connect(t *testing.T, settings ...http2.Setting) (*client, *peer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	p := &peer{t: t}
	ready := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			p.conn, p.framer = conn, http2.NewFramer(conn, conn)
			p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			_, err = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
			err = errors.Join(err, p.framer.WriteSettings(settings...))
		}
		ready <- err
	}()
	d := newDriver(transport.Settings[Options]{
		Target: transport.Target{User: "key", Password: "secret"}, ConnectTimeout: time.Minute, MaxBody: 1 << 20,
		Options: *defaultOptions(),
	})
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	d.cfg.Target.Hosts = []transport.Endpoint{{Host: host, Port: port}}
	c, err := d.dial(t.Context(), driver.Connection{})
	require.NoError(t, err)
	require.NoError(t, <-ready)
	p.encoder = hpack.NewEncoder(&p.block)
	t.Cleanup(func() {
		_ = p.conn.Close()
		c.End(context.Background())
	})
	l := newClient(c, &driver.Connection{Name: "test"}, "", "")
	l.ended = func(error) {}
	return l, p
}

// read returns the next frame that is not of settings, windows or pings.
func (p *peer) read() http2.Frame {
	for {
		require.NoError(p.t, p.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		f, err := p.framer.ReadFrame()
		require.NoError(p.t, err)
		switch f.(type) {
		case *http2.SettingsFrame, *http2.WindowUpdateFrame, *http2.PingFrame:
		default:
			return f
		}
	}
}

func (p *peer) headers(id uint32, end bool, pairs ...string) {
	p.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(p.t, p.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}))
	}
	require.NoError(p.t, p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: p.block.Bytes(), EndStream: end, EndHeaders: true,
	}))
}

func message(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

// reply answers a call.
func (p *peer) reply(id uint32, text string) {
	p.headers(id, false, ":status", "200", "content-type", "application/grpc")
	require.NoError(p.t, p.framer.WriteData(id, false, message(text)))
	p.headers(id, true, "grpc-status", "0")
}

// ended is the end of a call.
type ended struct {
	body string
	err  error
}

type waiter chan ended

func (w waiter) answer(_ uint64, body []byte, err error) { w <- ended{string(body), err} }

func (w waiter) wait(t *testing.T) ended {
	t.Helper()
	select {
	case e := <-w:
		return e
	case <-time.After(time.Minute):
		require.FailNow(t, "the call has not ended")
		return ended{}
	}
}

func (l *client) question(ctx context.Context, text string, limit time.Duration) (waiter, error) {
	w := make(waiter, 2)
	return w, l.start(ctx, &request{
		of: l, call: l.d.calls[wire.CallQueryRoute], parts: whole([]byte(text)), to: w, limit: limit,
		credit: driver.NewMeter(), socket: driver.NewMeter(),
	})
}

func TestCalls(t *testing.T) {
	l, p := connect(t)
	for i := range 3 { // the second time by the table of headers
		w, err := l.question(t.Context(), "question", unlimited)
		require.NoError(t, err)
		h := p.read().(*http2.MetaHeadersFrame)
		fields := map[string]string{}
		for _, f := range h.Fields {
			fields[f.Name] = f.Value
		}
		assert.Equal(t, "/apache.rocketmq.v2.MessagingService/QueryRoute", fields[":path"])
		assert.Equal(t, "10000m", fields["grpc-timeout"])
		assert.True(t, strings.HasPrefix(fields["x-mq-client-id"], "perfmq-test@"))
		assert.Regexp(t, "^MQv2-HMAC-SHA1 Credential=key//Rocketmq, SignedHeaders=x-mq-date-time, Signature=[0-9A-F]{40}$",
			fields["authorization"])
		d := p.read().(*http2.DataFrame)
		assert.True(t, d.StreamEnded())
		assert.Equal(t, message("question"), d.Data())
		assert.Equal(t, uint32(2*i+1), d.StreamID)
		p.reply(d.StreamID, "answer")
		assert.Equal(t, ended{"answer", nil}, w.wait(t))
	}
	assert.Zero(t, l.live)
}

// TestEnds: each end of a call, and what it means for a message.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(p *peer, id uint32)
		state driver.State
		class driver.Class
		says  string
	}{
		"status": {func(p *peer, id uint32) {
			p.headers(id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "16", "grpc-message", "who%20are you")
		}, driver.Rejected, driver.ClassAuth, "who are you (gRPC Unauthenticated)"},
		"refused stream": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteRSTStream(id, http2.ErrCodeRefusedStream))
		}, driver.Failed, driver.ClassClosedByBroker, "ended the call"},
		"reset": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteRSTStream(id, http2.ErrCodeInternal))
		}, driver.Unknown, driver.ClassClosedByBroker, "ended the call"},
		"gone away before it": {func(p *peer, _ uint32) {
			require.NoError(p.t, p.framer.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")))
		}, driver.Failed, driver.ClassClosedByBroker, "too_many_pings"},
		"gone away after it": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteGoAway(id, http2.ErrCodeNo, nil))
		}, driver.Unknown, driver.ClassClosedByBroker, "closes the connection"},
		"cut": {func(p *peer, _ uint32) {
			require.NoError(p.t, p.conn.Close())
		}, driver.Unknown, driver.ClassConnectionLost, ""},
		"no status": {func(p *peer, id uint32) {
			p.headers(id, false, ":status", "200", "content-type", "application/grpc")
			require.NoError(p.t, p.framer.WriteData(id, true, message("answer")))
		}, driver.Unknown, driver.ClassProtocol, "without a status"},
		"no answer": {func(p *peer, id uint32) {
			p.headers(id, false, ":status", "200", "content-type", "application/grpc")
			p.headers(id, true, "grpc-status", "0")
		}, driver.Unknown, driver.ClassProtocol, "no answer"},
		"a web page": {func(p *peer, id uint32) {
			p.headers(id, false, ":status", "404", "content-type", "text/html")
		}, driver.Unknown, driver.ClassProtocol, "not gRPC"},
		"compressed": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteData(id, false, []byte{1, 0, 0, 0, 1, 0}))
		}, driver.Unknown, driver.ClassProtocol, "compressed"},
		"4 GiB": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteData(id, false, []byte{0, 0xff, 0xff, 0xff, 0xff}))
		}, driver.Unknown, driver.ClassTooLarge, "4294967295 bytes"},
		"two answers": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteData(id, false, append(message("a"), message("b")...)))
		}, driver.Unknown, driver.ClassProtocol, "two answers"},
		"a push": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true}))
		}, driver.Unknown, driver.ClassProtocol, "did not ask for"},
		"too wide a window": {func(p *peer, _ uint32) {
			require.NoError(p.t, p.framer.WriteWindowUpdate(0, 1<<31-1))
		}, driver.Unknown, driver.ClassProtocol, "malformed"},
		"too large a frame": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteData(id, false, make([]byte, 1<<15)))
		}, driver.Unknown, driver.ClassProtocol, "frame too large"},
		"more headers than we accept": {func(p *peer, id uint32) {
			require.NoError(p.t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id}))
		}, driver.Unknown, driver.ClassProtocol, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, p := connect(t)
			w, err := l.question(t.Context(), "question", unlimited)
			require.NoError(t, err)
			id := p.read().Header().StreamID
			p.read()
			test.end(p, id)
			o := outcome("send", w.wait(t).err)
			assert.Equal(t, test.state, o.State, o.Err)
			assert.Equal(t, test.class, o.Class, o.Err)
			require.ErrorContains(t, o.Err, test.says)
		})
	}
}

// TestPieces: an answer may come in frames of one byte, with padding.
func TestPieces(t *testing.T) {
	l, p := connect(t)
	w, err := l.question(t.Context(), "question", unlimited)
	require.NoError(t, err)
	id := p.read().Header().StreamID
	p.read()
	p.headers(id, false, ":status", "200", "content-type", "application/grpc")
	for _, b := range message("answer") {
		require.NoError(t, p.framer.WriteDataPadded(id, false, []byte{b}, make([]byte, 3)))
	}
	p.headers(id, true, "grpc-status", "0")
	assert.Equal(t, ended{"answer", nil}, w.wait(t))
}

// TestWindows: a request that is larger than the windows leaves as they open, and in frames of the peer's size.
func TestWindows(t *testing.T) {
	l, p := connect(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	first, err := l.question(t.Context(), "hello", unlimited) // the settings have been read when it is answered
	require.NoError(t, err)
	id := p.read().Header().StreamID
	p.read()
	p.reply(id, "x")
	first.wait(t)
	text := strings.Repeat("abcdefghij", 10_000)
	sent := make(chan waiter, 1)
	go func() {
		w, err := l.question(t.Context(), text, unlimited)
		assert.NoError(t, err)
		sent <- w
	}()
	id = p.read().Header().StreamID
	var got []byte
	for len(got) < len(text)+5 {
		d := p.read().(*http2.DataFrame)
		require.LessOrEqual(t, d.Length, uint32(1<<14))
		if len(got) == 0 {
			require.Len(t, d.Data(), 10)
			require.NoError(t, p.framer.WriteWindowUpdate(id, 1<<20))
			require.NoError(t, p.framer.WriteWindowUpdate(0, 1<<20))
		}
		got = append(got, d.Data()...)
	}
	assert.Equal(t, message(text), got)
	w := <-sent
	// One stream is all that the peer takes.
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = l.question(short, "another", unlimited)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.reply(id, "done")
	assert.Equal(t, "done", w.wait(t).body)
	_, err = l.question(t.Context(), "more", unlimited)
	require.NoError(t, err)
}

// TestCutRequest: a request whose rest does not leave in time is taken back.
func TestCutRequest(t *testing.T) {
	l, p := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := l.question(ctx, strings.Repeat("x", 1<<17), unlimited) // beyond the first windows
		sent <- err
	}()
	for n := 0; n < 1<<16-1; {
		if d, ok := p.read().(*http2.DataFrame); ok {
			n += len(d.Data())
		}
	}
	cancel()
	require.ErrorIs(t, <-sent, context.Canceled)
	assert.IsType(t, &http2.RSTStreamFrame{}, p.read())
}

// TestLimit: a call without an answer in time ends.
func TestLimit(t *testing.T) {
	l, p := connect(t)
	w, err := l.question(t.Context(), "question", time.Millisecond)
	require.NoError(t, err)
	require.ErrorIs(t, w.wait(t).err, errNoAnswer)
	id := p.read().Header().StreamID
	p.read()
	assert.IsType(t, &http2.RSTStreamFrame{}, p.read())
	p.reply(id, "too late")
	w, err = l.question(t.Context(), "question", unlimited)
	require.NoError(t, err)
	id = p.read().Header().StreamID
	p.read()
	p.reply(id, "in time")
	assert.Equal(t, "in time", w.wait(t).body)
}

func TestPing(t *testing.T) {
	_, p := connect(t)
	require.NoError(t, p.framer.WritePing(false, [8]byte{1, 2, 3}))
	for {
		require.NoError(t, p.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		f, err := p.framer.ReadFrame()
		require.NoError(t, err)
		if ping, ok := f.(*http2.PingFrame); ok {
			assert.True(t, ping.IsAck())
			assert.Equal(t, [8]byte{1, 2, 3}, ping.Data)
			return
		}
	}
}

// TestMutated: whatever the bytes of the peer are, a call ends, and without a crash.
func TestMutated(t *testing.T) {
	var good bytes.Buffer
	p := &peer{t: t, framer: http2.NewFramer(&good, nil)}
	p.encoder = hpack.NewEncoder(&p.block)
	require.NoError(t, p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
	require.NoError(t, p.framer.WriteWindowUpdate(0, 1<<20))
	p.reply(1, "answer")
	require.NoError(t, p.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	require.NoError(t, p.framer.WriteGoAway(1, http2.ErrCodeNo, []byte("bye")))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		b := bytes.Clone(good.Bytes())
		for range 1 + random.IntN(4) {
			b[random.IntN(len(b))] ^= byte(1 << random.IntN(8))
		}
		l, p := connect(t)
		w, err := l.question(t.Context(), "question", unlimited)
		require.NoError(t, err, i)
		_, _ = p.conn.Write(b) // it may have been closed
		require.NoError(t, p.conn.(*net.TCPConn).CloseWrite())
		w.wait(t)
	}
}

// TestRefusedLogin: a proxy that does not take our keys refuses the client before anything is sent.
func TestRefusedLogin(t *testing.T) {
	l, p := connect(t)
	opened := make(chan error, 1)
	go func() { opened <- l.open(t.Context(), nil) }()
	id := p.read().Header().StreamID
	p.read()
	p.headers(id, false, ":status", "200", "content-type", "application/grpc")
	refusal := wire.TelemetryCommand{Status: wire.Status{
		Code: wire.CodeUnauthorized, Message: []byte("the signature of key is wrong"),
	}}
	require.NoError(t, p.framer.WriteData(id, false, message(string(refusal.Append(nil)))))
	err := <-opened
	require.ErrorContains(t, err, "the signature of key is wrong (code 40100)")
	assert.NotContains(t, err.Error(), "secret")
	assert.Equal(t, driver.ClassAuth, driver.ClassOf(err))
	assert.Equal(t, driver.Rejected, outcome("send", err).State)
	assert.IsType(t, &http2.RSTStreamFrame{}, p.read())
}

// TestWaitingIsBounded: a proxy that sends more than a consumer can deliver ends it, before the memory is taken.
func TestWaitingIsBounded(t *testing.T) {
	c := &consumer{opts: &Options{PullBatch: 1000}, client: &client{}, arrived: make(chan struct{}, 1)}
	a := &ask{c: c}
	body := make([]byte, 1<<20)
	body[0] = 0x12 // a message
	for range 63 {
		require.NoError(t, a.take(body))
	}
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(a.take(body)))
	require.LessOrEqual(t, len(c.came), mostWaiting)
}
