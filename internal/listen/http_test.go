package listen

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestLocal: requests by the name of the machine are answered, pages in a browser are not.
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

// TestSlowClients: the server does not wait for a client that says nothing, never ends a request, or does not take the
// answer.
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

// TestLargeBodies: a body that is not wanted is not read.
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
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
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
						response, err := http.ReadResponse(bufio.NewReader(client), nil)
						require.NoError(t, err)
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

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestCheck(t *testing.T) {
	for address, want := range map[string]string{
		":9400": "", "127.0.0.1:9400": "", "localhost:0": "", "[::]:1": "", "0.0.0.0:65535": "", "a.b.example:80": "",
		"9400": "must be HOST:PORT", "": "must be HOST:PORT", "h": "must be HOST:PORT", "::1:80": "must be HOST:PORT",
		"h:65536": `port "65536" is not`, "h:-1": `port "-1" is not`, "h:": `port "" is not`, "h:http": `port "http" is not`, "h:+1": `port "+1" is not`,
		"h:01": `port "01" is not`,
	} {
		err := Check(address)
		if want == "" {
			assert.NoError(t, err, address)
			continue
		}
		assert.ErrorContains(t, err, want, address)
	}
}

// TestLoopbackUnlessWrittenOut: what lacks its host is for this machine alone.
func TestLoopbackUnlessWrittenOut(t *testing.T) {
	for address, loopback := range map[string]bool{
		":0": true, "127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false,
	} {
		l, err := TCP(context.Background(), "metrics", "--metrics", address)
		require.NoError(t, err, address)
		assert.Equal(t, loopback, l.Addr().(*net.TCPAddr).IP.IsLoopback(), "%s: %s", address, l.Addr())
		assert.Equal(t, loopback, IsLoopback(address), address)
		require.NoError(t, l.Close())
	}
	for host, want := range map[string]bool{
		"[::1]:80": true, "::1": true, "LOCALHOST.:1": true, "x.localhost": true, "127.9.9.9": true,
		"[::]:80": false, "10.0.0.1:1": false, "localhost.example:1": false, "127.0.0.1.example": false,
	} {
		assert.Equal(t, want, IsLoopback(host), host)
	}
}

func TestErrors(t *testing.T) {
	l := musttest.Get(TCP(t.Context(), "metrics", "--metrics", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, c := range []struct{ address, message, hint string }{
		{l.Addr().String(), "bind: address already in use", "give another port by --metrics"},
		{"192.0.2.1:0", "bind: cannot assign requested address", "an address of this machine"},
		{"9400", "address 9400: missing port in address", "HOST:PORT"},
	} {
		_, err := TCP(t.Context(), "metrics", "--metrics", c.address)
		require.EqualError(t, err, "listen for metrics on "+c.address+": "+c.message)
		assert.Contains(t, driver.HintOf(err), c.hint)
		assert.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	}
}

// certificate writes one for 127.0.0.1 and its key, and returns a pool that trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der := musttest.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	private := musttest.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	pool := x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.True(t, pool.AppendCertsFromPEM(text))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return pool
}

// TestWeb: TLS and users as the file says; users and passwords can change while it is served.
func TestWeb(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash := musttest.Get(bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost))(t)
	const withTLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
	withUsers := "basic_auth_users: {scraper: '" + string(hash) + "'}\n"
	for name, c := range map[string]struct {
		text       string
		tls, users bool
	}{
		"nothing": {"", false, false}, "TLS": {withTLS, true, false}, "users": {withUsers, false, true}, "both": {withTLS + withUsers, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "")+".yml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			w := musttest.Get(ReadWeb(file))(t)
			assert.Equal(t, c.tls, w.TLS)
			l := musttest.Get(TCP(context.Background(), "metrics", "--metrics", "127.0.0.1:0"))(t)
			s := w.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "figures") }))
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
			get := func(url, user, password string) (int, string) {
				r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
				if user != "" {
					r.SetBasicAuth(user, password)
				}
				response, err := transport.RoundTrip(r)
				if err != nil {
					return 0, err.Error()
				}
				defer response.Body.Close()
				text := musttest.Get(io.ReadAll(response.Body))(t)
				return response.StatusCode, string(text)
			}
			url := w.URL(s.Addr())
			assert.Equal(t, c.tls, strings.HasPrefix(url, "https://"))
			status, text := get(url, "scraper", "secret")
			assert.Equal(t, http.StatusOK, status, text)
			assert.Equal(t, "figures", text)
			for _, wrong := range [][2]string{{"", ""}, {"scraper", "secrets"}, {"other", "secret"}, {"scraper", ""}} {
				status, text := get(url, wrong[0], wrong[1])
				if !c.users {
					assert.Equal(t, http.StatusOK, status)
					continue
				}
				assert.Equal(t, http.StatusUnauthorized, status)
				assert.NotContains(t, text, "figures")
			}
			if c.tls {
				status, _ := get("http://"+s.Addr().String(), "scraper", "secret")
				assert.Equal(t, http.StatusBadRequest, status)
			}
			if c.users {
				require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(c.text, "scraper", "another")), 0o600))
				status, _ := get(url, "scraper", "secret")
				assert.Equal(t, http.StatusUnauthorized, status)
			}
			transport.CloseIdleConnections()
			require.NoError(t, s.Close())
		})
	}
}

// TestWebMistakes: each is found before anything is served, and says nothing that may be a password.
func TestWebMistakes(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	for _, c := range []struct{ text, want string }{
		{"basic_auth_users: {u: hunter2}", "no bcrypt hash"},
		{"basic_auth_users: {u: '$9z$" + strings.Repeat("x", 60) + "'}", "no bcrypt hash"},
		{"basic_auth_users: {u: 'hunter2" + strings.Repeat("x", 60) + "'}", "no bcrypt hash"},
		{"basic_auth_users: hunter2", "line 1: cannot construct"},
		{"tls_server_config: {cert_file: cert.pem}", "needs cert_file and key_file"},
		{"tls_server_config: {cert_file: cert.pem, key_file: none}", "no such file"},
		{"tls_server_config: {cert_file: key.pem, key_file: cert.pem}", "failed to find certificate"},
		{"tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: cert.pem}", "needs a client_auth_type"},
		{"tls_server_config: {cert_file: cert.pem, key_file: key.pem, min_version: TLS9}", "must be TLS12 or TLS13"},
		{"tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: Some}", "client_auth_type must be"},
		{"tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: RequireAnyClientCert, client_ca_file: key.pem}", "has no certificate"},
		{"http_server_config: {headers: {X-Other: a}}", "field http_server_config not found"},
		{"tls: 1", "field tls not found"},
		{"a: [", "did not find"},
	} {
		file := filepath.Join(dir, "web.yml")
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		_, err := ReadWeb(file)
		require.ErrorContains(t, err, file+": ", c.text)
		assert.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Contains(t, driver.HintOf(err), "docs/prometheus.md")
	}
	_, err := ReadWeb(filepath.Join(dir, "none.yml"))
	require.ErrorContains(t, err, "no such file")
	_, err = ReadWeb(dir)
	require.ErrorContains(t, err, "is no regular file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.yml"), make([]byte, maxWeb+1), 0o600))
	_, err = ReadWeb(filepath.Join(dir, "long.yml"))
	require.Error(t, err)
	assert.Equal(t, Web{}, musttest.Get(ReadWeb(""))(t))
}
