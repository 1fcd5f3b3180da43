package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS are the user's settings for encrypted connections.
type TLS struct {
	CAFile             string `set:"tls-ca" section:"TLS" arg:"FILE" none:"the system's" help:"PEM file of trusted authorities"`
	CertFile           string `set:"tls-cert" arg:"FILE" help:"PEM file with the client's certificate"`
	KeyFile            string `set:"tls-key" arg:"FILE" help:"PEM file with the client's key"`
	ServerName         string `set:"tls-server-name" arg:"NAME" none:"the URL's host" help:"name to expect in the broker's certificate"`
	InsecureSkipVerify bool   `set:"tls-insecure" help:"INSECURE: accept any certificate; for tests only"`

	loaded *credentials // set by Load; if nil, Config reads the files
}

// credentials are the contents of the files.
type credentials struct {
	authorities  *x509.CertPool // nil for the system's
	certificates []tls.Certificate
}

// Load reads the files once, through read, so that no later [TLS.Config] has to read them: a pipe can be read only
// once, and files may change while connections are still being opened. The error joins one error for each file that
// cannot be used, and each names its file.
func (t *TLS) Load(read func(path string) ([]byte, error)) error {
	var c credentials
	var errs []error
	if t.CAFile != "" {
		c.authorities = x509.NewCertPool()
		if pem, err := read(t.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("read CA file: %w", err))
		} else if !c.authorities.AppendCertsFromPEM(pem) {
			errs = append(errs, Errorf(ClassTLS, "", "give one with a -----BEGIN CERTIFICATE----- block",
				"CA file %s holds no certificate in PEM form", t.CAFile))
		}
	}
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		errs = append(errs, Errorf(ClassTLS, "", "give both, --tls-cert and --tls-key",
			"a client certificate needs its key, and a key its certificate"))
	case t.CertFile != "":
		cert, err1 := read(t.CertFile)
		key, err2 := read(t.KeyFile)
		if err := errors.Join(err1, err2); err != nil {
			errs = append(errs, fmt.Errorf("read client certificate and key: %w", err))
			break
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			errs = append(errs, Errorf(ClassTLS, "", "the key must be the certificate's, in PEM form and not encrypted",
				"load client certificate %s with key %s: %w", t.CertFile, t.KeyFile, err))
		}
		c.certificates = []tls.Certificate{pair}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.loaded = &c
	return nil
}

// Config returns the settings as a tls.Config for a broker on host, with TLS 1.2 as the lowest version. Without an
// earlier [TLS.Load] it reads the files; an error names the file that could not be used.
func (t TLS) Config(host string) (*tls.Config, error) {
	if t.loaded == nil {
		if err := t.Load(os.ReadFile); err != nil {
			return nil, err
		}
	}
	cfg := &tls.Config{
		ServerName:         host,
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asked for it by name
		RootCAs:            t.loaded.authorities,
		Certificates:       t.loaded.certificates,
	}
	if t.ServerName != "" {
		cfg.ServerName = t.ServerName
	}
	return cfg, nil
}
