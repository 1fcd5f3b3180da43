package drivertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/drivers/mem/memtest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
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
		lifecycleMutants(), faultMutants(), optionalMutants(), refusalMutants())
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
