package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/scenarios"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want := musttest.Get(os.ReadFile(path))(t)
	before, after := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(before), len(after)) {
		if i >= len(before) || i >= len(after) || before[i] != after[i] {
			require.Equalf(t, before[min(i, len(before)):min(i+3, len(before))], after[min(i, len(after)):min(i+3, len(after))],
				"%s from line %d on; -update renews it", path, i+1)
		}
	}
}

type alphaOptions struct {
	Settle string `opt:"settle" help:"when to settle" enum:"early,late"`
	Size   int    `opt:"size" help:"size of something, in bytes"`
	Fast   bool   `opt:"fast" help:"be fast"`
}

type betaOptions struct {
	Size int    `opt:"size" help:"size of something else"`
	Tag  string `opt:"tag" help:"a tag"`
}

// testFactories returns three protocols: alpha, which can do everything; beta, which only has topics; and the real mem.
// Alpha and beta cannot be opened. Alpha and mem have client libraries; the library of alpha can do less.
func testFactories() []driver.Factory {
	fail := func(context.Context, driver.OpenOptions) (driver.Driver, error) {
		return nil, driver.Errorf(driver.ClassAuth, "log in", "check --user", "who are you")
	}
	all := driver.KindCapabilities{
		Exists: true, DurableSubscription: true, SharedSubscription: true, Persistent: true, TTL: true, Priority: true, Group: true,
		Properties: true, Selector: true, Transactions: true, TransactedReceive: true, Credit: true, Reject: true, Release: true,
		Redelivered: true, Delay: true, Text: true, RequestReply: true, DynamicReply: true,
	}
	some := all
	some.Transactions, some.TransactedReceive = false, false
	library := mem.Factory()
	library.Client = "memlib"
	return []driver.Factory{
		{
			Name: "alpha", Title: "Alpha 1.0", Schemes: []string{"alpha", "alphas"}, DefaultURL: "alpha://localhost:1",
			Capabilities: driver.Capabilities{TLS: true, Queue: all, Topic: all},
			NewOptions:   func() any { return &alphaOptions{Settle: "late", Size: 1} },
			Check: func(o driver.OpenOptions) error {
				if o.Options.(*alphaOptions).Size < 0 {
					return errors.New("option size is negative at " + o.URL)
				}
				return nil
			},
			Open: fail,
		},
		{
			Name: "beta", Title: "Beta", Schemes: []string{"beta"}, DefaultURL: "beta://localhost:2",
			Capabilities: driver.Capabilities{Topic: driver.KindCapabilities{Exists: true}}, NewOptions: func() any { return &betaOptions{Size: 2} }, Open: fail,
		},
		mem.Factory(),
		{
			Name: "alpha", Title: "Alpha 1.0", Client: "alphalib", Schemes: []string{"alpha", "alphas"}, DefaultURL: "alpha://localhost:1",
			Capabilities: driver.Capabilities{Queue: some, Topic: some}, NewOptions: func() any { return &betaOptions{Size: 3} }, Open: fail,
		},
		library,
	}
}

// output is a buffer that is safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

type ended struct {
	status         int
	stdout, stderr string
}

func call(environ []string, args ...string) ended {
	return callWith(nil, environ, args...)
}

func callWith(signals <-chan os.Signal, environ []string, args ...string) ended {
	return callAs(Env{Args: args, Environ: environ, Signals: signals, Factories: testFactories()})
}

// callReal is call with the real protocols and the shipped scenarios.
func callReal(args ...string) ended {
	return callAs(Env{Args: args, Factories: mem.With(drivers.All()), Scenarios: scenarios.FS()})
}

// callAs calls the program with a version and outputs.
func callAs(env Env) ended {
	var stdout, stderr output
	env.Stdout, env.Stderr, env.Version = &stdout, &stderr, run.Version{Number: "v0.0.0"}
	status := Main(env)
	return ended{status, stdout.String(), stderr.String()}
}

// echo opens a driver: the broker repeats the login in its error.
func echo(_ context.Context, o driver.OpenOptions) (driver.Driver, error) {
	return nil, driver.Errorf(driver.ClassAuth, "log in to "+o.URL, "check "+o.User+":"+o.Password, "who are you: %s %s, %q?", o.User, o.Password, o.Password)
}
