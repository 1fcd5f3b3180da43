package stomp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// The usual ports of STOMP, plain (as IANA assigned it) and over TLS (by convention of the brokers).
const (
	plainPort = "61613"
	tlsPort   = "61614"
)

// encrypted says which schemes there are and which of them use TLS.
func encrypted(scheme string) (tls, known bool) {
	switch scheme {
	case "stomp", "tcp":
		return false, true
	case "stomp+ssl", "stomps", "ssl":
		return true, true
	default:
		return false, false
	}
}

// endpoint is one host of a URL.
type endpoint struct {
	host string // name or address, without brackets
	port string
}

// String returns host:port, with brackets around an IPv6 address.
func (e endpoint) String() string { return net.JoinHostPort(e.host, e.port) }

// target is a parsed URL.
type target struct {
	tls            bool
	hosts          []endpoint // at least one
	user, password string
}

// parseURL reads scheme://[user[:password]@]host[:port][,host[:port]]... It does not use net/url for the whole because
// that refuses lists of hosts. Its errors never show the password.
func parseURL(raw string) (target, error) {
	const op = "read the URL"
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok {
		return target{}, driver.Errorf(driver.ClassOther, op, "write it as stomp://HOST:PORT", "no scheme")
	}
	useTLS, known := encrypted(strings.ToLower(scheme))
	if !known {
		return target{}, driver.Errorf(driver.ClassOther, op, "use one of "+strings.Join(schemes(), ", "),
			"unknown scheme %q", scheme)
	}
	t := target{tls: useTLS}
	// The last @ ends the user part: unescaped ones in passwords are common, and hosts cannot hold any.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.setUser(rest[:at]); err != nil {
			return target{}, driver.Errorf(driver.ClassOther, op,
				"write special characters of user and password as %XX, or give them by --user and --password", "%w", err)
		}
		rest = rest[at+1:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		return target{}, driver.Errorf(driver.ClassOther, op,
			"settings of the driver are given by -o NAME=VALUE; settings of Artemis's CORE client such as "+
				"confirmationWindowSize are not needed for STOMP", "parameters (%s) are not understood", rest[i:])
	}
	rest, path, _ := strings.Cut(rest, "/")
	if path != "" {
		return target{}, driver.Errorf(driver.ClassOther, op, "a virtual host is given by -o virtual-host=NAME",
			"a path (/%s) is not understood", path)
	}
	var errs []error
	for text := range strings.SplitSeq(rest, ",") {
		e, err := parseEndpoint(strings.TrimSpace(text), useTLS)
		if err != nil {
			errs = append(errs, driver.Errorf(driver.ClassOther, op, "", "%w", err))
		}
		t.hosts = append(t.hosts, e)
	}
	if len(errs) > 0 {
		return target{}, errors.Join(errs...)
	}
	return t, nil
}

func (t *target) setUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var err1, err2 error
	t.user, err1 = url.PathUnescape(user)
	t.password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("user or password is not percent-encoded correctly")
	}
	return nil
}

func parseEndpoint(text string, useTLS bool) (endpoint, error) {
	e := endpoint{host: text, port: plainPort}
	if useTLS {
		e.port = tlsPort
	}
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return e, fmt.Errorf("host %q: no closing bracket", text)
		}
		host, after := text[1:end], text[end+1:]
		address, _, _ := strings.Cut(host, "%") // the zone
		if ip := net.ParseIP(address); ip == nil || !strings.Contains(address, ":") {
			return e, fmt.Errorf("host %q: want an IPv6 address between the brackets", text)
		}
		e.host = host
		if after == "" {
			return e, nil
		}
		if after[0] != ':' {
			return e, fmt.Errorf("host %q: want a colon and a port after the bracket", text)
		}
		return e, e.setPort(after[1:])
	}
	switch strings.Count(text, ":") {
	case 0:
	case 1:
		var port string
		e.host, port, _ = strings.Cut(text, ":")
		if err := e.setPort(port); err != nil {
			return e, err
		}
	default:
		return e, fmt.Errorf("host %q: write an IPv6 address in brackets, as in [::1]:%s", text, plainPort)
	}
	if e.host == "" {
		return e, fmt.Errorf("host %q: the host's name is missing", text)
	}
	if strings.ContainsAny(e.host, " \t\r\n()[]{}<>\\\"'`^|%\x00") {
		return e, fmt.Errorf("host %q: not a host name", e.host)
	}
	return e, nil
}

func (e *endpoint) setPort(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("host %q: port %q is not a number from 1 to 65535", e.host, text)
	}
	e.port = strconv.FormatUint(n, 10)
	return nil
}
