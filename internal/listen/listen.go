// Package listen opens the ports of this program: of the embedded broker, its control, and the metrics. All of them
// are on loopback unless an address is written out, and the HTTP servers do not obey web pages.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v4"
	"golang.org/x/crypto/bcrypt"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Check returns the mistake in an address to listen on: HOST:PORT or :PORT. Port 0 takes a free one.
func Check(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("must be HOST:PORT, :PORT (on loopback) or [::]:PORT (on all addresses)")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return nil
}

// Listener is a function like [TCP].
type Listener func(ctx context.Context, what, flag, address string) (net.Listener, error)

// TCP listens on an address. Without a host that is 127.0.0.1: all addresses of the machine are 0.0.0.0 or [::],
// written out. The parameter what names the service, and flag the flag that gave the address, both for the error,
// which is a [*driver.Error].
func TCP(ctx context.Context, what, flag, address string) (net.Listener, error) {
	at := address
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		at = net.JoinHostPort("127.0.0.1", port)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, explain(what, flag, address, err)
	}
	return l, nil
}

func explain(what, flag, address string, err error) error {
	hint := "give " + flag + " HOST:PORT; port 0 takes a free one"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another program listens there: give another port by " + flag + "; port 0 takes a free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL) && IsLoopback(address):
		hint = "there is no loopback interface: ip link set lo up"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "the host of " + flag + " must be an address of this machine"
	case errors.Is(err, syscall.EACCES):
		hint = "give a port above 1023 by " + flag
	case errors.Is(err, syscall.EMFILE):
		hint = "raise the limit of open files: ulimit -n"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return driver.Errorf(driver.ClassConnect, "listen for "+what+" on "+address, hint, "%w", err)
}

// IsLoopback reports whether only this machine can reach an address, HOST:PORT, HOST or :PORT.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

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
