package drivertest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Config describes the driver to test and the broker. Factory is required, everything else has a default.
type Config struct {
	Factory driver.Factory
	// URL of the broker; the factory's DefaultURL if empty.
	URL            string
	User, Password string
	TLS            driver.TLS
	// Options are the driver's own settings, as for -o: "key=value".
	Options []string
	// Broker is the name and version of the broker, "Artemis 2.56.0", under which the results go into the table of
	// features, see [FeaturesEnv]. Empty keeps them out of it.
	Broker string

	// NewDestination returns a destination that exists, or that its first use creates, and that has not been used before.
	// By default a random name.
	NewDestination func(t testing.TB, kind driver.Kind) driver.Destination
	// Inspect receives messages by another way than the driver's, such as a client library. It is subscribed when it
	// returns; the function that it returns waits for the next n messages and returns their headers, in any order. Without
	// Inspect, properties are checked through selectors, and a check that has no way to see its setting fails.
	Inspect func(t testing.TB, dest driver.Destination) func(n int) []Header
	// Subscriptions returns the number of subscriptions of a topic at the broker. If nil, no check asks.
	Subscriptions func(t testing.TB, topic driver.Destination) int
	// Inspector returns an inspector that asks the broker for its own counters of destinations of a kind by another way
	// than the driver's, such as over HTTP; nil if the broker has no counters for that kind. If Inspector is nil, the
	// driver asks, if it can.
	Inspector func(kind driver.Kind) driver.Inspector
	// Refusing returns a destination where the broker refuses some of 200 messages of 1 KiB, and some commits of 10 of
	// them, such as one that gets full. If nil, refusals are not tested.
	Refusing func(t testing.TB, kind driver.Kind) driver.Destination
	// Rejected returns the number of messages that the broker has dropped, or has put elsewhere, because consumers
	// rejected them: a total that only grows. If nil, the suite tests only that rejected messages do not come again.
	Rejected func(t testing.TB) int64

	// AtMostOnce: Options ask for sends that the broker does not confirm. Such a send is accepted when it was handed to
	// the operating system, so that sends on a broken connection may be accepted, too.
	AtMostOnce bool
	// SettledReceive: Options ask for messages that the broker sends settled. Messages that it sent ahead to a consumer
	// are lost when the consumer closes, and credit does not count the message being delivered: the tests of settling,
	// verdicts and credit are left out.
	SettledReceive bool
	// Lacks are the features that the driver has and this broker lacks, each with the reason: TTL of all destinations, or
	// TTL.On(driver.Topic).
	Lacks map[Feature]string
	// Unordered is the reason why messages of one producer may reach a consumer in another order. Empty means that they
	// must not.
	Unordered string
	// Ungrouped is the reason why messages of one group may go to several consumers; empty means that they must not.
	Ungrouped string
	// Printable is the reason why properties have no control characters; empty means that they may have them.
	Printable string
	// Unshared is the reason why producers and consumers with the same [driver.Connection.Key] do not share a connection.
	Unshared string
	// Selector returns a filter for the messages with property key equal to value; by default key = 'value'.
	Selector func(key, value string) string
	// MaxBody is the largest body to send, in bytes; 10 MiB by default.
	MaxBody int
	// MinBody is the smallest body to send, in bytes: 1 for brokers that refuse empty ones.
	MinBody int
	// Log: the broker keeps a queue as a log with one offset per filter. It passes over messages that a filter excludes,
	// and a consumer with another filter sees the whole log.
	Log bool
	// Allocations is how often the driver may allocate memory per message that is sent and received; 0 by default, which
	// is right for a data path of our own. Allocations of the whole process count: a broker in the process makes the
	// figure worthless.
	Allocations float64

	// Mode is set for further modes of a driver that passes the whole suite on the same broker. Checks that take seconds
	// and do not depend on a mode, such as those with a silent broker, are left out.
	Mode bool
	// Sending is set for a mode that changes only how messages are sent: the checks of consumers are left out.
	Sending bool
	// Alone has all checks made one after the other: the functions above count, or change, what belongs to the whole
	// broker. Otherwise they are called by several checks at once.
	Alone bool
	// Timeout bounds each wait for something that must happen; 90 s by default: only a hang, or a busy
	// machine, takes that long.
	Timeout time.Duration
	// Quiet is the time to watch for something that must not happen; 300 ms by default.
	Quiet time.Duration
	// TTL is the time to live in the test of expiry: longer than the send takes, shorter than Timeout; 200 ms by default.
	TTL time.Duration

	// WrongPassword is a password that the broker refuses for User. If empty, refusal is not tested: the broker asks for
	// none.
	WrongPassword string
	// Path returns a way to the broker that the suite can freeze and cut; by default a TCP proxy before the first host
	// of URL. It is called once per check.
	Path func(t testing.TB) Path
	// IgnoreGoroutines are goroutines of the functions above that outlive a check: no leaks of the driver.
	IgnoreGoroutines []goleak.Option

	has  optional // set by Run
	ends *ends    // likewise
}

// Path is a way to the broker that can be broken. Its methods are called from the test's goroutine.
type Path interface {
	// URL is the URL to open.
	URL() string
	// Freeze stops all traffic in both directions; connections stay up, but nothing is read.
	Freeze()
	// Cut ends all connections, and refuses new ones.
	Cut()
	// Restore lets new connections through again, after Cut.
	Restore()
	// Received returns the number of bytes that came from the broker.
	Received() int64
	// Connections returns the number of connections that clients have opened since the path was made.
	Connections() int64
}

// Header holds the parts of a message beside its body, as [Config.Inspect] sees them.
type Header struct {
	// Properties are the user's properties; there may be others.
	Properties map[string]string
	Priority   int
	Persistent bool
	Group      string
	Text       bool // the body is text
	// TTL is the remaining or the set time to live, or the time until expiry; 0 if the message does not expire.
	TTL time.Duration
}

func (c Config) withDefaults() Config {
	c.URL = cmp.Or(c.URL, c.Factory.DefaultURL)
	c.Timeout, c.Quiet = cmp.Or(c.Timeout, 90*time.Second), cmp.Or(c.Quiet, 300*time.Millisecond)
	c.TTL, c.MaxBody = cmp.Or(c.TTL, 200*time.Millisecond), cmp.Or(c.MaxBody, 10<<20)
	if c.Selector == nil {
		c.Selector = func(key, value string) string {
			return key + " = '" + strings.ReplaceAll(value, "'", "''") + "'"
		}
	}
	if c.NewDestination == nil {
		c.NewDestination = func(_ testing.TB, kind driver.Kind) driver.Destination {
			return driver.Destination{Kind: kind, Name: unique("perfmq-test-" + kind.String())}
		}
	}
	if c.Path == nil {
		c.Path = func(t testing.TB) Path { return newProxy(t, c.URL) }
	}
	return c
}

// grace is the time that a call may take beyond the end of its context. It is less than the default of Timeout, so that
// a driver fails that ends its waits only after ConnectTimeout.
const grace = 60 * time.Second

// check reports a mistake in the settings, in one sentence.
func (c *Config) check() error {
	if len(c.kinds()) == 0 {
		return fmt.Errorf("drivertest: there is nothing to test: %s has neither queues nor topics, by Capabilities and "+
			"Config.Lacks", c.Factory.Title)
	}
	known := map[Feature]bool{}
	for _, f := range Features() {
		known[f], known[f.On(driver.Queue)], known[f.On(driver.Topic)] = true, true, true
	}
	for f, reason := range c.Lacks {
		if !known[f] || reason == "" {
			return fmt.Errorf("drivertest: Config.Lacks has %q for %q: want a reason for one of Features", reason, f)
		}
	}
	return nil
}

func unique(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:12])
}
