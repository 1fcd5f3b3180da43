package broker

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func start(t *testing.T, cfg Config) *Broker {
	t.Helper()
	cfg.Listen = map[string]string{}
	for _, p := range Protocols() {
		cfg.Listen[p] = "127.0.0.1:0"
	}
	b := musttest.Get(Start(cfg))(t)
	t.Cleanup(b.Close)
	return b
}

// stompPeer is a connection that has said CONNECT and was answered.
type stompPeer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialSTOMP(t *testing.T, b *Broker) *stompPeer {
	t.Helper()
	conn := musttest.Get(net.Dial("tcp", b.Addr(STOMP)))(t)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*patience)))
	p := &stompPeer{t: t, conn: conn, r: bufio.NewReader(conn)}
	p.say("CONNECT\naccept-version:1.2\nhost:x\n\n")
	require.Contains(t, p.frame(), "CONNECTED\n")
	return p
}

func (p *stompPeer) say(frame string) {
	musttest.Get(p.conn.Write([]byte(frame + "\x00")))(p.t)
}

func (p *stompPeer) frame() string {
	text := musttest.Get(p.r.ReadString(0))(p.t)
	return strings.TrimLeft(strings.TrimSuffix(text, "\x00"), "\n")
}

func (p *stompPeer) send(body string) {
	p.say("SEND\ndestination:/queue/Q\nreceipt:" + body + "\n\n" + body)
	require.Contains(p.t, p.frame(), "RECEIPT\n")
}

func TestConnections(t *testing.T) {
	b := start(t, Config{})
	p, q := dialSTOMP(t, b), dialSTOMP(t, b)
	p.send("1")
	stats := b.Stats()
	require.Len(t, stats.Connections, 3)
	assert.Equal(t, ConnectionStats{Protocol: STOMP, Address: b.Addr(STOMP), Open: 2, Total: 2}, stats.Connections[2])
	require.Len(t, stats.Destinations, 1)
	assert.Equal(t, uint64(1), stats.Destinations[0].Sent)

	assert.Equal(t, 2, b.DropConnections())
	for _, peer := range []*stompPeer{p, q} {
		_, err := peer.r.ReadByte()
		require.Error(t, err)
	}
	assert.Equal(t, uint64(2), b.Stats().Done.Dropped)

	b.Store().SetFaults(store.Faults{Refuse: true})
	conn := musttest.Get(net.Dial("tcp", b.Addr(STOMP)))(t)
	_, err := io.ReadAll(conn)
	_ = conn.Close()
	assert.NoError(t, err, "closed at once, without a word")
	assert.Equal(t, uint64(1), b.Stats().Done.Refused)
}

func TestTheNthMessageBreaksConnections(t *testing.T) {
	b := start(t, Config{Faults: store.Faults{DropEvery: 3}})
	p := dialSTOMP(t, b)
	p.send("1")
	p.send("2")
	p.say("SEND\ndestination:/queue/Q\nreceipt:3\n\n3")
	_, err := p.r.ReadByte()
	require.Error(t, err)
	assert.Equal(t, uint64(3), b.Stats().Destinations[0].Queues[0].Stored, "it was stored, and not confirmed")
}

func TestAPortInUse(t *testing.T) {
	b := start(t, Config{})
	_, err := Start(Config{Listen: map[string]string{AMQP: "127.0.0.1:0", STOMP: b.Addr(AMQP)}})
	require.ErrorContains(t, err, "listen for stomp on 127.0.0.1:")
}

func TestControl(t *testing.T) {
	b := start(t, Config{})
	server := httptest.NewServer(b.Control(nil))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	call := func(method, path, body string) (int, string) {
		t.Helper()
		r := musttest.Get(http.NewRequest(method, server.URL+path, strings.NewReader(body)))(t)
		if method != http.MethodGet {
			r.Header.Set(ControlHeader, "1")
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text := musttest.Get(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(text)
	}
	want := func(code int, text, method, path, body string) {
		t.Helper()
		c, got := call(method, path, body)
		assert.Equal(t, code, c)
		assert.Contains(t, got, text)
	}
	p := dialSTOMP(t, b)
	want(200, "none\n", "GET", "/faults", "")
	want(200, "lose=2\n", "PUT", "/faults", "lose=2")
	want(400, "unknown fault", "PUT", "/faults", "loose=2")
	want(200, "lose=2\n", "GET", "/faults", "")
	for _, body := range []string{"1", "2", "3", "4"} {
		p.send(body)
	}
	want(400, "must be /stall", "POST", "/stall", "")
	want(400, "must be /stall", "POST", "/stall?for=-1s", "")
	want(200, "stalled for 1h0m0s", "POST", "/stall?for=1h", "")
	want(200, "stalled for 0s", "POST", "/stall?for=0s", "")
	want(200, "connections broken: 1\n", "POST", "/drop", "")
	want(405, "", "GET", "/drop", "")
	_, text := call("GET", "/stats", "")
	var stats Stats
	require.NoError(t, json.Unmarshal([]byte(text), &stats))
	assert.Equal(t, store.FaultCounts{Lost: 2, Dropped: 1, Stalls: 1}, stats.Done)
	assert.Equal(t, "lose=2", stats.Faults)
	assert.Equal(t, int64(2), stats.Destinations[0].Queues[0].Depth)
}
