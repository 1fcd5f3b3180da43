package rocketmq

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// defaultPort is the port of a name server by default.
const defaultPort = "9876"

// target is a parsed URL.
type target struct {
	tls            bool
	hosts          []string // host:port of the name servers, at least one
	user, password string
}

// parseURL reads rocketmq://[access-key[:secret-key]@]host[:port][,host[:port]]... Lists may also be separated by
// semicolons, as RocketMQ's own tools do. Its errors never show the secret.
func parseURL(raw string) (target, error) {
	const op = "read the URL"
	fail := func(hint, format string, args ...any) (target, error) {
		return target{}, driver.Errorf(driver.ClassOther, op, hint, format, args...)
	}
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok {
		return fail("write it as rocketmq://HOST:PORT of the name server", "no scheme")
	}
	var t target
	switch strings.ToLower(scheme) {
	case schemePlain:
	case schemeTLS:
		t.tls = true
	default:
		return fail("use "+schemePlain+" or "+schemeTLS, "unknown scheme %q", scheme)
	}
	// The last @ ends the user part: unescaped ones in secrets are common, and hosts cannot hold any.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		var err1, err2 error
		t.user, err1 = url.PathUnescape(user)
		t.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return fail("write special characters as %XX, or give the keys by --user and --password",
				"access key or secret key is not percent-encoded correctly")
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return fail("settings of the driver are given by -o NAME=VALUE", "%q after the hosts is not understood", rest[i:])
	}
	var errs []error
	for text := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ',' || r == ';' }) {
		host, err := parseHost(strings.TrimSpace(text))
		if err != nil {
			errs = append(errs, driver.Errorf(driver.ClassOther, op, "", "%w", err))
			continue
		}
		t.hosts = append(t.hosts, host)
	}
	if len(t.hosts)+len(errs) == 0 {
		return fail("write it as rocketmq://HOST:PORT of the name server", "no host")
	}
	if len(errs) > 0 {
		return target{}, errors.Join(errs...)
	}
	return t, nil
}

func parseHost(text string) (string, error) {
	host, port := text, defaultPort
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	} else if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("host %q: must be HOST:PORT, with brackets around an IPv6 address", text)
		}
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n()[]{}<>\\\"'`^|\x00") {
		return "", fmt.Errorf("host %q: not a host name", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("host %q: port %q is not a number from 1 to 65535", text, port)
	}
	return net.JoinHostPort(host, port), nil
}
