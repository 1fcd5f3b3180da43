package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v4"
	"golang.org/x/crypto/bcrypt"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Web is a web configuration file of Prometheus's: TLS, client certificates, users with basic authentication
// (https://prometheus.io/docs/prometheus/latest/configuration/https/). The zero value configures nothing.
type Web struct {
	File string
	TLS  bool
}

// maxWeb is the largest size of a web configuration, in bytes.
const maxWeb = 1 << 20

// ReadWeb reads a web configuration file and the files that it names, and finds their mistakes. An empty path is no
// file. The file is read again for each connection and request, so that certificates and users can change.
func ReadWeb(path string) (Web, error) {
	if path == "" {
		return Web{}, nil
	}
	const hint = "it has tls_server_config and basic_auth_users of Prometheus; see docs/prometheus.md"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return Web{}, driver.Errorf(driver.ClassOther, "", "it is read again for each request: name a file",
			"%s is no regular file", path)
	}
	text, err := inputfile.Read(path, maxWeb)
	if err != nil {
		return Web{}, err
	}
	if err := web.Validate(path); err != nil {
		return Web{}, driver.Errorf(driver.ClassOther, "", hint, "%s: %s", path, webMistake(err))
	}
	var parts struct {
		TLS map[string]any `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &parts); err != nil {
		return Web{}, driver.Errorf(driver.ClassOther, "", hint, "%s: %s", path, webMistake(err))
	}
	return Web{File: path, TLS: len(parts.TLS) > 0}, nil
}

// webMistake describes the mistake, without anything that may be a password.
func webMistake(err error) string {
	if errors.Is(err, bcrypt.ErrHashTooShort) || errors.As(err, new(bcrypt.InvalidHashPrefixError)) ||
		errors.As(err, new(bcrypt.HashVersionTooNewError)) || errors.As(err, new(bcrypt.InvalidCostError)) {
		return "a password of basic_auth_users is no bcrypt hash: try htpasswd -nB USER"
	}
	return regexp.MustCompile("`[^`]*`").ReplaceAllString(err.Error(), "a value") // errors of YAML repeat their input
}

// Serve answers requests by h, as [Serve] does, with the TLS and the users of the file.
func (w Web) Serve(l net.Listener, h http.Handler) *HTTP {
	s := newHTTP(l, h)
	flags := &web.FlagConfig{
		WebListenAddresses: &[]string{l.Addr().String()}, WebSystemdSocket: new(bool),
		WebConfigFile: &w.File,
	}
	go func() {
		err := web.Serve(s.listener, s.server, flags, slog.New(slog.DiscardHandler))
		if !errors.Is(err, http.ErrServerClosed) {
			_ = l.Close() // it may not have begun to serve
		}
		s.served <- err
	}()
	return s
}

// URL returns where it is served.
func (w Web) URL(at net.Addr) string {
	if w.TLS {
		return fmt.Sprintf("https://%s", at)
	}
	return fmt.Sprintf("http://%s", at)
}
