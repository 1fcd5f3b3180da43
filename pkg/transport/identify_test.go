package transport_test

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// A port that speaks another protocol, or TLS where none is wanted and the reverse, is recognised by what answers it.
// Peers that do not know a client's first bytes are silent, or close the connection.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	amqp, stomp, rocketmq := protocol.AMQP(), protocol.STOMP(), protocol.RocketMQ()
	plain := &transport.Protocol{Title: "PLAIN", Schemes: []string{"plain"}} // of a driver without TLS
	mine := &transport.Protocol{Title: "MINE", Schemes: []string{"mine"}, Encrypted: []string{"mines"}, Hello: "\x10MINE", Answers: []string{"\x20"}}
	unknown := &transport.Protocol{Title: "UNKNOWN", Schemes: []string{"unknown"}, Encrypted: []string{"unknowns"}}
	for _, c := range []struct {
		p         *transport.Protocol
		scheme    string
		peer      string // its protocols, and tls
		text, fix string
	}{
		{amqp, "amqp", "amqp", "", ""},
		{amqp, "amqp", "", "", ""},
		{amqp, "amqps", "tls", "", ""},
		{amqp, "amqp", "close", "", ""},
		{amqp, "amqps", "amqp", "the port speaks AMQP without TLS", "write amqp://HOST, or give the broker's port for TLS"},
		{amqp, "amqp", "amqp tls", "the port demands an encrypted connection", "write amqps://HOST"},
		{amqp, "amqp", "tls", "the port demands an encrypted connection", "write amqps://HOST"},
		{plain, "plain", "tls", "the port demands an encrypted connection", "the driver has none"},
		{amqp, "amqp", "stomp", "the port speaks STOMP, not AMQP", "give the broker's AMQP port, or use perfmq stomp with --url stomp://HOST"},
		{amqp, "amqps", "stomp tls", "the port speaks STOMP, not AMQP", "give the broker's AMQP port, or use perfmq stomp with --url stomp+ssl://HOST"},
		{amqp, "amqp", "rocketmq close", "the port speaks RocketMQ, not AMQP", "give the broker's AMQP port, or use perfmq rocketmq with --url rocketmq://HOST"},
		{amqp, "amqp", "http", "a web server answers at this port, no AMQP broker", "give the broker's AMQP port"},
		{stomp, "stomp", "amqp", "the port speaks AMQP, not STOMP", "give the broker's STOMP port, or use perfmq amqp with --url amqp://HOST"},
		{mine, "mine", "amqp mine", "", ""}, // a port may speak several protocols
		{mine, "mine", "amqp", "the port speaks AMQP, not MINE", "give the broker's MINE port, or use perfmq amqp with --url amqp://HOST"},
		{mine, "mine", "tls mine", "the port demands an encrypted connection", "write mines://HOST"},
		{unknown, "unknown", "amqp", "", ""},
		{unknown, "unknown", "http", "a web server answers at this port, no UNKNOWN broker", "give the broker's UNKNOWN port"},
		{rocketmq, "rocketmq", "rocketmq", "", ""},
		{rocketmq, "rocketmq", "tls, silent without it", "", ""}, // as one that is busy
		{rocketmq, "rocketmq", "stomp close", "the port speaks STOMP, not RocketMQ", "give the broker's RocketMQ port, or use perfmq stomp with --url stomp://HOST"},
	} {
		t.Run(c.scheme+" at "+c.peer, func(t *testing.T) {
			t.Parallel()
			host := scriptedPort(t, c.peer)
			err := c.p.Diagnose(t.Context(), driver.OpenOptions{URL: c.scheme + "://u:p@" + host})
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "connect to "+host+": "+c.text)
			require.Equal(t, strings.ReplaceAll(c.fix, "HOST", host), driver.HintOf(err))
			require.Equal(t, driver.ClassProtocol, driver.ClassOf(err))
		})
	}
}

// scriptedPort listens and answers those first bytes that the named protocols know.
func scriptedPort(t *testing.T, speaks string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if strings.Contains(speaks, "silent") {
		l = holdsPlain{l}
	}
	if strings.Contains(speaks, "tls") {
		web := httptest.NewUnstartedServer(http.NotFoundHandler())
		web.StartTLS() // for its certificate
		t.Cleanup(web.Close)
		l = tls.NewListener(l, &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerAs(t, conn, speaks)
		}
	}()
	return l.Addr().String()
}

// holdsPlain listens for connections that never get more than the first record of a TLS handshake: other first bytes do
// not arrive.
type holdsPlain struct{ net.Listener }

func (l holdsPlain) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &heldConn{Conn: conn}, err
}

type heldConn struct {
	net.Conn
	secure bool
}

func (c *heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for !c.secure && n > 0 && b[0] != 22 { // a handshake
		n, err = c.Conn.Read(b)
	}
	c.secure = true
	return n, err
}

func answerAs(t *testing.T, conn net.Conn, speaks string) {
	t.Helper()
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	first, err := in.Peek(4)
	if err != nil {
		return
	}
	answer := ""
	switch {
	case string(first) == "AMQP" && strings.Contains(speaks, "amqp"):
		answer = "AMQP\x03\x01\x00\x00"
	case string(first) == "CONN" && strings.Contains(speaks, "stomp"):
		answer = "CONNECTED\nversion:1.2\n\n\x00"
	case string(first) == "GET " && strings.Contains(speaks, "http"):
		answer = "HTTP/1.0 404 Not Found\r\n\r\n"
	case first[0] == 0 && strings.Contains(speaks, "rocketmq"):
		answer = "\x00\x00\x00\x20\x00\x00\x00\x1c" + `{"code":17,"flag":1,"opaque":0}`
	case first[0] == 0x10 && strings.Contains(speaks, "mine"):
		answer = "\x20 welcome"
	case strings.Contains(speaks, "close"):
		return
	}
	if _, err := conn.Write([]byte(answer)); err != nil {
		return
	}
	for { // until the client has gone
		if _, err := in.ReadByte(); err != nil {
			assert.NotErrorIs(t, err, net.ErrClosed)
			return
		}
	}
}
