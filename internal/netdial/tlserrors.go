package netdial

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// IsTLSError reports whether err is about certificates or the TLS handshake. An alert of the peer that arrives after
// the handshake (TLS 1.3 refuses client certificates that late) has no type of its own, only a text.
func IsTLSError(err error) bool {
	var (
		record tls.RecordHeaderError
		alert  tls.AlertError
		verify *tls.CertificateVerificationError
	)
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		strings.Contains(err.Error(), "tls: ")
}

// TLSError tells in plain words why no encrypted connection could be agreed on. Its class is [driver.ClassTLS].
func (p *Protocol) TLSError(op string, err error) error {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	text, hint := "no encrypted connection could be agreed on", "is this the broker's TLS port? Its log may say what it does not like"
	switch {
	case errors.As(err, &record):
		text = "the peer does not speak TLS on this port"
		hint = "use " + p.Schemes[0] + ":// instead of " + p.Encrypted[0] + "://, or the broker's TLS port"
	case errors.As(err, &authority):
		text = "the broker's certificate is signed by an authority that is not trusted"
		hint = "give the authority's certificate by --tls-ca FILE"
	case errors.As(err, &hostname):
		text = "the broker's certificate is for another name"
		hint = "give the name in the certificate by --tls-server-name NAME"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		text, hint = "the broker's certificate has expired or is not valid yet", "renew it, and compare the clocks"
	case errors.As(err, &invalid):
		text, hint = "the broker's certificate is not usable", "look at its purposes and constraints: openssl x509 -text"
	case strings.Contains(err.Error(), "remote error"):
		text = "the broker refused our side of the encrypted connection"
		hint = "the broker may want a client certificate: --tls-cert FILE and --tls-key FILE"
	}
	return driver.Errorf(driver.ClassTLS, op, hint, "%s (%w)", text, err)
}
