// Package transport has the common parts of drivers of protocols over TCP: URLs with several hosts, connecting to one
// host after the other, and TLS with its failures in plain words. It is independent of protocols: their differences are
// in [Protocol].
package transport

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Protocol is the syntax of the URLs of a protocol.
type Protocol struct {
	Title     string   // in hints: "AMQP"
	Schemes   []string // all schemes, the usual plain one first
	Encrypted []string // the schemes with TLS, the usual one first
	PlainPort string   // the default port
	TLSPort   string   // the default port of encrypted schemes
	Absent    string   // hint about a host that does not answer; a general one if empty
	Lists     bool     // hosts may also be separated by semicolons, with an optional one at the end
	// Hello is how a client begins, without a secret, and Answers are the beginnings of a server's answers, of one
	// length. [Protocol.Diagnose] knows them for AMQP, STOMP and RocketMQ; without them it tells no protocols apart.
	Hello   string
	Answers []string
	// NextProtos are what TLS says of the protocol above it (ALPN).
	NextProtos []string
}

// Endpoint is one host of a URL.
type Endpoint struct {
	Host string // name or address, without brackets
	Port string // digits
}

// String returns host:port, with brackets around an IPv6 address.
func (e Endpoint) String() string { return net.JoinHostPort(e.Host, e.Port) }

// Target is a parsed URL.
type Target struct {
	TLS            bool
	Hosts          []Endpoint // at least one
	User, Password string     // unescaped; empty if there are none
}

// Hosts is [driver.Factory.Hosts].
func (p *Protocol) Hosts(raw string) (list []string) {
	t, err := p.Parse(raw)
	if err != nil {
		return nil
	}
	for _, e := range t.Hosts {
		list = append(list, e.String())
	}
	return list
}

// Parse parses scheme://[user[:password]@]host[:port][,host[:port]]... It does not use net/url for the whole, which
// refuses lists of hosts. Its errors never show the password.
func (p *Protocol) Parse(raw string) (Target, error) {
	const op = "read the URL"
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok {
		return Target{}, driver.Errorf(driver.ClassOther, op, "write it as "+p.Schemes[0]+"://HOST:PORT", "no scheme")
	}
	scheme = strings.ToLower(scheme)
	useTLS := slices.Contains(p.Encrypted, scheme)
	if !slices.Contains(p.Schemes, scheme) {
		return Target{}, driver.Errorf(driver.ClassOther, op, "use one of "+strings.Join(p.Schemes, ", "),
			"unknown scheme %q", scheme)
	}
	if slices.ContainsFunc(p.Schemes, func(s string) bool { return strings.Contains(rest, ","+s+"://") }) {
		return Target{}, driver.Errorf(driver.ClassOther, op, "write it once", "a scheme stands before several hosts")
	}
	t := Target{TLS: useTLS}
	// The last @ ends the user part: passwords often contain unescaped ones, and hosts cannot.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.setUser(rest[:at]); err != nil {
			return Target{}, driver.Errorf(driver.ClassOther, op,
				"give them by --user and --password", "%w", err)
		}
		rest = rest[at+1:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		return Target{}, driver.Errorf(driver.ClassOther, op,
			"give settings by -o NAME=VALUE", "parameters (%s) are not understood", rest[i:])
	}
	rest, path, _ := strings.Cut(rest, "/")
	if path != "" {
		return Target{}, driver.Errorf(driver.ClassOther, op, "give -o virtual-host=NAME",
			"a path (/%s) is not understood", path)
	}
	if p.Lists {
		rest = strings.TrimRight(strings.ReplaceAll(rest, ";", ","), ",")
	}
	var errs []error
	for text := range strings.SplitSeq(rest, ",") {
		e, err := p.endpoint(strings.TrimSpace(text), useTLS)
		if err != nil {
			form := fmt.Sprintf("write it as %[1]s://HOST:%[2]s or %[1]s://a:%[2]s,b:%[2]s", scheme, p.port(useTLS))
			errs = append(errs, driver.Errorf(driver.ClassOther, op, form, "%w", err))
		}
		t.Hosts = append(t.Hosts, e)
	}
	if len(errs) > 0 {
		return Target{}, errors.Join(errs...)
	}
	return t, nil
}

// port returns the default port.
func (p *Protocol) port(useTLS bool) string {
	if useTLS {
		return p.TLSPort
	}
	return p.PlainPort
}

func (t *Target) setUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var err1, err2 error
	t.User, err1 = url.PathUnescape(user)
	t.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("user or password is not percent-encoded correctly")
	}
	return nil
}

func (p *Protocol) endpoint(text string, useTLS bool) (Endpoint, error) {
	e := Endpoint{Host: text, Port: p.port(useTLS)}
	var port string
	var hasPort, good bool
	if inner, ok := strings.CutPrefix(text, "["); ok {
		e.Host, port, good = strings.Cut(inner, "]")
		rest := port
		port, hasPort = strings.CutPrefix(rest, ":")
		address, _, _ := strings.Cut(e.Host, "%") // the zone
		good = good && (hasPort || rest == "") && strings.Contains(address, ":") && net.ParseIP(address) != nil
	} else {
		e.Host, port, hasPort = strings.Cut(text, ":")
		good = e.Host != "" && !strings.Contains(port, ":") &&
			!strings.ContainsAny(e.Host, " \t\r\n()[]{}<>\\\"'`^|%\x00")
	}
	if !good {
		return e, fmt.Errorf("host %q: must be a name, or an IPv6 address in brackets", text)
	}
	if !hasPort {
		return e, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return e, fmt.Errorf("host %q: port %q is not a number from 1 to 65535", e.Host, port)
	}
	e.Port = strconv.FormatUint(n, 10)
	return e, nil
}
