package listen

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"go.yaml.in/yaml/v4"
	"golang.org/x/crypto/bcrypt"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Web is a web configuration file of Prometheus's: TLS, client certificates, users with basic authentication
// (https://prometheus.io/docs/prometheus/latest/configuration/https/). The zero value configures nothing. It is read
// here and not by prometheus/exporter-toolkit, which adds 0.6 MB to the binary, and html/template, whose lookup of
// methods by name adds 2.5 MB more.
type Web struct {
	File string
	TLS  bool
}

// webFile is a web configuration. Its files are relative to its own.
type webFile struct {
	TLS   *webTLS           `yaml:"tls_server_config"`
	Users map[string]string `yaml:"basic_auth_users"` // names to bcrypt hashes
}

type webTLS struct {
	Cert       string `yaml:"cert_file"`
	Key        string `yaml:"key_file"`
	ClientAuth string `yaml:"client_auth_type"`
	ClientCA   string `yaml:"client_ca_file"`
	MinVersion string `yaml:"min_version"`
}

// maxWeb is the largest size of a web configuration, in bytes.
const maxWeb = 1 << 20

// ReadWeb reads a web configuration file and the files that it names, and finds their mistakes. An empty path is no
// file. The file is read again for each connection and request, so that certificates and users can change.
func ReadWeb(path string) (Web, error) {
	if path == "" {
		return Web{}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return Web{}, driver.Errorf(driver.ClassOther, "", "it is read again for each request: name a file",
			"%s is no regular file", path)
	}
	if _, err := inputfile.Read(path, maxWeb); err != nil {
		return Web{}, err
	}
	c, err := readWebFile(path)
	if err == nil {
		_, err = c.TLS.config()
	}
	if err != nil {
		return Web{}, driver.Errorf(driver.ClassOther, "",
			"it has tls_server_config and basic_auth_users of Prometheus; see docs/prometheus.md", "%s: %w", path, err)
	}
	return Web{File: path, TLS: c.TLS != nil}, nil
}

var errNoHash = errors.New("a password of basic_auth_users is no bcrypt hash: try htpasswd -nB USER")

// readWebFile returns the configuration. Its errors have nothing that may be a password.
func readWebFile(path string) (*webFile, error) {
	text, err := inputfile.Read(path, maxWeb)
	if err != nil {
		return nil, err
	}
	var c webFile
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithKnownFields())
	if err == nil {
		err = loader.Load(&c)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		hidden := regexp.MustCompile("`[^`]*`").ReplaceAllString(err.Error(), "a value") // it repeats its input
		return nil, errors.New(hidden)
	}
	for _, hash := range c.Users {
		if _, err := bcrypt.Cost([]byte(hash)); err != nil {
			return nil, errNoHash
		}
	}
	if t := c.TLS; t != nil {
		for _, file := range []*string{&t.Cert, &t.Key, &t.ClientCA} {
			if *file != "" && !filepath.IsAbs(*file) {
				*file = filepath.Join(filepath.Dir(path), *file)
			}
		}
	}
	return &c, nil
}

// config returns the TLS of a server; nil without TLS.
func (t *webTLS) config() (*tls.Config, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // no TLS is no mistake
	}
	if t.Cert == "" || t.Key == "" {
		return nil, errors.New("tls_server_config needs cert_file and key_file")
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	switch t.MinVersion {
	case "", "TLS12":
	case "TLS13":
		c.MinVersion = tls.VersionTLS13
	default:
		return nil, errors.New("min_version must be TLS12 or TLS13")
	}
	if t.ClientCA != "" {
		pem, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("client_ca_file %s has no certificate", t.ClientCA)
		}
	}
	var known bool
	c.ClientAuth, known = map[string]tls.ClientAuthType{
		"": tls.NoClientCert, "NoClientCert": tls.NoClientCert, "RequestClientCert": tls.RequestClientCert,
		"RequireClientCert": tls.RequireAnyClientCert, "RequireAnyClientCert": tls.RequireAnyClientCert,
		"VerifyClientCertIfGiven":    tls.VerifyClientCertIfGiven,
		"RequireAndVerifyClientCert": tls.RequireAndVerifyClientCert,
	}[t.ClientAuth]
	switch {
	case !known:
		return nil, errors.New("client_auth_type must be RequireAndVerifyClientCert, or another of Go's names")
	case t.ClientCA != "" && c.ClientAuth == tls.NoClientCert:
		return nil, errors.New("client_ca_file needs a client_auth_type, such as RequireAndVerifyClientCert")
	}
	return c, nil
}

// Serve answers requests by h, as [Serve] does, with the TLS and the users of the file.
func (w Web) Serve(l net.Listener, h http.Handler) *HTTP {
	if w.File != "" {
		h = &users{file: w.File, next: h}
	}
	s := newHTTP(l, h)
	if !w.TLS {
		go func() { s.served <- s.server.Serve(s.listener) }()
		return s
	}
	s.server.TLSConfig = &tls.Config{ //nolint:gosec // each connection gets that of the file
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := readWebFile(w.File)
			if err != nil {
				return nil, err
			}
			return c.TLS.config()
		},
		// The server asks for one before it serves; clients never see it.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.ErrUnsupported },
	}
	go func() { s.served <- s.server.ServeTLS(s.listener, "", "") }()
	return s
}

// URL returns where it is served.
func (w Web) URL(at net.Addr) string {
	if w.TLS {
		return fmt.Sprintf("https://%s", at)
	}
	return fmt.Sprintf("http://%s", at)
}

// users lets the requests of a file's users through. All requests pass where it has none.
type users struct {
	file string
	next http.Handler

	mu    sync.Mutex                 // one bcrypt at a time: it takes a processor
	known map[[sha256.Size]byte]bool // results of bcrypt by user, hash and password
}

// maxKnown bounds the results that are kept.
const maxKnown = 100

// noUser is a hash for users that do not exist, so that they take as long as others.
const noUser = "$2a$10$xgEc.6zBoOnddqi5290VReDVdqSjzuHvYfnrJ2bCZIxqjJpG/tKBO"

func (u *users) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := readWebFile(u.file)
	switch {
	case err != nil:
		http.Error(w, "the web configuration cannot be read", http.StatusInternalServerError)
	case len(c.Users) == 0 || u.allowed(c, r):
		u.next.ServeHTTP(w, r)
	default:
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
	}
}

func (u *users) allowed(c *webFile, r *http.Request) bool {
	name, password, given := r.BasicAuth()
	if !given {
		return false
	}
	hash, is := c.Users[name]
	if !is {
		hash = noUser
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", name, hash, password))
	u.mu.Lock()
	defer u.mu.Unlock()
	right, known := u.known[key]
	if !known {
		right = bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
		if len(u.known) >= maxKnown || u.known == nil {
			u.known = map[[sha256.Size]byte]bool{}
		}
		u.known[key] = right
	}
	return right && is
}
