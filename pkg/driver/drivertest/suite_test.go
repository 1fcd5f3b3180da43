package drivertest_test

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem/memtest"
)

// TestSuitePasses: a correct driver passes.
func TestSuitePasses(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		k := broken{}
		return k.config(context.Background(), b, nil)
	})
}

// passes makes all checks in bubbles, where time costs nothing.
func passes(t *testing.T, config func(*mem.Broker) drivertest.Config) {
	t.Helper()
	cfg := musttest.Get(drivertest.Explored(t, config(mem.New())))(t)
	for _, check := range drivertest.Checks(cfg) {
		t.Run(check, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := musttest.Get(drivertest.Explored(t, config(mem.New())))(t)
				require.True(t, drivertest.Check(t, cfg, check))
			})
		})
	}
}

// TestAtMostOnce: a driver without confirmations passes when it says so.
func TestAtMostOnce(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		k := handing()
		cfg := k.config(context.Background(), b, nil)
		cfg.Factory = limited(without(cfg.Factory, drivertest.Transactions))
		cfg.AtMostOnce = true
		cfg.Factory.InFlight = func(any, *driver.ProducerSpec) driver.InFlight { return driver.InFlight{Unanswered: true} }
		return cfg
	})
}

// TestSettledReceive: a driver that does not acknowledge passes when it says so.
func TestSettledReceive(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		k := earlyBy(0)
		cfg := k.config(context.Background(), b, nil)
		cfg.Factory = limited(without(cfg.Factory, drivertest.TransactedReceive))
		cfg.SettledReceive = true
		cfg.Allocations = 1.1 // early keeps a copy of each message
		return cfg
	})
}

// TestBrokerLacks: features that the broker lacks have to be refused.
func TestBrokerLacks(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		cfg := memtest.Config(b)
		cfg.Lacks = map[drivertest.Feature]string{drivertest.Selector: "it understands only equality"}
		cfg.Selector = func(key, value string) string { return key + " > '" + value + "'" }
		return cfg
	})
}

// TestNothingMore: a driver that has nothing but sending and receiving, and refuses the rest, passes.
func TestNothingMore(t *testing.T) {
	passes(t, func(b *mem.Broker) drivertest.Config {
		cfg := memtest.Config(b)
		cfg.Factory = limited(without(cfg.Factory, drivertest.Features()...))
		cfg.Inspect, cfg.Refusing = nil, nil
		return cfg
	})
}

// TestOneKind: a driver of a protocol with topics only, or queues only, passes.
func TestOneKind(t *testing.T) {
	for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
		t.Run("no "+kind.String()+"s", func(t *testing.T) {
			passes(t, func(b *mem.Broker) drivertest.Config {
				cfg := memtest.Config(b)
				*cfg.Factory.Capabilities.Of(kind) = driver.KindCapabilities{}
				cfg.Factory = limited(cfg.Factory)
				return cfg
			})
		})
	}
}

// TestNothingToTest: mistakes in the settings are one sentence.
func TestNothingToTest(t *testing.T) {
	f := mem.Factory()
	for want, cfg := range map[string]drivertest.Config{
		"drivertest: there is nothing to test: in-process broker has neither queues nor topics, by Capabilities and Config.Lacks": {
			Factory: f, Lacks: map[drivertest.Feature]string{drivertest.Queues: "no", drivertest.Topics: "no"},
		},
		`drivertest: Config.Lacks has "none" for "Colour": want a reason for one of Features`: {
			Factory: f, Lacks: map[drivertest.Feature]string{"Colour": "none"},
		},
		`drivertest: Config.Lacks has "" for "TTL/topic": want a reason for one of Features`: {
			Factory: f, Lacks: map[drivertest.Feature]string{drivertest.TTL.On(driver.Topic): ""},
		},
	} {
		require.EqualError(t, drivertest.CheckConfig(cfg), want)
	}
	require.NoError(t, drivertest.CheckConfig(drivertest.Config{Factory: f}))
}

// TestNothingShows: a check that could not fail says so instead of passing.
func TestNothingShows(t *testing.T) {
	blind := func(features ...drivertest.Feature) func(*drivertest.Config) {
		return func(c *drivertest.Config) {
			c.Inspect = nil
			lacking(features...)(c)
		}
	}
	for check, with := range map[string]func(*drivertest.Config){
		"Properties/queue": blind(drivertest.Selector),
		"Persistent/queue": blind(),
		"Priority/topic":   blind(),
		"Group/topic":      blind(drivertest.SharedSubscription),
		"TTL/topic":        blind(drivertest.DurableSubscription, drivertest.Credit),
	} {
		r := on(t, broken{}, with, check)
		require.True(t, r.Failed(), check)
		require.Contains(t, r.text(), "set Config.Inspect", check)
	}
}

// limited refuses whatever the factory does not declare, as a driver should.
func limited(f driver.Factory) driver.Factory {
	inner, caps := f.Open, f.Capabilities
	f.Open = func(ctx context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		d, err := inner(ctx, opts)
		return &limitedDriver{Driver: d, caps: caps}, err
	}
	return f
}

type limitedDriver struct {
	driver.Driver
	caps driver.Capabilities
}

func refuse(asked map[string]bool) error {
	for what, is := range asked {
		if is {
			return driver.Errorf(driver.ClassUnsupported, "open", "", "there is no %s", what)
		}
	}
	return nil
}

func (d *limitedDriver) Producer(ctx context.Context, s driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	has := d.caps.Of(s.Destination.Kind)
	asked := map[string]bool{
		s.Destination.Kind.String(): !has.Exists, "persistence": s.Persistent && !has.Persistent, "TTL": s.TTL > 0 && !has.TTL,
		"transaction": s.CommitInterval > 0 && !has.Transactions, "delay": s.Delay > 0 && !has.Delay,
		"request": (s.Requests || s.Anonymous) && !has.RequestReply,
	}
	for _, v := range s.Variants {
		asked["priority"] = asked["priority"] || v.Priority >= 0 && !has.Priority
		asked["group"] = asked["group"] || v.Group != "" && !has.Group
		asked["property"] = asked["property"] || len(v.Properties) > 0 && !has.Properties
		asked["text"] = asked["text"] || v.Text && !has.Text
	}
	if err := refuse(asked); err != nil {
		return nil, err
	}
	return d.Driver.Producer(ctx, s, done)
}

func (d *limitedDriver) Consumer(ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
	has := d.caps.Of(s.Destination.Kind)
	err := refuse(map[string]bool{
		s.Destination.Kind.String(): !has.Exists, "durable subscription": s.Durable && !has.DurableSubscription,
		"shared subscription": s.Shared && !has.SharedSubscription, "selector": s.Selector != "" && !has.Selector,
		"transaction": s.TransactionSize > 0 && !has.TransactedReceive, "credit": s.Credit > 0 && !has.Credit,
		"reject":  s.Failing == driver.Reject && !has.Reject,
		"release": s.Failing == driver.Release && !has.Release,
		"dynamic": s.Dynamic && !has.DynamicReply,
	})
	if err != nil {
		return nil, err
	}
	return d.Driver.Consumer(ctx, s)
}

// TestEveryFeatureHasACheck: each field of KindCapabilities has a check, and a request to be refused where a driver does
// not declare it.
func TestEveryFeatureHasACheck(t *testing.T) {
	require.Len(t, drivertest.Features(), reflect.TypeFor[driver.KindCapabilities]().NumField()+1, "Exists is two features")
	proven := drivertest.Proven()
	for _, f := range drivertest.Features() {
		require.True(t, proven[f], "no check of checks.go proves the feature %s", f)
		require.Equal(t, f != drivertest.Redelivered, drivertest.Asked(f), "features.go asks a driver for what it does not have: %s", f)
	}
}

// TestTogether: several checks are made at once, but checks that count shared things alone. In either case the suite
// finds a goroutine that a check leaves behind, and a call after the end of the check.
func TestTogether(t *testing.T) {
	for leaking, says := range map[string]string{
		"": "", "Time/topic": "left after the checks that were made together", "Allocations/queue": "left after Driver.Close",
		"Time/queue": "after the end of Time/queue: Done was called after Close had returned",
	} {
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			k, leave := broken{}, func() { <-end }
			if leaking == "Time/queue" {
				k, leave = doneLate(time.Second/2), func() {}
			}
			cfg := k.config(t.Context(), mem.New(), func(cfg *drivertest.Config) { cfg.Alone = false })
			var mu sync.Mutex
			running, most, text, known := 0, 0, "", false
			count := func(change int) int {
				mu.Lock()
				defer mu.Unlock()
				running += change
				most = max(most, running)
				return running
			}
			r := record(t, func(tb testing.TB) {
				_, known = drivertest.RunAll(tb, cfg, func(name string, check func(testing.TB)) {
					count(1)
					if name == leaking {
						text = recordNamed(tb, name, func(tb testing.TB) { check(tb); go leave() }).text()
					}
					pause(time.Second)
					if strings.Contains(name, "Allocations") || strings.Contains(name, "Refused") || strings.Contains(name, "Reject/") {
						require.Equal(t, 1, count(0), name)
					}
					count(-1)
				})
			})
			close(end)
			require.Equal(t, 6, most, "checks at once")
			require.Equal(t, !strings.HasPrefix(leaking, "Time"), known, "results that can be recorded")
			require.Contains(t, text+r.text(), says)
			require.Equal(t, says == "", text+r.text() == "", text+r.text())
		})
	}
}

// duty matches sentences of the contract that oblige somebody.
var duty = regexp.MustCompile(`^[A-Z\[].*\b(must|never|exactly|nothing|refuses|soon|unless|does not|do not|no other|` +
	`no more|unchanged|order|returns nil|return nil|at most)\b`)

// contract is testdata/contract.txt: each sentence of package driver that obliges a driver, with the names of mutants
// that break it. A sentence that obliges somebody else, or that the suite cannot see, has "- " and the reason.
func contract(t *testing.T) map[string]string {
	t.Helper()
	text := musttest.Get(os.ReadFile("testdata/contract.txt"))(t)
	table := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		sentence, mutants, _ := strings.Cut(entry, "\n")
		require.NotEmptyf(t, mutants, "no line follows the sentence %q", sentence)
		require.NotContains(t, table, sentence)
		table[sentence] = mutants
	}
	return table
}

// TestContractHasMutants: each sentence of the contract that obliges a driver has a mutant, and the table has no
// sentence and no mutant that does not exist.
func TestContractHasMutants(t *testing.T) {
	known := map[string]bool{}
	for _, m := range mutants() {
		known[m.name] = true
	}
	table, all := contract(t), sentences(t)
	for sentence, mutants := range table {
		if !slices.Contains(all, sentence) {
			t.Errorf("testdata/contract.txt: package driver does not have this sentence (any more): %s", sentence)
		}
		if reason, none := strings.CutPrefix(mutants, "- "); none {
			require.NotEmpty(t, reason)
			continue
		}
		for name := range strings.SplitSeq(mutants, "; ") {
			require.Truef(t, known[name], "there is no mutant %q, which testdata/contract.txt has for %q", name, sentence)
		}
	}
	for _, sentence := range all {
		if _, listed := table[sentence]; !listed && duty.MatchString(sentence) {
			t.Errorf("this sentence of package driver obliges somebody. Write a mutant that breaks it, and put both into "+
				"testdata/contract.txt: %s", sentence)
		}
	}
}

// sentences returns the sentences of the comments of package driver on the types and constants that it exports.
func sentences(t *testing.T) []string {
	t.Helper()
	files := musttest.Get(filepath.Glob("../*.go"))(t)
	var list []string
	add := func(comments ...*ast.CommentGroup) {
		for _, c := range comments {
			list = append(list, split(c.Text())...)
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := musttest.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
		add(f.Doc)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false
			case *ast.GenDecl:
				add(n.Doc)
			case *ast.TypeSpec:
				if !n.Name.IsExported() {
					return false
				}
				add(n.Doc, n.Comment)
			case *ast.ValueSpec:
				add(n.Doc, n.Comment)
			case *ast.Field:
				if len(n.Names) > 0 && n.Names[0].IsExported() {
					add(n.Doc, n.Comment)
				}
			}
			return true
		})
	}
	slices.SortFunc(list, cmp.Compare)
	return slices.Compact(list)
}

// split splits a comment into its sentences.
func split(text string) (list []string) {
	end := regexp.MustCompile(`[.:] ["A-Z\[]`)
	for paragraph := range strings.SplitSeq(regexp.MustCompile(`(?m)^#.*$|^  - `).ReplaceAllString(text, "\n"), "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		for at := end.FindStringIndex(paragraph); at != nil; at = end.FindStringIndex(paragraph) {
			list = append(list, paragraph[:at[0]+1])
			paragraph = paragraph[at[0]+2:]
		}
		if paragraph != "" {
			list = append(list, paragraph)
		}
	}
	return list
}
