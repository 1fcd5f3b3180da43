package drivertest

import (
	"sync"
	"testing"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Everything says that the driver has all that is optional.
func Everything(cfg Config) Config {
	cfg.has = optional{}
	for _, name := range []string{"Identified", "Inspector", "Prober", "TrySender", "Located", "Watched", "Waiter", "Counting", "Connector"} {
		cfg.has[name] = true
	}
	return cfg
}

// Explored returns the settings with their defaults and the optional interfaces that the driver implements.
func Explored(t testing.TB, cfg Config) (Config, error) {
	cfg = cfg.withDefaults()
	err := cfg.explore(t)
	return cfg, err
}

// Checks returns the names of the sub-tests that apply.
func Checks(cfg Config) []string {
	cfg = cfg.withDefaults()
	var names []string
	for _, i := range instances(&cfg) {
		names = append(names, i.name)
	}
	return names
}

// Check makes one check. It returns false if there is no such check.
func Check(t testing.TB, cfg Config, name string) bool {
	cfg = cfg.withDefaults()
	for _, i := range instances(&cfg) {
		if i.name == name {
			i.check(t, &cfg)
			return true
		}
	}
	return false
}

// Declared is where a factory declares a feature of a kind of destination; nil for the kinds themselves.
func Declared(f *driver.Factory, feature Feature, kind driver.Kind) *bool {
	if feature == Queues || feature == Topics {
		return nil
	}
	return declared(f.Capabilities.Of(kind), feature)
}

// Asked reports if a caller can ask for the feature of a driver that does not declare it.
func Asked(feature Feature) bool {
	for _, t := range traits() {
		if t.feature == feature {
			return t.ask != nil
		}
	}
	return true
}

// Proven returns the features that have a check.
func Proven() map[Feature]bool {
	proven := map[Feature]bool{}
	for _, c := range checks() {
		proven[c.feature] = true
	}
	return proven
}

// RunAll runs all checks, each by run, and returns the names of the checks that were made, and whether their results are
// known.
func RunAll(t testing.TB, cfg Config, run func(name string, f func(testing.TB))) (made []string, known bool) {
	cfg = cfg.withDefaults()
	var making sync.Mutex
	known = runAll(t, &cfg, func(i instance) {
		making.Lock()
		made = append(made, i.name)
		making.Unlock()
		run(i.name, func(t testing.TB) { i.check(t, &cfg) })
	})
	return made, known
}

// CheckConfig returns a mistake in the settings.
func CheckConfig(cfg Config) error {
	cfg = cfg.withDefaults()
	return cfg.check()
}
