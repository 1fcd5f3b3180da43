package config

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// usedBroker is a broker with what its URL says of the groups that use it.
type usedBroker struct {
	*plan.Broker
	driver   *driver.Factory
	failover *failover // nil for URLs of other kinds
}

// makeBroker makes a broker of its settings, for a protocol. Its options are not set yet.
func (r *resolver) makeBroker(flag string, f driver.Factory, b plan.Broker) usedBroker {
	if r.Plan.Embedded && r.Source("url") < r.Source("embedded") {
		b.URL = "" // a flag wins over the variable, and both over a file
	}
	if asked := b.Protocol; asked != "" && !strings.EqualFold(asked, f.Name) {
		r.refuse(r.useProtocol(asked), "--protocol %s does not agree with the command perfmq %s", asked, f.Name)
	}
	f = r.chooseClient(f, b.URL)
	b.Password = r.readPassword(&b)
	r.loadTLS(&b.TLS)
	return r.resolveURL(flag, f, &b)
}

// resolveURL sets the protocol, the client, the URL and its hosts.
func (r *resolver) resolveURL(flag string, f driver.Factory, b *plan.Broker) usedBroker {
	f = r.clientOfURL(f, scheme(b.URL))
	b.Protocol, b.Client = f.Name, cmp.Or(f.Client, driver.Native)
	of := usedBroker{Broker: b, driver: &f}
	of.failover = r.readFailover(flag, &b.URL)
	b.URL = r.brokerURL(flag, b.URL, &f)
	if of.failover != nil && f.Hosts == nil {
		r.refuse("write "+f.Schemes[0]+"://HOST:PORT,HOST:PORT", "%s has no failover URLs", Quoted(f.Name))
	}
	if b.User == "" && b.Password != "" {
		b.User = plan.User(b.URL) // drivers take user and password from one source
	}
	if b.Hosts = nil; f.Hosts != nil {
		b.Hosts = f.Hosts(b.URL)
	}
	if r.useEmbedded(&f, b); f.Open == nil {
		r.Elsewhere = f.Program
	}
	return of
}

// makeConsumerBroker returns the broker of the consumers of a client.
func (r *resolver) makeConsumerBroker(own usedBroker, of *driver.Factory) usedBroker {
	f := *of
	switch {
	case r.ConsumerProtocol != "":
		other := byName(r.Factories, r.ConsumerProtocol)
		if other == nil {
			r.refuseWord("--consumer-protocol", r.ConsumerProtocol, Names(r.Factories))
			return own
		}
		f = *other
	case r.ConsumerURL != "" && !slices.Contains(f.Schemes, scheme(r.ConsumerURL)):
		if other := byScheme(r.Factories, scheme(r.ConsumerURL)); other != nil {
			f = *other
		}
	}
	address := r.ConsumerURL
	if r.Plan.Embedded && r.Source("consumer-url") < r.Source("embedded") {
		address = ""
	}
	if f.Name == of.Name && (address == "" || address == r.Broker.URL) {
		return own
	}
	b := *own.Broker
	b.URL, b.User = address, r.Broker.User
	if plan.HasUser(address) {
		b.User, b.Password = "", ""
	}
	if address != "" && hosts(address) != hosts(own.URL) {
		b.Management = "" // belongs to the other broker
	}
	if f.Name != of.Name {
		f = r.chooseClient(f, address)
	} else {
		f = *own.driver
	}
	return r.resolveURL("--consumer-url", f, &b)
}

// chooseClient returns the factory of the client that the user chose for the protocol of f.
func (r *resolver) chooseClient(f driver.Factory, address string) driver.Factory {
	client := r.Broker.Client
	if client == driver.Native || client == f.Client || client == LibraryClient && !isNative(&f) {
		return f // native is the default, also where there is only a library
	}
	clients := r.Clients(&f)
	var names []string
	for _, c := range clients {
		names = append(names, cmp.Or(c.Client, driver.Native))
	}
	of := func(c *driver.Factory) bool { return c.Client == client }
	if client == LibraryClient { // the first one that knows the URL, else the first one
		of = func(c *driver.Factory) bool { return slices.Contains(c.Schemes, scheme(address)) }
		clients = slices.DeleteFunc(clients[1:], func(c driver.Factory) bool { return c.ByScheme })
		if len(clients) > 0 && first(clients, of) == nil {
			return clients[0]
		}
	}
	if chosen := first(clients, of); chosen != nil {
		return *chosen
	}
	r.refuseWord("--client", client, names)
	return f
}

// clientOfURL returns our client of the protocol for URLs of a scheme: RocketMQ's proxy has its own.
func (r *resolver) clientOfURL(f driver.Factory, scheme string) driver.Factory {
	usual := byName(r.Factories, f.Name)
	if usual == nil || r.Broker.Client != driver.Native || !slices.Contains(usual.Schemes, scheme) {
		return f
	}
	if own := first(r.Libraries, func(l *driver.Factory) bool {
		return l.ByScheme && l.Name == f.Name && slices.Contains(l.Schemes, scheme)
	}); own != nil {
		return *own
	}
	return *usual
}

// brokerURL returns the URL for a protocol: the protocol's default if none was given, or after a mistake in it.
func (r *resolver) brokerURL(flag, url string, f *driver.Factory) string {
	shown := Quoted(plan.RedactURL(url))
	switch s := scheme(url); {
	case url == "":
		return f.DefaultURL
	case slices.Contains(f.Schemes, s):
		return url
	case s == "":
		r.refuse("write "+f.Schemes[0]+"://"+plan.RedactURL(url), "%s %s has no scheme", flag, shown)
	default:
		hint := f.Name + " URLs begin with " + strings.Join(schemes(*f), ", ")
		if other := byScheme(r.Factories, s); other != nil && flag == "--url" {
			hint = r.useProtocol(other.Name)
			if r.inFile {
				hint = "the broker has protocol: " + f.Name + "; change one of them"
			}
		}
		r.refuse(hint, "%s %s: %s is no scheme of %s", flag, shown, s, f.Name)
	}
	return f.DefaultURL
}

func (r *resolver) useProtocol(name string) string {
	if f := byName(r.Factories, name); f != nil {
		return "use perfmq " + f.Name + " " + string(r.role)
	}
	return "perfmq speaks " + strings.Join(Names(r.Factories), ", ")
}

// The bounds of files, in bytes.
const (
	MaxPassword    = 4 << 10
	maxCredentials = 16 << 20 // the CA certificates of a system take less than 1 MiB
)

// readPassword returns the password, perhaps from its file. A flag takes precedence over the environment.
func (r *resolver) readPassword(b *plan.Broker) string {
	file := r.Source("password-file")
	switch direct := r.Source("password"); {
	case b.PasswordFile == "", direct > file:
		return b.Password
	case direct == file && r.Has("password"):
		r.refuseBoth("password", "password-file")
		return b.Password
	}
	return r.readSecret("--password-file", b.PasswordFile, b.User, "the password")
}

// readSecret returns the secret of a user: the first line of a flag's file.
func (r *resolver) readSecret(flag, file, user, what string) string {
	line, err := inputfile.FirstLine(file, MaxPassword)
	if err != nil {
		r.refuseFile(flag, err)
		return ""
	}
	r.Secrets.Add(user, line)
	if err = CheckCredential(line); line == "" {
		err = errEmpty
	}
	if err != nil {
		r.refuse("", "%s %s: %s %v", flag, file, what, err)
	}
	return line
}

// loadCA returns the TLS of a server beside the broker, with the authorities in a flag's file.
func (r *resolver) loadCA(flag, file string) driver.TLS {
	t := driver.TLS{CAFile: file}
	r.refuseFile(flag, t.Load(func(path string) ([]byte, error) { return inputfile.Read(path, maxCredentials) }))
	return t
}

// loadTLS reads the files of the --tls flags, once for all connections.
func (r *resolver) loadTLS(t *driver.TLS) {
	if *t == (driver.TLS{}) {
		return
	}
	unread := false
	err := t.Load(func(path string) ([]byte, error) {
		text, err := inputfile.Read(path, maxCredentials)
		if err != nil {
			unread = true
			r.refuseFile(map[string]string{t.CAFile: "--tls-ca", t.CertFile: "--tls-cert", t.KeyFile: "--tls-key"}[path], err)
		}
		return text, err
	})
	if err == nil {
		return
	}
	if !unread {
		r.refuseFile("--tls", err)
	}
	t.CAFile, t.CertFile, t.KeyFile = "", "", "" // avoids reading and reporting them again
}

// setOptions sets the options of brokers. With two protocols a key belongs to each protocol that knows it.
func (r *resolver) setOptions(brokers []usedBroker) {
	given := r.Broker.Assigned
	var all []string
	for i, b := range brokers {
		if i > 0 && b.Broker == brokers[0].Broker {
			continue
		}
		b.Options, b.Assigned = NewOptions(b.driver), nil
		known := driver.Describe(b.Options)
		for _, o := range known {
			all = append(all, o.Name)
		}
		for _, assignment := range given {
			key, text, _ := strings.Cut(assignment, "=")
			i := slices.IndexFunc(known, func(o driver.Option) bool { return o.Name == key })
			if i < 0 {
				continue
			}
			assignment = key + "=" + plainValue(known[i].Value, text)
			b.Assigned = append(b.Assigned, assignment)
			err := driver.SetOptions(b.Options, []string{assignment})
			if err != nil && !slices.ContainsFunc(r.errs, func(e error) bool { return e.Error() == "-o: "+err.Error() }) {
				r.refuse("", "-o: %v", err)
			}
		}
	}
	for _, assignment := range given {
		if key, _, _ := strings.Cut(assignment, "="); !slices.Contains(all, key) {
			hint := "leave it out, or use --client native"
			if len(all) > 0 {
				hint = missing(key, slices.Compact(all))
			}
			r.refuse(hint, "--option %s: there is no such option", key)
		}
	}
}

// embeddedHost stands for the broker in this process in URLs until its port is known.
const embeddedHost = "embedded"

// useEmbedded connects a broker to the broker in this process, with --embedded.
func (r *resolver) useEmbedded(f *driver.Factory, b *plan.Broker) {
	if !r.Plan.Embedded {
		return
	}
	for _, flag := range []string{"url", "consumer-url", "management-url"} {
		if r.Has(flag) && (r.Source(flag) >= r.Source("embedded") || flag == "management-url") {
			r.refuseBoth("embedded", flag)
		}
	}
	if !CanEmbed(f) {
		r.refuse("", "the embedded broker does not speak %s", f.Name)
		return
	}
	b.URL, b.Hosts = f.Schemes[0]+"://"+embeddedHost, nil
}

// checkEmbedded refuses messages that the broker in this process does not take, or does not deliver.
func (r *resolver) checkEmbedded(g *plan.Group) {
	if !r.Plan.Embedded || !g.Role.Produces() {
		return
	}
	protocol := g.ProducerBroker.Protocol
	if most := broker.LargestBody(protocol); g.LargestBody() > most {
		r.refuse("send smaller messages, or give a --url", "--embedded takes bodies of at most %s over %s",
			quantity.FormatBytes(int64(most)), protocol)
	}
	apart := g.Role.Consumes() && protocol != g.ConsumerBroker.Protocol &&
		(protocol == broker.RocketMQ || g.ConsumerBroker.Protocol == broker.RocketMQ)
	if apart && slices.ContainsFunc(g.Destinations, func(d driver.Destination) bool { return d.Kind == driver.Queue }) {
		r.refuse("use topic://NAME", "with --embedded, the queues of RocketMQ are apart from those of other protocols")
	}
}

// hosts returns the hosts of a URL without their ports.
func hosts(address string) string {
	_, rest, ok := strings.Cut(hostsURL(address), "://")
	if !ok {
		return ""
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "/")
	rest, _, _ = strings.Cut(rest, "?")
	var list []string
	for host := range strings.SplitSeq(rest, ",") {
		if u, err := url.Parse("x://" + host); err == nil {
			host = u.Hostname()
		}
		list = append(list, host)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// LibraryClient is the value of --client for the client library of a protocol.
const LibraryClient = "library"

// ByClient splits a list of factories into the usual drivers of the protocols and those on client libraries beside
// them. The first driver of a protocol is the usual one: the native driver, unless the protocol has only libraries.
func ByClient(list []driver.Factory) (usual, libraries []driver.Factory) {
	for _, f := range list {
		if byName(usual, f.Name) != nil {
			libraries = append(libraries, f)
		} else {
			usual = append(usual, f)
		}
	}
	return usual, libraries
}

// Driver returns the driver of a broker. For hints, a client library's driver knows the features of the native one.
func (m *Maker) Driver(b *plan.Broker) *driver.Factory {
	usual := byName(m.Factories, b.Protocol)
	for _, l := range m.Libraries {
		if l.Name == b.Protocol && l.Client == b.Client && b.Client != usual.Client {
			if isNative(usual) {
				l.Native = &usual.Capabilities
			}
			return &l
		}
	}
	return usual
}

// isNative reports whether a factory is of our own data path.
func isNative(f *driver.Factory) bool { return f.Client == "" || f.Client == driver.Native }

// CanEmbed reports whether the broker in the binary speaks the protocol.
func CanEmbed(f *driver.Factory) bool { return slices.Contains(broker.Protocols(), f.Name) }

// Clients returns the drivers of the protocol of f, its usual one: f, and those on client libraries.
func (m *Maker) Clients(f *driver.Factory) []driver.Factory {
	return append([]driver.Factory{*f}, slices.DeleteFunc(slices.Clone(m.Libraries), func(l driver.Factory) bool {
		return l.Name != f.Name
	})...)
}

// schemes returns the beginnings of the URLs of protocols, such as amqp://.
func schemes(factories ...driver.Factory) (list []string) {
	for _, f := range factories {
		for _, s := range f.Schemes {
			list = append(list, s+"://")
		}
	}
	return list
}

// Names returns the names of protocols.
func Names(factories []driver.Factory) []string {
	names := make([]string, len(factories))
	for i, f := range factories {
		names[i] = f.Name
	}
	return names
}

// NewOptions returns the options of a protocol at their defaults, or nil.
func NewOptions(f *driver.Factory) any {
	if f.NewOptions == nil {
		return nil
	}
	return f.NewOptions()
}

// byScheme returns the first protocol with that scheme, or nil.
func byScheme(list []driver.Factory, scheme string) *driver.Factory {
	return first(list, func(f *driver.Factory) bool { return slices.Contains(f.Schemes, scheme) })
}

// byName returns the protocol of a name, in whatever case, or nil.
func byName(list []driver.Factory, name string) *driver.Factory {
	return first(list, func(f *driver.Factory) bool { return strings.EqualFold(f.Name, name) })
}

// first returns the first element that is meant, or nil.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// plainValue rewrites the value of an option that is a number, size or time as people write it, such as 64KiB or 1k, to
// the form that [driver.SetOptions] reads. Any other text is returned as it is, and judged there.
func plainValue(value any, text string) string {
	switch value.(type) {
	case int:
		if n, err := quantity.Bytes(text, math.MaxInt64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case time.Duration:
		if d, err := quantity.Duration(text, 0); err == nil {
			return d.String()
		}
	}
	return text
}
