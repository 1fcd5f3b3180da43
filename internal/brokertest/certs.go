//go:build unix

package brokertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certs are the files of a throw-away certificate authority, all PEM, valid from
// an hour ago for a day. Server certificates are for 127.0.0.1, ::1 and
// localhost. It does not change once made.
type Certs struct {
	CAFile         string // the authority to trust
	ServerCertFile string
	ServerKeyFile  string
	ClientCertFile string // CN=perfmq-test-client, for brokers that ask for one
	ClientKeyFile  string
	OtherCAFile    string // another authority, which signed none of these: trusting only it must fail

	serverStore string // key and certificate in one file, as Java's PEM store wants them
}

// NewCerts makes an authority and its certificates and writes them into a
// folder, which it creates.
func NewCerts(dir string) (*Certs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder for test certificates: %w", err)
	}
	w := certWriter{dir: dir}
	ca := w.make("ca", "perfmq test CA", nil)
	w.make("other-ca", "another test CA", nil)
	w.make("server", "localhost", ca)
	w.make("client", "perfmq-test-client", ca)
	if w.err != nil {
		return nil, fmt.Errorf("make test certificates: %w", w.err)
	}
	return &Certs{
		CAFile:         w.path("ca.crt"),
		OtherCAFile:    w.path("other-ca.crt"),
		ServerCertFile: w.path("server.crt"),
		ServerKeyFile:  w.path("server.key"),
		ClientCertFile: w.path("client.crt"),
		ClientKeyFile:  w.path("client.key"),
		serverStore:    w.path("server.pem"),
	}, nil
}

// issued is a certificate with its key.
type issued struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certWriter makes certificates and keeps the first error.
type certWriter struct {
	dir    string
	serial int64
	err    error
}

func (w *certWriter) path(name string) string { return filepath.Join(w.dir, name) }

// make writes name.crt, name.key and, of both, name.pem. Without an issuer it is
// an authority.
func (w *certWriter) make(name, commonName string, issuer *issued) *issued {
	if w.err != nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.err = err
		return nil
	}
	w.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(w.serial),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	if issuer == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage = x509.KeyUsageCertSign
		issuer = &issued{template, key}
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		template.DNSNames = []string{"localhost"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.cert, &key.PublicKey, issuer.key)
	if err != nil {
		w.err = err
		return nil
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.err = err
		return nil
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	w.write(name+".crt", certPEM)
	w.write(name+".key", keyPEM)
	w.write(name+".pem", append(keyPEM, certPEM...))
	return &issued{template, key}
}

func (w *certWriter) write(name string, text []byte) {
	if w.err == nil {
		w.err = os.WriteFile(w.path(name), text, 0o600)
	}
}
