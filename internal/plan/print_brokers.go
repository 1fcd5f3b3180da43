package plan

import (
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

func (pr *printer) brokers() {
	g := pr.group
	pr.section("Broker")
	endpoints := g.Brokers()
	for _, e := range endpoints {
		name := "url"
		if len(endpoints) > 1 {
			name = map[bool]string{true: "of producers", false: "of consumers"}[e == g.ProducerBroker]
		}
		pr.line(name, "%s (%s)", e.Shown(), e.Protocol)
		if e.Management != "" {
			pr.line("management URL", "%s", RedactURL(e.Management))
		}
		pr.line("  client", "%s", e.Client)
		pr.line("  user", "%s", userOf(&e.OpenOptions))
		if t := e.TLS; t != (driver.TLS{}) {
			pr.line("  tls", "%s", describeTLS(t))
		}
	}
	pr.line("connect timeout", "%v", endpoints[0].ConnectTimeout)
	pr.line("client ID prefix", "%s", orNone(g.ClientID))
	switch g.Hosts {
	case Spread:
		pr.line("hosts", "connections are dealt out to them in turn")
	case AtRandom:
		pr.line("hosts", "each connection tries them in a random order")
	}
	if g.Reconnect {
		limit := "until the run is over"
		if g.ReconnectTimeout > 0 {
			limit = "for " + g.ReconnectTimeout.String()
		}
		pr.line("lost connections", "are opened again: tried %s%s", limit, g.Probing().describe())
	}
}

func userOf(o *driver.OpenOptions) string {
	switch {
	case o.User != "" && o.Password != "":
		return o.User + ", with a password"
	case o.User != "":
		return o.User
	case HasUser(o.URL) && o.Password != "":
		return "as in the URL, with a password"
	case HasUser(o.URL):
		return "as in the URL"
	default:
		return "anonymous"
	}
}

func describeTLS(t driver.TLS) string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"authorities", t.CAFile}, {"certificate", t.CertFile}, {"key", t.KeyFile}, {"server name", t.ServerName},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	if t.InsecureSkipVerify {
		parts = append(parts, "INSECURE: the broker's certificate is not verified")
	}
	return strings.Join(parts, ", ")
}
