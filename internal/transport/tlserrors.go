package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"

	"github.com/perfmq/perfmq/pkg/driver"
)

// IsAlert reports whether the peer ended the encrypted connection with a reason (RFC 8446, section 6.2): with TLS 1.3,
// servers refuse client certificates after the handshake. Package crypto/tls wraps it in an error of the network.
func IsAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// tlsError adds a hint to the reason why the TLS handshake failed. Its class is [driver.ClassTLS].
func (p *Protocol) tlsError(op string, err error) error {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	text, hint := "the TLS handshake failed", "is this the broker's TLS port?"
	switch {
	case errors.As(err, &record):
		text = "the peer does not speak TLS on this port"
		hint = "use " + p.Schemes[0] + ":// instead of " + p.Encrypted[0] + "://, or the broker's TLS port"
	case errors.As(err, &authority):
		hint = "give the certificate of its authority by --tls-ca FILE"
	case errors.As(err, &hostname):
		hint = "give the name in the certificate by --tls-server-name NAME"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		hint = "compare the clocks"
	case errors.As(err, &invalid):
		hint = "see openssl x509 -text"
	case IsAlert(err):
		hint = "the broker may demand a client certificate: --tls-cert FILE --tls-key FILE"
	}
	return driver.Errorf(driver.ClassTLS, op, hint, "%s (%w)", text, err)
}
