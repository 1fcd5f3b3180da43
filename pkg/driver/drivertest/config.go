// Package drivertest is the conformance suite: what every perfmq driver must do, tested on a real broker.
//
// A driver's test is a call of [Run] with the driver's factory and a URL:
//
//	func TestConformance(t *testing.T) {
//		broker := startBroker(t)
//		drivertest.Run(t, drivertest.Config{
//			Factory: stomp.Factory(), URL: broker.URL, User: "admin", Password: "admin",
//		})
//	}
//
// # Model
//
// The suite plays the engine: it owns the slots, checks each call of Done against them, and names every message by its
// time property, so that a message that is lost, doubled or damaged is known by name. Each wait has a deadline and says
// what was missing. Faults of the network are made by a TCP proxy in front of the broker, or by [Config.Path] where the
// protocol does not go through a proxy.
//
// What a protocol cannot do ([driver.Capabilities]), the driver must refuse with ClassUnsupported. What only this broker
// cannot do ([Config.Lacks]) must end in an error or in sends that are not accepted. To ignore a setting in silence is
// never right.
//
// After each sub-test, when everything is closed, no goroutine may be left that was not there before. This looks at all
// goroutines of the process: do not run the suite in parallel with other tests.
package drivertest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Feature names what a broker may lack: the name of the field of [driver.Capabilities].
type Feature string

// The features that [Config.Lacks] may name, but for Queues, which every driver and broker must have.
const (
	Queues              Feature = "Queues"
	Topics              Feature = "Topics"
	DurableSubscription Feature = "DurableSubscription"
	SharedSubscription  Feature = "SharedSubscription"
	Persistent          Feature = "Persistent"
	Credit              Feature = "Credit"
	TTL                 Feature = "TTL"
	Priority            Feature = "Priority"
	Group               Feature = "Group"
	Selector            Feature = "Selector"
	Transactions        Feature = "Transactions"
	TransactedReceive   Feature = "TransactedReceive"
)

// Features returns all features, in the order of their declaration.
func Features() []Feature {
	return []Feature{
		Queues, Topics, DurableSubscription, SharedSubscription, Persistent, Credit, TTL, Priority, Group, Selector,
		Transactions, TransactedReceive,
	}
}

// Config says what to test and on which broker. Factory is required, everything else has a default.
type Config struct {
	Factory driver.Factory
	// URL of the broker; the factory's DefaultURL if empty.
	URL            string
	User, Password string
	TLS            driver.TLS
	// Options are the driver's own settings, as for -o: "key=value".
	Options []string
	// NewDestination returns a destination that exists, or is made by its use, and that nobody has used before. By
	// default a random name.
	NewDestination func(t testing.TB, kind driver.Kind) driver.Destination
	// AtMostOnce says that Options ask for sends that the broker does not confirm: such sends are accepted when handed to
	// the operating system, so that those on a broken connection may be, too.
	AtMostOnce bool
	// SettledReceive says that Options ask for messages that the broker forgets when it sends them. Those that it sent to a
	// consumer ahead are lost when that closes, and credit does not count the one that is being delivered: the tests
	// Unsettled and Credit are left out.
	SettledReceive bool
	// Lacks are the features that the driver has but this broker has not, each with the reason.
	Lacks map[Feature]string
	// Selector is a filter that matches messages with the property color = red and no others; by default "color = 'red'".
	Selector string
	// ClientID is given to the connections of durable subscriptions, with a suffix; "perfmq-test" by default.
	ClientID string
	// PropertyText is a property's value that must not be refused; by default one with all that text protocols have to escape.
	PropertyText string
	// MaxBody is the largest body to send, in bytes; 10 MiB by default.
	MaxBody int
	// MinBody is the smallest body to send, in bytes: 1 for brokers that refuse empty ones.
	MinBody int
	// Log says that the broker keeps a queue as a log with a place per filter: what a filter leaves out is passed over,
	// and a consumer with another filter sees the whole log.
	Log bool
	// Broker is the name and version of the broker, "Artemis 2.56.0", under which the results go into the table of
	// features, see [FeaturesEnv]. Empty keeps them out of it.
	Broker string
	// Timeout bounds each wait for something that must happen; 30 s by default, which a machine with much else to do needs.
	Timeout time.Duration
	// Quiet is how long to look out for something that must not happen; 300 ms by default.
	Quiet time.Duration
	// TTL is the time to live in the test of expiry: longer than the send takes, shorter than Timeout; 200 ms by default.
	TTL time.Duration
	// WrongPassword is one that the broker refuses for User. If empty, refusal is not tested: the broker asks for none.
	WrongPassword string
	// Unreachable is a URL where nobody listens; by default URL with a free port of 127.0.0.1.
	Unreachable string
	// Silent is a URL where connections are made but nobody answers; by default one with a listener of the suite.
	Silent string
	// Path returns a way to the broker that the suite can freeze and cut; by default a TCP proxy before the first host
	// of URL. It is called once per test.
	Path func(t testing.TB) Path
	// Victim starts a broker only for the test that kills it, and returns its URL and a function that ends it as
	// kill -9 does. If nil, only the cut of a connection is tested.
	Victim func(t testing.TB) (url string, kill func())
	// QueueCounters reads the broker's own totals of a queue: messages added and messages acknowledged since it exists.
	// If nil they are not compared.
	QueueCounters func(t testing.TB, queue driver.Destination) (added, acknowledged int64)
	// IgnoreGoroutines are not leaks of the driver: those of the functions above that outlive a sub-test.
	IgnoreGoroutines []goleak.Option
}

// Path is a way to the broker that can be broken. Its methods are called from the test's goroutine.
type Path interface {
	// URL is what to open.
	URL() string
	// Freeze stops all traffic, both ways, with connections staying up: nothing is read any more.
	Freeze()
	// Cut ends all connections, and refuses new ones.
	Cut()
}

func (c Config) withDefaults() Config {
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	dur := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	def(&c.URL, c.Factory.DefaultURL)
	def(&c.Selector, "color = 'red'")
	def(&c.ClientID, "perfmq-test")
	def(&c.PropertyText, "a: b\\c\nd é")
	dur(&c.Timeout, 30*time.Second)
	dur(&c.Quiet, 300*time.Millisecond)
	dur(&c.TTL, 200*time.Millisecond)
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
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

func unique(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:12])
}

// has tells whether protocol and broker have the feature, and whether it is the broker who lacks it.
func (c *Config) has(f Feature) (works, brokerLacks bool) {
	_, lacks := c.Lacks[f]
	can := map[Feature]bool{
		Topics:              c.Factory.Capabilities.Topic.Exists,
		DurableSubscription: c.Factory.Capabilities.Topic.DurableSubscription,
		SharedSubscription:  c.Factory.Capabilities.Topic.SharedSubscription,
		Persistent:          c.Factory.Capabilities.Queue.Persistent,
		Credit:              c.Factory.Capabilities.Queue.Credit,
		TTL:                 c.Factory.Capabilities.Queue.TTL,
		Priority:            c.Factory.Capabilities.Queue.Priority,
		Group:               c.Factory.Capabilities.Queue.Group,
		Selector:            c.Factory.Capabilities.Queue.Selector,
		Transactions:        c.Factory.Capabilities.Queue.Transactions,
		TransactedReceive:   c.Factory.Capabilities.Queue.TransactedReceive,
	}[f]
	return can && !lacks, can && lacks
}

// Run runs the suite as sub-tests of t.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.Factory.Open == nil || cfg.Factory.NewOptions == nil {
		t.Fatal("drivertest: Config.Factory needs Open and NewOptions")
	}
	cfg = cfg.withDefaults()
	results := newRecord(&cfg)
	for _, c := range suite(&cfg) {
		if cfg.SettledReceive && (c.name == "Unsettled" || c.name == "Credit") {
			continue
		}
		ran := false
		passed := t.Run(c.name, func(t *testing.T) {
			ran = true
			e := &env{T: t, cfg: &cfg, ctx: context.WithoutCancel(t.Context())}
			e.checkLeaks()
			c.run(e)
		})
		results.add(c, ran, passed)
	}
	if err := results.write(os.Getenv(FeaturesEnv)); err != nil {
		t.Errorf("record the results for the table of features: %v", err)
	}
}

// check is one sub-test.
type check struct {
	name    string
	run     func(*env)
	feature Feature  // what passing it shows; empty for what every driver must do
	refused *refusal // set when it tests that the feature is refused
}

// suite lists the sub-tests that apply, the cheap and basic ones first.
func suite(cfg *Config) []check {
	list := []check{
		{name: "Factory", run: testFactory},
		{name: "Done/slots=1", run: func(e *env) { testDone(e, 1, 50) }},
		{name: "Done/slots=100", run: func(e *env) { testDone(e, 100, 2000) }},
		{name: "Done/slots=1000", run: func(e *env) { testDone(e, 1000, 5000) }},
		{name: "Time", run: testTime},
		{name: "ID", run: testID},
		{name: "Bodies", run: testBodies},
		{name: "Variants", run: testVariants},
		{name: "Properties", run: testProperties},
		{name: "Queue/Waits", run: testQueueWaits, feature: Queues},
		{name: "Queue/Competing", run: testQueueCompeting, feature: Queues},
		{name: "Subscribed", run: testSubscribed},
		{name: "Names", run: testNames},
		{name: "Run/Ends", run: testRunEnds},
		{name: "Unsettled", run: testUnsettled},
		{name: "Connections", run: testConnections},
		{name: "Close/InFlight", run: testCloseInFlight},
		{name: "Close/Expired", run: testCloseExpired},
		{name: "Fault/Unreachable", run: testUnreachable},
		{name: "Fault/Silent", run: testSilent},
		{name: "Fault/Frozen", run: testFrozen},
		{name: "Fault/Cut", run: testCut},
	}
	if cfg.WrongPassword != "" {
		list = append(list, check{name: "Fault/WrongPassword", run: testWrongPassword})
	}
	if cfg.Victim != nil {
		list = append(list, check{name: "Fault/Kill", run: testKill})
	}
	if cfg.QueueCounters != nil {
		list = append(list, check{name: "Counters", run: testCounters})
	}
	return append(list, featureChecks(cfg)...)
}

// featureChecks tests each feature where it works, and its refusal where it does not.
func featureChecks(cfg *Config) []check {
	var list []check
	for _, f := range []struct {
		feature Feature
		works   []check
		refused func(*env, refusal)
	}{
		{Topics, []check{{name: "Topic/FanOut", run: testFanOut}, {name: "Topic/NotBefore", run: testTopicNotBefore}}, refuseTopics},
		{DurableSubscription, []check{
			{name: "Durable/Kept", run: func(e *env) { testDurable(e, true) }},
			{name: "Durable/Removed", run: func(e *env) { testDurable(e, false) }},
		}, refuseDurable},
		{SharedSubscription, []check{{name: "Shared", run: testShared}}, refuseShared},
		{Selector, []check{{name: "Selector", run: testSelector}}, refuseSelector},
		{TTL, []check{{name: "TTL", run: testTTL}}, refuseTTL},
		{Persistent, []check{{name: "Persistent", run: testPersistent}}, refusePersistent},
		{Credit, []check{{name: "Credit", run: testCredit}}, refuseCredit},
		{Priority, []check{{name: "Priority", run: testPriority}}, refusePriority},
		{Group, []check{{name: "Group", run: testGroup}}, refuseGroup},
		{Transactions, []check{{name: "Transactions/Send", run: testTransactedSend}}, refuseTransactions},
		{TransactedReceive, []check{{name: "Transactions/Receive", run: testTransactedReceive}}, refuseTransactedReceive},
	} {
		works, brokerLacks := cfg.has(f.feature)
		if works {
			for _, c := range f.works {
				c.feature = f.feature
				list = append(list, c)
			}
			continue
		}
		r := refusal{feature: f.feature, byBroker: brokerLacks, reason: cfg.Lacks[f.feature]}
		list = append(list, check{
			name: "Refuses/" + string(f.feature), run: func(e *env) { f.refused(e, r) }, feature: f.feature, refused: &r,
		})
	}
	return list
}
