package listen

import (
	"bufio"
	"context"
	"errors"
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
	l, err := TCP(context.Background(), "metrics", "--metrics", ":0")
	require.NoError(t, err)
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
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

// get sends a request and returns the status of its answer.
func get(t *testing.T, c net.Conn) string {
	t.Helper()
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.Status
}

// ended tells whether the server has closed a connection.
func ended(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestHalfOpen: however many connections have half a request, or none, the next request is answered at once. The oldest
// of them are closed, and no connection whose request is being answered.
func TestHalfOpen(t *testing.T) {
	for name, half := range map[string]string{
		"silent": "", "half a header": "GET / HTTP/1.1\r\nHost: x\r\n", "idle": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"half a body": "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				s := Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/long" {
						<-r.Context().Done()
						return
					}
					if _, err := io.ReadAll(r.Body); err != nil {
						return
					}
					w.WriteHeader(http.StatusNoContent)
				}))
				long := l.dial()
				_, err := io.WriteString(long, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
				require.NoError(t, err)
				synctest.Wait() // it is being answered
				var open []net.Conn
				for range 2000 {
					c := l.dial()
					open = append(open, c)
					if half == "" {
						continue
					}
					_, err := io.WriteString(c, half)
					require.NoError(t, err)
					if name == "idle" {
						response, err := http.ReadResponse(bufio.NewReader(c), nil)
						require.NoError(t, err)
						require.NoError(t, response.Body.Close())
					}
					synctest.Wait()
				}
				start := time.Now()
				client := l.dial()
				require.Equal(t, "204 No Content", get(t, client))
				require.Equal(t, "204 No Content", get(t, client), "on the same connection")
				require.Zero(t, time.Since(start))
				synctest.Wait()
				n := 0
				for i, c := range open {
					if !ended(c) {
						n++
						require.Greater(t, i, 2000-maxConnections-1, "the oldest are closed first")
					}
				}
				require.Equal(t, name == "half a body", ended(long), "each has a request: the oldest is closed")
				left := 1 // the client's
				if name != "half a body" {
					left++
				}
				require.Equal(t, maxConnections, n+left)
				for _, c := range append(open, client, long) {
					_ = c.Close()
				}
				require.NoError(t, s.Close())
			})
		})
	}
}
