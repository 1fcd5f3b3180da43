package drivertest_test

import (
	"crypto/rand"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// brokenEnv names the broken driver that a child process of TestSuiteFindsFaults runs the suite on.
const brokenEnv = "PERFMQ_DRIVERTEST_BROKEN"

// childTimeout is how long a child waits for what its driver will never do. Until then it has to do all that its driver does
// as it should, beside many others.
const childTimeout = 8 * time.Second

// TestSuiteFindsFaults runs the suite on broken drivers, each in a process of its own, as its tests are to fail.
func TestSuiteFindsFaults(t *testing.T) {
	drivers := brokenSends()
	maps.Copy(drivers, brokenReceives())
	if name := os.Getenv(brokenEnv); name != "" {
		b := mem.New()
		k := drivers[name]
		cfg := memConfig(b, k.wrap(b.Factory()))
		cfg.Timeout = childTimeout
		if k.lacks != "" {
			cfg.Lacks = map[drivertest.Feature]string{k.lacks: "no reason"}
		}
		drivertest.Run(t, cfg)
		return
	}
	for name, output := range runChildren(t, drivers) {
		t.Run(name, func(t *testing.T) {
			k, out := drivers[name], output
			require.NotContainsf(t, out, "\nPASS\n", "the suite passed:\n%s", out)
			require.NotContains(t, out, "panic:")
			require.Contains(t, out, "--- FAIL: TestSuiteFindsFaults/"+k.check, "another test failed")
			require.Contains(t, strings.Join(strings.Fields(out), " "), k.says)
		})
	}
}

// runChildren runs the check of each broken driver and returns what it printed. As children mostly wait, more run at
// once than there are processors.
func runChildren(t *testing.T, drivers map[string]broken) map[string]string {
	const atOnce = 24
	outputs := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for name, k := range drivers {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			pattern := "^TestSuiteFindsFaults$/^" + strings.ReplaceAll(k.check, "/", "$/^") + "$"
			//nolint:gosec // this very binary
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", pattern, "-test.v", "-test.timeout=120s")
			cmd.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				out = append(out, "\nPASS\n"...)
			}
			mu.Lock()
			defer mu.Unlock()
			outputs[name] = string(out)
		})
	}
	wg.Wait()
	return outputs
}

// TestSuitePasses is the counter-check: the same driver with nothing wrong.
func TestSuitePasses(t *testing.T) {
	b := mem.New()
	drivertest.Run(t, memConfig(b, broken{}.wrap(b.Factory())))
}

// TestAtMostOnce: a driver without confirmations passes when it says so.
func TestAtMostOnce(t *testing.T) {
	b := mem.New()
	cfg := memConfig(b, broken{handed: true}.wrap(b.Factory()))
	cfg.AtMostOnce = true
	drivertest.Run(t, cfg)
}

// TestBrokerLacks: what the broker lacks has to be refused.
func TestBrokerLacks(t *testing.T) {
	b := mem.New()
	cfg := memConfig(b, b.Factory())
	cfg.Lacks = map[drivertest.Feature]string{drivertest.Selector: "it understands only equality"}
	cfg.Selector = "color > 'blue'"
	drivertest.Run(t, cfg)
}

func memConfig(b *mem.Broker, f driver.Factory) drivertest.Config {
	healthy := mem.DefaultOptions()
	healthy.Auth = "u:p"
	reset := func(t testing.TB) { t.Cleanup(func() { require.NoError(t, b.Set(healthy)) }) }
	var before mem.Stats // when the last destination was named
	return drivertest.Config{
		NewDestination: func(t testing.TB, kind driver.Kind) driver.Destination {
			before = b.Stats()
			return driver.Destination{Kind: kind, Name: t.Name() + rand.Text()}
		},
		QueueCounters: func(testing.TB, driver.Destination) (added, acknowledged int64) {
			s := b.Stats()
			return int64(s.Stored - before.Stored), int64(s.Acknowledged - before.Acknowledged)
		},
		Factory: f, User: "u", Password: "p", WrongPassword: "x", Options: []string{"auth=u:p"},
		Unreachable: "mem://unreachable", Silent: "mem://silent",
		Quiet: 20 * time.Millisecond, TTL: 50 * time.Millisecond, MaxBody: 1 << 20,
		Path: func(t testing.TB) drivertest.Path { reset(t); return &memPath{t, b} },
		Victim: func(t testing.TB) (string, func()) {
			reset(t)
			return "mem://local", b.Disconnect
		},
	}
}

// memPath breaks the broker itself.
type memPath struct {
	t      testing.TB
	broker *mem.Broker
}

func (p *memPath) URL() string { return "mem://local" }

func (p *memPath) Freeze() {
	o := mem.DefaultOptions()
	o.Limit = 110
	require.NoError(p.t, p.broker.Set(o))
	p.broker.Stall(time.Hour)
}

func (p *memPath) Cut() {
	p.broker.Disconnect()
	o := mem.DefaultOptions()
	o.ConnectFail = true
	require.NoError(p.t, p.broker.Set(o))
}
