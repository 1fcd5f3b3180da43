package listen

import (
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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
		{"basic_auth_users: hunter2", "line 1: cannot unmarshal"},
		{"tls_server_config: {cert_file: cert.pem}", "missing one of key or key_file"},
		{"tls_server_config: {cert_file: cert.pem, key_file: none}", "failed to read key_file"},
		{"tls_server_config: {cert_file: key.pem, key_file: cert.pem}", "failed to load X509KeyPair"},
		{"tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: cert.pem}", "Client Auth"},
		{"tls_server_config: {min_version: TLS9}", "unknown TLS version"},
		{"http_server_config: {headers: {X-Other: a}}", "X-Other"},
		{"tls: 1", "field tls not found"},
		{"a: [", "yaml:"},
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
