package drivertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem/memtest"
)

// mutant is a driver with one fault, the check that has to find it, and the text of the failure.
type mutant struct {
	name  string
	check string // without the kind of destination: it has to fail for each kind
	only  string // the kind of destination alone for which it has to fail
	says  string
	// broken makes a new driver for each check.
	broken func() broken
	// with changes the settings of the suite.
	with func(*drivertest.Config)
}

// mutants is the table: by theme, as the checks are.
func mutants() []mutant {
	return slices.Concat(sendingMutants(), destinationMutants(), receivingMutants(), headerMutants(), transactionMutants(),
		lifecycleMutants(), faultMutants(), replyMutants(), optionalMutants(), refusalMutants())
}

// on runs a check on a driver inside a bubble, where time costs nothing and hangs are found at once.
func on(t *testing.T, k broken, with func(*drivertest.Config), check string) *recorder {
	var r *recorder
	synctest.Test(t, func(t *testing.T) {
		end, stop := context.WithCancel(context.Background())
		defer stop()
		b := mem.New()
		cfg := k.config(end, b, with)
		r = record(t, func(tb testing.TB) {
			if !drivertest.Check(tb, drivertest.Everything(cfg), check) {
				tb.Errorf("there is no check %s", check)
			}
		})
		stop()
		pause(2 * time.Hour) // in which all that waits comes to its end: with this goroutine, time ends
	})
	return r
}

// config are the settings for a broken driver in front of a broker.
func (k *broken) config(end context.Context, b *mem.Broker, with func(*drivertest.Config)) drivertest.Config {
	cfg := memtest.Config(b)
	cfg.Factory = k.wrap(end, cfg.Factory)
	if with != nil {
		with(&cfg)
	}
	return drivertest.Everything(cfg)
}

// TestMutants: each mutant is found, by its check, for each kind of destination.
func TestMutants(t *testing.T) {
	for _, k := range mutants() {
		for _, check := range k.checks() {
			t.Run(strings.ReplaceAll(k.name, " ", "_")+"/"+check, func(t *testing.T) {
				r := on(t, k.broken(), k.with, check)
				require.Truef(t, r.Failed(), "%s passed: %s", check, r.text())
				found := slices.ContainsFunc(strings.Split(k.says, "|"), func(s string) bool { return strings.Contains(r.text(), s) })
				require.Truef(t, found, "%s failed, but not because of the mutant: %s", check, r.text())
				require.NotContains(t, r.text(), "panic:")
			})
		}
	}
}

// checks are the names of the checks that have to find the fault.
func (k *mutant) checks() []string {
	b := k.broken()
	all := drivertest.Checks(b.config(context.Background(), mem.New(), k.with))
	var list []string
	for _, name := range []string{k.check, k.check + "/queue", k.check + "/topic"} {
		if slices.Contains(all, name) && (k.only == "" || strings.HasSuffix(name, "/"+k.only)) {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return []string{k.check} // which does not exist, and fails
	}
	return list
}

// TestEveryCheckHasAMutant: no check is without teeth.
func TestEveryCheckHasAMutant(t *testing.T) {
	killed := map[string]bool{}
	for _, k := range mutants() {
		for _, check := range k.checks() {
			killed[check] = true
		}
	}
	var missing []string
	for _, check := range allChecks() {
		if !killed[check] {
			missing = append(missing, check)
		}
	}
	require.Empty(t, missing, "checks without a mutant")
}

// allChecks are the checks of a driver that has everything, and the refusals of one that has nothing.
func allChecks() []string {
	cfg := drivertest.Everything(memtest.Config(mem.New()))
	list := drivertest.Checks(cfg)
	list = append(list, drivertest.Checks(drivertest.Config{Factory: without(cfg.Factory, drivertest.Features()...)})...)
	for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
		f := cfg.Factory
		f.Capabilities.Of(kind).Exists = false
		list = append(list, drivertest.Checks(drivertest.Config{Factory: f})...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// without is a factory that declares no such features.
func without(f driver.Factory, features ...drivertest.Feature) driver.Factory {
	for _, feature := range features {
		for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
			if declared := drivertest.Declared(&f, feature, kind); declared != nil {
				*declared = false
			}
		}
	}
	return f
}

// TestNoMutant is the counter-check: in the circumstances in which a mutant is found, the driver passes with nothing
// wrong.
func TestNoMutant(t *testing.T) {
	for _, k := range mutants() {
		if k.with == nil || strings.HasPrefix(k.check, "Refuses/") {
			continue // TestSuitePasses
		}
		for _, check := range k.checks() {
			t.Run(strings.ReplaceAll(k.name, " ", "_")+"/"+check, func(t *testing.T) {
				r := on(t, broken{}, k.with, check)
				require.Falsef(t, r.Failed(), "%s", r.text())
			})
		}
	}
}

// uninspected leaves the suite nothing to look at messages with but the driver, which may lack features.
func uninspected(features ...drivertest.Feature) func(*drivertest.Config) {
	return func(c *drivertest.Config) {
		c.Inspect = nil
		lacking(features...)(c)
	}
}

// headerMutants ignore or change the parts of a message beside the body.
func headerMutants() []mutant {
	variants := func(f func(*driver.Variant)) func() broken {
		return func() broken { return broken{sends: eachVariant(f)} }
	}
	spec := func(f func(*driver.ProducerSpec)) func() broken { return func() broken { return broken{sends: f} } }
	noProperties := variants(func(v *driver.Variant) { v.Properties = nil })
	noGroup := variants(func(v *driver.Variant) { v.Group = "" })
	noTTL := spec(func(s *driver.ProducerSpec) { s.TTL = 0 })
	ofFirst := spec(func(s *driver.ProducerSpec) {
		first := s.Variants[0]
		eachVariant(func(v *driver.Variant) {
			v.Properties, v.Priority, v.Group = first.Properties, first.Priority, first.Group
		})(s)
	})
	return []mutant{
		{name: "properties dropped", check: "Properties", says: "the property color did not arrive", broken: noProperties},
		{
			name: "properties dropped, which a selector shows", check: "Properties", says: "receive messages that have color = 'red'",
			broken: noProperties, with: uninspected(),
		},
		{name: "properties escaped twice", check: "Properties", says: "the property text changed", broken: variants(func(v *driver.Variant) {
			list := make([]driver.Property, len(v.Properties))
			for i, p := range v.Properties {
				list[i] = driver.Property{Key: p.Key, Value: strings.ReplaceAll(p.Value, "\n", "\\n")}
			}
			v.Properties = list
		})},
		{name: "only the first property", check: "Properties", says: "receive messages that have text", broken: variants(func(v *driver.Variant) {
			v.Properties = v.Properties[:min(1, len(v.Properties))]
		}), with: uninspected()},
		{name: "properties of the first variant", check: "Properties/Variants", says: "messages whose property color is", broken: ofFirst},
		{
			name: "properties of the first variant, which a selector shows", check: "Properties/Variants",
			says: "receive messages that have color = 'blue'", broken: ofFirst, with: uninspected(),
		},
		{
			name: "group of the first variant", check: "Properties/Variants", says: "the group of messages whose color is",
			broken: spec(func(s *driver.ProducerSpec) {
				first := s.Variants[0]
				eachVariant(func(v *driver.Variant) { v.Group = first.Group })(s)
			}),
		},
		{
			name: "priority of the first variant", check: "Properties/Variants", says: "the priority of messages whose color is",
			broken: variants(func(v *driver.Variant) { v.Priority = -1 }),
		},
		{
			name: "persistent ignored", check: "Persistent", says: "whether messages are persistent",
			broken: spec(func(s *driver.ProducerSpec) { s.Persistent = false }),
		},
		{
			name: "always persistent", check: "Persistent", says: "whether messages are persistent",
			broken: spec(func(s *driver.ProducerSpec) { s.Persistent = true }),
		},
		{
			name: "priority ignored", check: "Priority", says: "the priority of messages at the broker",
			broken: variants(func(v *driver.Variant) { v.Priority = -1 }),
		},
		{
			name: "group of a message ignored", check: "Group", says: "the groups that messages name",
			broken: func() broken { return broken{send: messages(func(m *driver.Message) { m.Group = "" })} },
		},
		{name: "group ignored", check: "Group", says: "the group of messages at the broker", broken: noGroup},
		{
			name: "group ignored, which two consumers show", check: "Group", says: "of one group went to two consumers",
			broken: noGroup, with: uninspected(),
		},
		{name: "ttl ignored", check: "TTL", says: "unknown time property", broken: noTTL},
		{
			name: "ttl ignored, without credit", check: "TTL", only: "topic", says: "the time to live of messages at the broker",
			broken: noTTL, with: lacking(drivertest.DurableSubscription, drivertest.Credit),
		},
		{
			name: "delay ignored", check: "Delay", says: "that the broker was to hold back",
			broken: spec(func(s *driver.ProducerSpec) { s.Delay = 0 }),
		},
		{
			name: "delay in another unit", check: "Delay", says: "that the broker was to hold back",
			broken: spec(func(s *driver.ProducerSpec) { s.Delay /= 1000 }),
		},
		{name: "text ignored", check: "Text", says: "messages that are text at the broker", broken: variants(func(v *driver.Variant) { v.Text = false })},
		{name: "all is text", check: "Text", says: "messages that are text at the broker", broken: variants(func(v *driver.Variant) { v.Text = true })},
		{name: "text without its accents", check: "Text", says: "the body of message", broken: variants(func(v *driver.Variant) {
			if v.Text {
				v.Body = []byte(strings.ReplaceAll(string(v.Body), "é", "e"))
			}
		})},
		{
			name: "without a ttl messages expire", check: "Settle/AfterVerdict", says: "was lost|did not come again",
			broken: spec(func(s *driver.ProducerSpec) { s.TTL = max(s.TTL, 1) }),
		},
		{
			name: "ttl always short", check: "TTL", says: "10 missing",
			broken: spec(func(s *driver.ProducerSpec) {
				if s.TTL > 0 {
					s.TTL = 1
				}
			}),
		},
	}
}

// transactionMutants say that something was committed which was not.
func transactionMutants() []mutant {
	accepting := outcomes(func(driver.Outcome) driver.Outcome { return driver.Outcome{} })
	confirming := func(s *driver.ProducerSpec) {
		if inner := s.Commits; inner != nil {
			s.Commits = func(took time.Duration, _ bool) { inner(took, true) }
		}
	}
	return []mutant{
		{name: "transactions ignored", check: "Transactions/Send", says: "in a transaction that was not committed", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.CommitInterval = 0 }}
		}},
		{name: "accepted before the commit", check: "Transactions/Send", says: "in a transaction that was not committed", broken: handing},
		{name: "twice the commit interval", check: "Transactions/Send", says: "commits", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.CommitInterval *= 2 }}
		}},
		{name: "commits not told", check: "Transactions/Send", says: "0 commits were confirmed", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) { s.Commits = nil }}
		}},
		{name: "commits told twice", check: "Transactions/Send", says: "commits that were confirmed, and those that were not", broken: func() broken {
			return broken{sends: func(s *driver.ProducerSpec) {
				if inner := s.Commits; inner != nil {
					s.Commits = func(took time.Duration, ok bool) { inner(took, ok); inner(took, ok) }
				}
			}}
		}},
		{name: "flush does not commit", check: "Transactions/Send", says: "Done was called for 100 of 105 sends", broken: func() broken {
			return broken{flush: func(*producer, context.Context) error { return nil }}
		}},
		{name: "a rollback is accepted", check: "Transactions/Close", says: "5 missing", broken: func() broken {
			return broken{done: accepting, closeP: func(p *producer, ctx context.Context) error {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				return p.Producer.Close(ended)
			}}
		}},
		{name: "uncommitted is accepted after a cut", check: "Transactions/Cut", says: "before and after the connection was cut", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "a refused commit is accepted", check: "Transactions/Refused", says: "receive what was accepted|commits that were confirmed and 20 that were not", broken: func() broken {
			return broken{done: accepting}
		}},
		{name: "a refused commit is confirmed", check: "Transactions/Refused", says: "in 20 commits that were confirmed and 0 that were not", broken: func() broken {
			return broken{sends: confirming}
		}},
		{name: "received without transactions", check: "Transactions/Receive", says: "commits of 10 messages", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.TransactionSize = 0 }}
		}},
		{name: "a receiver's commits fail", check: "Transactions/Receive", says: "a commit was not confirmed", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) {
				if inner := s.Commits; inner != nil {
					s.Commits = func(took time.Duration, _ bool) { inner(took, false) }
				}
			}}
		}},
		{name: "commits each message", check: "Transactions/ReceiveCut", says: "commits that were confirmed", broken: func() broken {
			return broken{receives: func(s *driver.ConsumerSpec) { s.TransactionSize = min(s.TransactionSize, 1) }}
		}},
		{name: "settles before the commit", check: "Transactions/ReceiveCut", says: "it was settled too early", broken: func() broken {
			var commits driver.Commits
			return broken{
				receives: func(s *driver.ConsumerSpec) {
					if s.TransactionSize > 0 {
						s.TransactionSize, commits = 0, s.Commits
					}
				},
				deliver: func(c *consumer, d *driver.Delivery, next deliver) driver.Verdict {
					v := next(d)
					if c.n++; c.n%10 == 0 && c.spec.TransactionSize > 0 {
						commits(0, true)
					}
					return v
				},
			}
		}},
	}
}

// handing reports a send as accepted when it was handed over: at-most-once delivery.
func handing() broken {
	return broken{
		done: func(driver.Completions) driver.Completions {
			return driver.DoneFunc(func(driver.Slot, driver.Outcome) {})
		},
		send: func(p *producer, ctx context.Context, m *driver.Message) error {
			err := p.Producer.Send(ctx, m)
			if err == nil {
				p.done.Done(m.Slot, driver.Outcome{})
			}
			return err
		},
	}
}
