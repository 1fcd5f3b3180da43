//go:build unix

package brokertest

import (
	"fmt"
	"net/url"
	"strings"
)

// ArtemisOption changes how an Artemis broker is configured. Without any it is
// as `artemis create --allow-anonymous` makes it: every login is let in, user
// admin with password admin, the management on, a heap of 512M.
type ArtemisOption func(*artemisConfig)

// artemisConfig is the sum of the options.
type artemisConfig struct {
	heap        string
	wanted      artemisPorts // 0: a free one
	management  bool
	login       bool // anonymous and unknown users are refused
	tls         bool
	clientCerts bool
	old         bool     // 2.19
	pairs       string   // with another broker: sharedStore or replication; empty alone
	backupOf    *Artemis // the primary of the store that it waits for; nil for a primary
}

// FullPolicy is Artemis's treatment of a message for a full address.
type FullPolicy string

// The policies: fail rejects the message, block withholds credit from senders,
// drop loses it silently, page writes it to disk (the default of a broker).
const (
	PolicyFail  FullPolicy = "FAIL"
	PolicyBlock FullPolicy = "BLOCK"
	PolicyDrop  FullPolicy = "DROP"
	PolicyPage  FullPolicy = "PAGE"
)

// AddressLimit bounds the messages of addresses. Each address has the limit for itself.
type AddressLimit struct {
	Match       string     // Artemis's wildcard syntax: "full.#" is every address below full.
	MaxBytes    int64      // in memory, with the broker's overhead per message; 0 or -1 is no limit
	MaxMessages int64      // 0 or -1 is no limit
	Policy      FullPolicy // treatment of messages above it
}

// WithHeap sets the broker's heap, in Java's notation: "512M" by default, "2G".
func WithHeap(size string) ArtemisOption {
	return func(c *artemisConfig) { c.heap = size }
}

// WithDefaultPorts takes the ports that Artemis has by default (5672, 61613, 61616, 8161) where they are free.
func WithDefaultPorts() ArtemisOption {
	return func(c *artemisConfig) {
		c.wanted = artemisPorts{
			amqp: defaultAMQPPort, stomp: defaultSTOMPPort, core: defaultCorePort, web: defaultWebPort,
		}
	}
}

// WithArtemis219 starts Artemis 2.19 without its management, which is of another kind.
func WithArtemis219() ArtemisOption {
	return func(c *artemisConfig) { c.old, c.management = true, false }
}

func (c *artemisConfig) coordinates() string {
	if c.old {
		return artemis219Coordinates
	}
	return ArtemisCoordinates
}

// WithoutManagement leaves the web server with the management away: the broker
// is ready 0.8 s sooner and 30 MB smaller, and methods that read or change
// queues fail.
func WithoutManagement() ArtemisOption {
	return func(c *artemisConfig) { c.management = false }
}

// WithLogin refuses anonymous and unknown users and wrong passwords. Users are
// admin (password admin, may do everything), user (password user-secret, may do everything
// but manage) and nobody (password nobody, may log in and nothing else).
func WithLogin() ArtemisOption {
	return func(c *artemisConfig) { c.login = true }
}

// WithTLS adds a TLS acceptor for AMQP, STOMP and CORE, with certificates made
// for this broker; see [Artemis.Certs]. The others stay plain.
func WithTLS() ArtemisOption {
	return func(c *artemisConfig) { c.tls = true }
}

// WithTLSClientCerts is WithTLS that also demands a certificate of the client.
// The one in [Artemis.Certs] then logs in as admin over SASL EXTERNAL.
func WithTLSClientCerts() ArtemisOption {
	return func(c *artemisConfig) { c.tls, c.clientCerts = true, true }
}

// pageBytes is a page size that Artemis accepts with the limit: it wants pages
// smaller than the limit, whether or not the policy is to page.
func (l AddressLimit) pageBytes() int64 {
	const usual = 10 << 20
	if l.MaxBytes <= 0 {
		return usual
	}
	return min(usual, max(1, l.MaxBytes/2))
}

// noLimit turns Go's zero value into Artemis's "no limit".
func noLimit(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// acceptor is one listener in broker.xml.
type acceptor struct {
	Name string
	URL  string
}

// acceptors returns the listeners as `artemis create` configures them, but for the time of a handshake: on a busy
// machine the default of ten seconds ends connections.
func (c *artemisConfig) acceptors(ports artemisPorts, certs *Certs) []acceptor {
	const (
		common = "tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576;useEpoll=true;handshake-timeout=60"
		amqp   = "amqpCredits=1000;amqpLowCredits=300;amqpMinLargeMessageSize=102400;amqpDuplicateDetection=true"
	)
	make := func(name string, port int, params ...string) acceptor {
		return acceptor{name, fmt.Sprintf("tcp://%s:%d?%s", loopback, port, strings.Join(params, ";"))}
	}
	list := []acceptor{
		make("artemis", ports.core, common, amqp, "protocols=CORE,AMQP,STOMP,HORNETQ,MQTT,OPENWIRE;"+
			"supportAdvisory=false;suppressInternalManagementObjects=false"),
		make("amqp", ports.amqp, common, amqp, "protocols=AMQP"),
		make("stomp", ports.stomp, common, "protocols=STOMP"),
	}
	if c.tls {
		// PEM needs no password and no keytool; PEMCA is Artemis's name for a file of CA certificates.
		ssl := fmt.Sprintf("sslEnabled=true;sslHandshakeTimeout=60;"+
			"keyStoreType=PEM;keyStorePath=%s;trustStoreType=PEMCA;trustStorePath=%s;"+
			"needClientAuth=%t;saslMechanisms=EXTERNAL,PLAIN,ANONYMOUS",
			url.PathEscape(certs.serverStore), url.PathEscape(certs.CAFile), c.clientCerts)
		list = append(list, make("tls", ports.tls, common, amqp, "protocols=CORE,AMQP,STOMP", ssl))
	}
	return list
}
