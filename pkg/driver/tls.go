package driver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS are the user's settings for encrypted connections.
type TLS struct {
	CAFile             string // PEM file of the authorities to trust instead of the system's
	CertFile, KeyFile  string // PEM files of the client's certificate and key; both or neither
	ServerName         string // name to expect in the broker's certificate instead of the URL's host
	InsecureSkipVerify bool   // accept any certificate; for tests only
}

// Config returns the settings as a tls.Config for a broker on host, with TLS 1.2 as the lowest version. Errors name the
// file that could not be used.
func (t TLS) Config(host string) (*tls.Config, error) {
	cfg := &tls.Config{
		ServerName:         host,
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asked for it by name
	}
	if t.ServerName != "" {
		cfg.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s holds no certificate in PEM form", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, fmt.Errorf("a client certificate needs both its certificate and its key file")
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load client certificate %s with key %s: %w", t.CertFile, t.KeyFile, err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}
