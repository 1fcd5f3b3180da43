package drivertest

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Run runs the suite as sub-tests of t.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	if err := cfg.explore(t); err != nil {
		t.Fatalf("drivertest: nothing is tested, as the driver cannot be used: %v", err)
	}
	results := newRecord(&cfg)
	type outcome struct{ ran, passed bool }
	made := map[string]outcome{}
	var mu sync.Mutex
	known := runAll(t, &cfg, func(i instance) {
		ran := false
		passed := t.Run(i.name, func(t *testing.T) {
			ran = true
			i.check(t, &cfg)
		})
		mu.Lock()
		defer mu.Unlock()
		made[i.name] = outcome{ran, passed}
	})
	for _, i := range instances(&cfg) {
		results.add(i, made[i.name].ran, made[i.name].passed)
	}
	results.addUntested(&cfg)
	if !known {
		return
	}
	if err := results.write(os.Getenv(FeaturesEnv)); err != nil {
		t.Errorf("record the results for the table of features: %v", err)
	}
}

// runAll makes all checks and returns true if their results are known.
func runAll(t testing.TB, cfg *Config, run func(instance)) bool {
	var together, alone []instance
	for _, i := range instances(cfg) {
		if i.together(cfg) {
			together = append(together, i)
		} else {
			alone = append(alone, i)
		}
	}
	cfg.ends = &ends{final: map[string][]func() error{}}
	leaks := cfg.leaks()
	var making errgroup.Group
	making.SetLimit(atOnce)
	for _, i := range together {
		making.Go(func() error { run(i); return nil })
	}
	_ = making.Wait()
	late := false                         // one of them did not pass, though its result says so
	if len(together) > 0 && !t.Failed() { // calls that hang have been reported
		if err := leaks(); err != nil {
			late = true
			t.Errorf("drivertest: goroutines are left after the checks that were made together: %v", err)
		}
	}
	for check, final := range cfg.ends.final {
		for _, verify := range final {
			if err := verify(); err != nil {
				late = true
				t.Errorf("drivertest: after the end of %s: %v", check, err)
			}
		}
	}
	for _, i := range alone {
		run(i)
	}
	return !late
}

// atOnce is the number of checks made at once: most of the time they wait.
const atOnce = 6

// ends has env.final of the checks that were made together and have passed.
type ends struct {
	mu    sync.Mutex
	final map[string][]func() error
}

// check is one test of a driver, run for each kind of destination that it applies to.
type check struct {
	name string
	run  func(*env)
	// on are the kinds of destinations to run it for; zero means that the kind does not matter, and that it runs once.
	on kinds
	// feature is the feature that a passed check proves; empty for a duty of every driver.
	feature Feature
	// optional is the optional interface that the check is about; empty for the others.
	optional string
	// once marks a check that takes seconds and does not depend on a mode of the driver: see Config.Mode.
	once bool
	// receiving marks a check of consumers only, independent of how messages are sent: see Config.Sending.
	receiving bool
	// alone marks a check that counts, or changes, what belongs to the whole process or broker, or that hardly waits.
	alone bool
	// when reports whether the check can run; nil means always.
	when func(*Config, driver.Kind) bool
}

type kinds uint8

const (
	onQueue kinds = 1 << driver.Queue
	onTopic kinds = 1 << driver.Topic
	onBoth        = onQueue | onTopic
)

// checks is the suite, the cheap and basic checks first.
func checks() []check { return slices.Concat(moving(), living()) }

// moving are the checks of messages on their way.
func moving() []check {
	return []check{
		{name: "Factory", run: testFactory},

		// sending.go
		{name: "Done/slots=1", on: onBoth, run: func(e *env) { testDone(e, 1, 50) }},
		{name: "Done/slots=100", alone: true, on: onBoth, run: func(e *env) { testDone(e, 100, 2000) }},
		{name: "Done/slots=1000", alone: true, on: onBoth, run: func(e *env) { testDone(e, 1000, 5000) }},
		{name: "Time", on: onBoth, run: testTime},
		{name: "ID", on: onBoth, run: testID},
		{name: "Origin", on: onBoth, run: testOrigin},
		{name: "Bodies", on: onBoth, run: testBodies},
		{name: "Variants", on: onBoth, run: testVariants},
		{name: "OwnBodies", on: onBoth, run: testOwnBodies},
		{name: "More", on: onBoth, run: testMore},
		{name: "Order", alone: true, on: onBoth, when: ordered, run: testOrder},
		{name: "TrySend", on: onBoth, optional: "TrySender", run: testTrySend},

		// destinations.go
		{name: "Queue/Waits", on: onQueue, feature: Queues, run: testQueueWaits},
		{name: "Queue/Competing", receiving: true, on: onQueue, feature: Queues, run: testQueueCompeting},
		{name: "Topic/FanOut", receiving: true, on: onTopic, feature: Topics, run: testFanOut},
		{name: "Topic/NotBefore", receiving: true, on: onTopic, feature: Topics, run: testTopicNotBefore},
		{name: "Names", once: true, on: onBoth, run: testNames},
		{name: "Leave", once: true, on: onBoth, run: testLeave},
		{name: "Durable/Kept", receiving: true, on: onTopic, feature: DurableSubscription, run: testDurableKept},
		{name: "Durable/Removed", receiving: true, on: onTopic, feature: DurableSubscription, run: testDurableRemoved},
		{name: "Shared", receiving: true, on: onTopic, feature: SharedSubscription, run: testShared},
		{name: "Selector", receiving: true, on: onBoth, feature: Selector, run: testSelector},

		// receiving.go
		{name: "Subscribed", receiving: true, on: onBoth, run: testSubscribed},
		{name: "Run/Ends", receiving: true, on: onBoth, run: testRunEnds},
		{name: "Run/Stops", receiving: true, on: onBoth, run: testRunStops},
		{name: "MaxBody", receiving: true, on: onBoth, run: testMaxBody},
		{name: "Settle/Unsettled", receiving: true, on: onBoth, when: settles, run: testUnsettled},
		{name: "Settle/AfterVerdict", receiving: true, on: onBoth, when: settles, run: testAfterVerdict},
		{name: "Settle/Redelivered", receiving: true, on: onBoth, when: settles, feature: Redelivered, run: testRedelivered},
		{
			name: "Settle/Reject", receiving: true, alone: true, on: onBoth, when: acknowledges, feature: Reject,
			run: testReject,
		},
		{name: "Settle/Release", receiving: true, on: onBoth, when: acknowledges, feature: Release, run: testRelease},
		{name: "Credit", receiving: true, on: onBoth, when: acknowledges, feature: Credit, run: testCredit},

		// headers.go
		{name: "Properties", on: onBoth, feature: Properties, run: testProperties},
		{name: "Properties/Variants", on: onBoth, feature: Properties, run: testPropertiesOfVariants},
		{name: "Properties/Messages", on: onBoth, feature: Properties, run: testPropertiesOfMessages},
		{name: "Persistent", on: onBoth, feature: Persistent, run: testPersistent},
		{name: "Priority", on: onBoth, feature: Priority, run: testPriority},
		{name: "Group", on: onBoth, feature: Group, run: testGroup},
		{name: "TTL", on: onBoth, feature: TTL, run: testTTL},
		{name: "Delay", once: true, on: onBoth, feature: Delay, run: testDelay},
		{name: "Text", on: onBoth, feature: Text, run: testText},

		// replies.go
		{name: "Reply", on: onBoth, feature: RequestReply, run: func(e *env) { testReplies(e, false) }},
		{name: "Reply/Dynamic", on: onBoth, feature: DynamicReply, run: func(e *env) { testReplies(e, true) }},
		{name: "Reply/Again", on: onBoth, feature: DynamicReply, run: testRepliesAgain},

		// transactions.go
		{name: "Transactions/Send", on: onBoth, feature: Transactions, run: testTransactedSend},
		{name: "Transactions/Close", on: onBoth, feature: Transactions, run: testTransactedClose},
		{name: "Transactions/Cut", on: onBoth, feature: Transactions, run: testTransactedCut},
		{
			name: "Transactions/Refused", alone: true, on: onBoth, feature: Transactions, when: refusesCommits,
			run: testRefusedCommit,
		},
		{name: "Transactions/Receive", on: onBoth, feature: TransactedReceive, run: testTransactedReceive},
		{
			name: "Transactions/ReceiveCut", on: onBoth, feature: TransactedReceive, when: settles,
			run: testTransactedReceiveCut,
		},
	}
}

// living are the checks of connections and drivers.
func living() []check {
	return []check{
		// lifecycle.go
		{name: "Connections", on: onBoth, run: testConnections},
		{name: "Connections/Keys", on: onBoth, when: shares, run: testKeys},
		{name: "Close/InFlight", on: onBoth, run: testCloseInFlight},
		{name: "Close/Expired", on: onBoth, run: testCloseExpired},

		// stages.go
		{name: "Stages", on: onBoth, run: testStages},
		{name: "Connect", optional: "Connector", run: testConnect},

		// faults.go
		{name: "Fault/Refused", alone: true, on: onBoth, when: refuses, run: testRefused},
		{name: "Fault/Unreachable", on: onBoth, run: testUnreachable},
		{name: "Fault/Silent", once: true, on: onBoth, run: testSilent},
		{name: "Fault/WrongPassword", once: true, on: onBoth, when: asksForPassword, run: testWrongPassword},
		{name: "Fault/Frozen", once: true, on: onBoth, run: testFrozen},
		{name: "Fault/Cut", on: onBoth, when: reportsLoss, run: testCut},
		{name: "Fault/Idle", once: true, on: onBoth, optional: "Watched", run: testIdle},

		// optional.go
		{name: "Waits", once: true, on: onBoth, optional: "Waiter", run: testWaits},
		{name: "Probe", once: true, on: onBoth, optional: "Prober", run: testProbe},
		{name: "Inspect", once: true, on: onBoth, when: inspects, run: testInspect},
		{name: "Located", on: onBoth, optional: "Located", run: testLocated},
		{name: "Identified", optional: "Identified", run: testIdentified},
		{name: "Counting", on: onBoth, optional: "Counting", run: testCounting},

		// cost.go
		{name: "Allocations", alone: true, on: onBoth, run: testAllocations},
	}
}

// Conditions of checks.

func acknowledges(c *Config, _ driver.Kind) bool { return !c.SettledReceive }

// keeps reports whether messages wait for a consumer that returns.
func keeps(c *Config, kind driver.Kind) bool {
	durable, _ := c.works(DurableSubscription, kind)
	return kind == driver.Queue || durable
}

func settles(c *Config, kind driver.Kind) bool { return acknowledges(c, kind) && keeps(c, kind) }

func ordered(c *Config, _ driver.Kind) bool { return c.Unordered == "" }

func shares(c *Config, _ driver.Kind) bool { return c.Unshared == "" }

func refuses(c *Config, _ driver.Kind) bool { return c.Refusing != nil && !c.AtMostOnce }

func refusesCommits(c *Config, _ driver.Kind) bool { return c.Refusing != nil }

func asksForPassword(c *Config, _ driver.Kind) bool { return c.WrongPassword != "" }

// reportsLoss leaves the checks of a loss out for a client that reconnects by itself: --reconnect is refused for it.
func reportsLoss(c *Config, _ driver.Kind) bool { return !c.Factory.Capabilities.Reconnects }

// inspects reports whether the broker reports its counters while messages wait in it.
func inspects(c *Config, kind driver.Kind) bool {
	if c.Inspector != nil {
		return c.Inspector(kind) != nil && keeps(c, kind)
	}
	return c.has["Inspector"] && keeps(c, kind)
}

// instance is a sub-test: a check for a kind of destination, or the refusal of a feature.
type instance struct {
	name    string
	kind    driver.Kind
	feature Feature
	alone   bool
	run     func(*env)
	refused *refusal // nil unless it tests a refusal
}

// together reports whether the check is made beside others.
func (i *instance) together(cfg *Config) bool { return !i.alone && !cfg.Alone }

// instances are the sub-tests that apply.
func instances(cfg *Config) []instance {
	var list []instance
	works := cfg.kinds()
	for _, c := range checks() {
		if c.once && cfg.Mode || c.receiving && cfg.Sending || c.optional != "" && !cfg.has[c.optional] {
			continue
		}
		if c.on == 0 {
			if c.when == nil || c.when(cfg, works[0]) {
				list = append(list, instance{name: c.name, kind: works[0], run: c.run})
			}
			continue
		}
		for _, kind := range works {
			has := c.on&(1<<kind) != 0 && (c.when == nil || c.when(cfg, kind))
			if has && c.feature != "" {
				has, _ = cfg.works(c.feature, kind)
			}
			if has {
				list = append(list, instance{
					name: c.nameOn(kind), kind: kind, feature: c.feature, alone: c.alone, run: c.run,
				})
			}
		}
	}
	return append(list, refusals(cfg)...)
}

func (c *check) nameOn(kind driver.Kind) string {
	if c.on == onBoth {
		return c.name + "/" + kind.String()
	}
	return c.name
}

// refusals test that features that do not work are refused.
func refusals(cfg *Config) []instance {
	var list []instance
	add := func(name string, f Feature, kind driver.Kind, ask func(*env, refusal)) {
		works, brokerLacks := cfg.works(f, kind)
		if works || ask == nil {
			return
		}
		r := refusal{feature: f, byBroker: brokerLacks, reason: cfg.reason(f, kind)}
		list = append(list, instance{
			name: "Refuses/" + name, kind: kind, feature: f, run: func(e *env) { ask(e, r) }, refused: &r,
		})
	}
	for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
		add(string(kindFeature(kind)), kindFeature(kind), kind, refuseKind)
	}
	for _, t := range traits() {
		for _, kind := range cfg.kinds() {
			add(string(t.feature.On(kind)), t.feature, kind, t.ask)
		}
	}
	return list
}

// check makes the check.
func (i *instance) check(t testing.TB, cfg *Config) {
	e := &env{TB: t, cfg: cfg, kind: i.kind, ctx: context.WithoutCancel(t.Context())}
	e.checkEnd(!i.together(cfg))
	i.run(e)
}
