package stomp

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for something that must happen.
const patience = 30 * time.Second

// running is a front-end on a port.
type running struct {
	store *store.Store
	addr  string
	stop  func() // returns when nothing is left of it
}

func serve(t testing.TB, cfg store.Config, o Server) *running {
	t.Helper()
	r := storetest.Serve(t, cfg, func(s *store.Store) storetest.Frontend { o.Store = s; return o })
	return &running{store: r.Store, addr: r.Addr, stop: r.Stop}
}

// client is a client that sends text and reads frames.
type client struct {
	t testing.TB
	net.Conn
	r     *bufio.Reader
	early []answer // messages that came before a receipt
}

// answer is a frame of the broker.
type answer struct {
	command string
	headers map[string]string
	body    string
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn := musttest.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, Conn: conn, r: bufio.NewReader(conn)}
}

// connected returns a client that has connected.
func connected(t testing.TB, addr string, headers ...string) *client {
	t.Helper()
	c := dial(t, addr)
	c.put("CONNECT", "", append([]string{"accept-version:1.2", "host:x"}, headers...)...)
	a := c.get()
	require.Equal(t, "CONNECTED", a.command, "%v %s", a.headers, a.body)
	require.Equal(t, "1.2", a.headers["version"])
	return c
}

// begin returns a front-end and a client of it, for a test that runs beside others.
func begin(t *testing.T, cfg store.Config) (*running, *client) {
	t.Parallel()
	t.Helper()
	s := serve(t, cfg, Server{})
	return s, connected(t, s.addr)
}

func (c *client) raw(text string) {
	c.t.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	musttest.Get(io.WriteString(c, text))(c.t)
}

// put sends a frame; headers are whole lines.
func (c *client) put(command, body string, headers ...string) {
	c.t.Helper()
	c.raw(command + "\n" + strings.Join(append(headers, ""), "\n") + "\n" + body + "\x00")
}

// ask sends a frame and waits for its receipt. A message that the frame causes may come before the receipt (STOMP
// gives no order between the two): [client.next] returns it later.
func (c *client) ask(command, body string, headers ...string) {
	c.t.Helper()
	c.put(command, body, append(headers, "receipt:r-"+command)...)
	var early []answer
	a := c.get()
	for ; a.command == "MESSAGE"; a = c.get() {
		early = append(early, a)
	}
	c.early = early
	require.Equal(c.t, "RECEIPT", a.command, "%v", a)
	require.Equal(c.t, "r-"+command, a.headers["receipt-id"])
}

// get returns the next frame; at the end of the connection one with the command EOF.
func (c *client) get() answer {
	c.t.Helper()
	return musttest.Get(c.next(patience))(c.t)
}

func (c *client) next(wait time.Duration) (a answer, err error) {
	if len(c.early) > 0 {
		a, c.early = c.early[0], c.early[1:]
		return a, nil
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	line := ""
	for line == "" && err == nil {
		line, err = c.r.ReadString('\n')
		line = strings.Trim(line, "\r\n")
	}
	if err == io.EOF {
		return answer{command: "EOF"}, nil
	}
	a = answer{command: line, headers: map[string]string{}}
	for err == nil {
		if line, err = c.r.ReadString('\n'); line == "\n" {
			break
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if _, ok := a.headers[key]; !ok {
			a.headers[key] = value
		}
	}
	if err != nil {
		return a, err
	}
	if length, ok := a.headers["content-length"]; ok {
		n, _ := strconv.Atoi(length)
		body := make([]byte, n+1)
		_, err = io.ReadFull(c.r, body)
		a.body = string(bytes.TrimSuffix(body, []byte{0}))
		return a, err
	}
	a.body, err = c.r.ReadString(0)
	a.body = strings.TrimSuffix(a.body, "\x00")
	return a, err
}

// quiet checks that nothing comes.
func (c *client) quiet() {
	c.t.Helper()
	a, err := c.next(50 * time.Millisecond)
	if err == nil {
		c.t.Fatalf("unexpected frame: %+v", a)
	}
}

// refused checks that the broker answers with an ERROR that says so, and closes.
func (c *client) refused(words string) answer {
	c.t.Helper()
	a := c.get()
	require.Equal(c.t, "ERROR", a.command, "%v", a)
	require.Contains(c.t, a.body, words)
	require.Equal(c.t, "EOF", c.get().command)
	return a
}

func queueStats(s *store.Store, name string) store.QueueStats {
	return s.Destination(driver.Destination{Kind: driver.Queue, Name: name}).Stats().Queues[0]
}

func (c *client) reset() { c.r = bufio.NewReader(c.Conn) }
