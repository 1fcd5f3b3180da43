package listen

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientNames: a client needs one of the allowed names in its own certificate, not in that of an authority.
func TestClientNames(t *testing.T) {
	c := &tls.Config{}
	require.NoError(t, (&webTLS{ClientNames: []string{"b", "m@b", "10.0.0.1", "spiffe://b/x"}}).askClients(c))
	good := &x509.Certificate{DNSNames: []string{"a", "b"}}
	bad := &x509.Certificate{DNSNames: []string{"a"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 2)}}
	for _, cert := range []*x509.Certificate{
		good,
		{EmailAddresses: []string{"m@b"}},
		{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}},
		{URIs: []*url.URL{{Scheme: "spiffe", Host: "b", Path: "/x"}}},
	} {
		require.NoError(t, c.VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}))
	}
	for _, chain := range [][]*x509.Certificate{nil, {bad}, {{}}, {bad, good}} {
		assert.ErrorContains(t, c.VerifyConnection(tls.ConnectionState{PeerCertificates: chain}), "client_allowed_sans")
	}
}
