package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func hosts(names ...string) []Endpoint {
	var list []Endpoint
	for _, name := range names {
		list = append(list, Endpoint{Host: name, Port: "1"})
	}
	return list
}

func TestFirst(t *testing.T) {
	refused := driver.Errorf(driver.ClassConnect, "connect", "", "refused")
	unknown := driver.Errorf(driver.ClassAuth, "connect", "", "who are you?")
	for name, c := range map[string]struct {
		answers map[string]error
		want    string
		class   driver.Class
		tried   int
	}{
		"first":          {map[string]error{}, "a", driver.ClassNone, 1},
		"last":           {map[string]error{"a": refused, "b": refused}, "c", driver.ClassNone, 3},
		"none":           {map[string]error{"a": refused, "b": refused, "c": refused}, "", driver.ClassConnect, 3},
		"not let in":     {map[string]error{"a": unknown}, "", driver.ClassAuth, 1},
		"not let in too": {map[string]error{"a": refused, "b": unknown}, "", driver.ClassConnect, 2},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			got, err := First(t.Context(), hosts("a", "b", "c"), nil, time.Second, func(_ context.Context, e Endpoint) (string, error) {
				tried++
				return e.Host, c.answers[e.Host]
			})
			require.Equal(t, c.tried, tried)
			require.Equal(t, c.class, driver.ClassOf(err))
			require.Equal(t, c.want, got)
			if c.tried > 1 && err != nil {
				require.ErrorContains(t, err, "connect to any of")
			}
		})
	}
}

// TestFirstInAnOrder: the hosts are tried in the order that is asked for.
func TestFirstInAnOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1}} {
		var tried []int
		_, err := First(t.Context(), hosts("0", "1", "2"), order, time.Second, func(_ context.Context, e Endpoint) (string, error) {
			tried = append(tried, int(e.Host[0]-'0'))
			return "", driver.Errorf(driver.ClassConnect, "connect", "", "refused")
		})
		require.Error(t, err)
		require.Equal(t, order, tried)
	}
}

func TestFirstSharesTheTime(t *testing.T) {
	silent := func(ctx context.Context, _ Endpoint) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		_, err := First(t.Context(), hosts("a", "b", "c"), nil, 3*time.Second, func(ctx context.Context, e Endpoint) (int, error) {
			at = append(at, time.Since(start))
			return silent(ctx, e)
		})
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, at)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := First(ctx, hosts("a", "b"), nil, time.Minute, silent)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
		require.Equal(t, time.Second, time.Since(start))
	})
}

// certificate returns a new certificate that no client trusts.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"here"}, NotAfter: time.Now().Add(time.Hour)}
	der := musttest.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestSecure(t *testing.T) {
	cert := certificate(t)
	for name, c := range map[string]struct {
		settings driver.TLS
		plain    bool // the peer does not speak TLS
		text     string
		hint     string
	}{
		"any certificate":   {settings: driver.TLS{InsecureSkipVerify: true}},
		"unknown":           {text: "unknown authority", hint: "--tls-ca"},
		"plain peer":        {plain: true, text: "does not speak TLS", hint: "use amqp:// instead of amqps://"},
		"settings at fault": {settings: driver.TLS{CAFile: "missing.pem"}, text: "missing.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer far.Close()
				if c.plain {
					_, _ = far.Read(make([]byte, 4096))
					_, _ = far.Write([]byte("AMQP\x00\x01\x00\x00"))
					return
				}
				_ = tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}}).HandshakeContext(t.Context())
			}()
			conn, err := amqp().secure(t.Context(), near, "here", c.settings)
			if c.text == "" {
				require.NoError(t, err)
				<-ended
				_ = conn.Close()
				return
			}
			require.Equal(t, driver.ClassTLS, driver.ClassOf(err))
			require.ErrorContains(t, err, c.text)
			require.Contains(t, driver.HintOf(err), c.hint)
			_, err = near.Write([]byte{0})
			require.Error(t, err, "the connection is closed")
			<-ended
		})
	}
}

// TestRefusedCertificate: the peer wants a certificate, which it says after the handshake, and resets the connection
// before we write.
func TestRefusedCertificate(t *testing.T) {
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	reset := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			reset <- err
			return
		}
		server := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, ClientAuth: tls.RequireAnyClientCert})
		_ = server.HandshakeContext(t.Context()) // it fails
		_ = conn.(*net.TCPConn).SetLinger(0)
		reset <- conn.Close()
	}()
	tcp := musttest.Get(net.Dial("tcp", l.Addr().String()))(t)
	conn, err := amqp().secure(t.Context(), tcp, "here", driver.TLS{InsecureSkipVerify: true})
	require.NoError(t, err, "our side of the handshake")
	defer conn.Close()
	require.NoError(t, <-reset)
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); { // the reset may be on its way
		_, err = conn.Write([]byte("hello"))
	}
	require.True(t, IsAlert(err), "%v", err)
	require.Contains(t, driver.HintOf(amqp().tlsError("connect", err)), "--tls-cert")
}

// TestLocalAddress: the peer sees the address; one that is not ours, or of the other family, is refused with a reason.
func TestLocalAddress(t *testing.T) {
	if runtime.GOOS != "linux" { // elsewhere the loopback has one address
		return
	}
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	dial := func(local string) error {
		spec := &driver.Connection{Local: netip.MustParseAddr(local)}
		conn, _, err := amqp().Dial(t.Context(), endpointOf(t, l.Addr().String()), false, driver.TLS{}, spec)
		if err == nil {
			defer conn.Close()
			require.Equal(t, local, conn.LocalAddr().(*net.TCPAddr).IP.String())
			peer := musttest.Get(l.Accept())(t)
			defer peer.Close()
			require.Equal(t, local, peer.RemoteAddr().(*net.TCPAddr).IP.String())
		}
		return err
	}
	for _, local := range []string{"127.0.0.1", "127.0.0.7", "127.1.2.3"} {
		require.NoError(t, dial(local))
	}
	for local, want := range map[string]string{"192.0.2.1": "is not one of this machine", "::1": "cannot be reached from"} {
		err := dial(local)
		require.ErrorContains(t, err, want)
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
		require.NotEmpty(t, driver.HintOf(err))
	}
}

func endpointOf(t *testing.T, addr string) Endpoint {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return Endpoint{Host: host, Port: port}
}
