package listen

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestLocal: those who know the machine are let in, pages in a browser are not.
func TestLocal(t *testing.T) {
	h := Local([]string{"", "named.example", "box"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for _, c := range []struct {
		name, method, host string
		headers            map[string]string
		want               int
	}{
		{"curl", "GET", "localhost:8162", nil, 200},
		{"curl, changing", "PUT", "127.0.0.1:8162", nil, 200},
		{"IPv6", "POST", "[::1]:8162", nil, 200},
		{"without a port", "GET", "localhost", nil, 200},
		{"another address", "GET", "192.0.2.7:8162", nil, 200},
		{"as it was written", "GET", "named.example:8162", nil, 200},
		{"the machine's name", "GET", "BOX:8162", nil, 200},
		{"a name that was rebound", "GET", "evil.example:8162", nil, 421},
		{"a name that looks like ours", "GET", "localhost.evil.example", nil, 421},
		{"an address that looks like ours", "PUT", "127.0.0.1.evil.example:8162", nil, 421},
		{"no host", "GET", "", nil, 421},
		{"a page of ours", "POST", "localhost:8162", map[string]string{"Origin": "http://localhost:8162", "Sec-Fetch-Site": "same-origin"}, 200},
		{"another page", "POST", "localhost:8162", map[string]string{"Origin": "http://evil.example"}, 403},
		{"another page that only reads", "GET", "localhost:8162", map[string]string{"Origin": "http://evil.example"}, 403},
		{"another port", "PUT", "localhost:8162", map[string]string{"Origin": "http://localhost:9999"}, 403},
		{"a page without an origin", "POST", "localhost:8162", map[string]string{"Origin": "null"}, 403},
		{"a malformed origin", "POST", "localhost:8162", map[string]string{"Origin": "%"}, 403},
		{"a form", "POST", "localhost:8162", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a sibling", "POST", "localhost:8162", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a link", "GET", "localhost:8162", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"typed", "GET", "localhost:8162", map[string]string{"Sec-Fetch-Site": "none"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "http://x/stats", nil)
			r.Host = c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, c.want, w.Code, w.Body.String())
		})
	}
}

func TestHostNames(t *testing.T) {
	names := HostNames("named.example:80")
	assert.Equal(t, "named.example", names[0])
	assert.NotContains(t, HostNames(":80")[1:], "")
}

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial returns the client's end once it was accepted.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// TestSlowClients: who says nothing, or never ends a request, or does not take the answer, is not waited for.
func TestSlowClients(t *testing.T) {
	for name, c := range map[string]struct {
		send  string
		reads bool
		most  time.Duration
	}{
		"silent":            {"", true, headerTimeout},
		"half a header":     {"GET / HTTP/1.1\r\nHost: x\r\n", true, headerTimeout},
		"half a body":       {"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc", true, requestTimeout},
		"idle":              {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true, idleTimeout},
		"reads no answer":   {"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", false, answerTimeout},
		"too long a header": {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader), true, headerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				s := Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						return
					}
					if r.URL.Path == "/large" {
						_, _ = w.Write(make([]byte, 1<<20))
					}
				}))
				client := l.dial()
				defer client.Close()
				start := time.Now()
				if c.send != "" {
					go func() { _, _ = io.WriteString(client, c.send) }()
				}
				if c.reads {
					_, _ = io.Copy(io.Discard, client)
				} else {
					synctest.Wait()
					<-time.After(c.most + time.Second)
					_, err := io.Copy(io.Discard, client)
					assert.NoError(t, err)
				}
				assert.LessOrEqual(t, time.Since(start), c.most+2*time.Second)
				require.NoError(t, s.Close())
			})
		})
	}
}

// TestLargeBodies: nobody sends what is not wanted.
func TestLargeBodies(t *testing.T) {
	l := musttest.Get(TCP(context.Background(), "metrics", "--metrics", ":0"))(t)
	s := Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		assert.Error(t, err)
		assert.LessOrEqual(t, n, int64(maxBody))
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}))
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.Addr().String(), strings.NewReader(strings.Repeat("x", 1<<20)))
	require.NoError(t, err)
	r.Close = true
	response := musttest.Get(http.DefaultTransport.RoundTrip(r))(t)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

// TestHalfOpen: however many connections have half a request, or none, another client is answered once they time out.
func TestHalfOpen(t *testing.T) {
	for name, c := range map[string]struct {
		half string
		most time.Duration
	}{
		"silent": {"", headerTimeout}, "half a header": {"GET / HTTP/1.1\r\nHost: x\r\n", headerTimeout},
		"idle": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn, 1), done: make(chan struct{})}
				s := Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
				start := time.Now()
				for i := range maxConnections + 1 {
					request := c.half
					if i == maxConnections {
						synctest.Wait()
						request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
					}
					client := l.dial()
					defer client.Close()
					go func() { _, _ = io.WriteString(client, request) }()
					if i == maxConnections {
						response := musttest.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
						require.NoError(t, response.Body.Close())
						require.Equal(t, http.StatusNoContent, response.StatusCode)
					} else {
						go func() { _, _ = io.Copy(io.Discard, client) }()
					}
				}
				require.Equal(t, c.most, time.Since(start))
				require.NoError(t, s.Close())
			})
		})
	}
}
