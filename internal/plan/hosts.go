package plan

import (
	"net/url"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
)

// HostOrder is the order in which a connection tries the hosts of its URL.
type HostOrder string

// The orders.
const (
	InOrder HostOrder = "order"  // as the URL lists them
	Spread  HostOrder = "spread" // connection i begins with host i mod n, the others follow in rotation
)

// Spreads reports whether connections of the group to a broker of several hosts are not all meant for the same one.
func (g *Group) Spreads(b *Broker) bool { return g.Hosts == Spread && len(b.Hosts) > 1 }

// hostsOf returns the order in which connection number conn of one side of the group tries the hosts of its URL, as
// [driver.Connection.Order] has it; nil is the order of the URL.
func (g *Group) hostsOf(conn int, b *Broker) []int {
	if !g.Spreads(b) {
		return nil
	}
	return Rotation(conn, len(b.Hosts))
}

// Rotation returns the numbers below n, beginning with first mod n.
func Rotation(first, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = (first + i) % n
	}
	return list
}

// Scheme returns the scheme of a broker URL in lower case, or "": "amqp" for amqp://h1:5672,h2:5672. Broker URLs may
// name several hosts, so net/url cannot read them.
func Scheme(brokerURL string) string {
	scheme, _, ok := strings.Cut(brokerURL, "://")
	if !ok || strings.ContainsAny(scheme, "/?@") {
		return ""
	}
	return strings.ToLower(scheme)
}

// splitUserinfo cuts a broker URL into the parts before and after user:password@.
func splitUserinfo(brokerURL string) (before, userinfo, after string, found bool) {
	rest := brokerURL
	if i := strings.Index(brokerURL, "://"); i >= 0 {
		before, rest = brokerURL[:i+len("://")], brokerURL[i+len("://"):]
	}
	authority := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = i
	}
	at := strings.LastIndexByte(rest[:authority], '@')
	if at < 0 && authority < len(rest) {
		// A password with an unescaped "/", "?" or "#" is a mistake, but must not be printed because of it.
		at = strings.LastIndexByte(rest, '@')
	}
	if at < 0 {
		return before, "", rest, false
	}
	return before, rest[:at], rest[at+1:], true
}

// User returns the user that a broker URL names, percent-decoded; "" if it names none.
func User(brokerURL string) string { return login(brokerURL)[0] }

// Password returns the password in a broker URL, percent-decoded, or "".
func Password(brokerURL string) string { return login(brokerURL)[1] }

func login(brokerURL string) (parts [2]string) {
	_, userinfo, _, _ := splitUserinfo(brokerURL)
	parts[0], parts[1], _ = strings.Cut(userinfo, ":")
	for i, part := range parts {
		if decoded, err := url.PathUnescape(part); err == nil {
			parts[i] = decoded
		}
	}
	return parts
}

// HasUser reports whether a broker URL names a user.
func HasUser(brokerURL string) bool {
	_, _, _, found := splitUserinfo(brokerURL)
	return found
}

// RedactURL returns a broker URL without the password that it may hold, fit for printing.
func RedactURL(brokerURL string) string {
	if len(brokerURL) > len("failover:") && strings.EqualFold(brokerURL[:len("failover:")], "failover:") {
		return safetext.URLs(brokerURL)
	}
	before, userinfo, after, found := splitUserinfo(brokerURL)
	if !found {
		return brokerURL
	}
	user, _, _ := strings.Cut(userinfo, ":")
	return before + user + "@" + after
}
