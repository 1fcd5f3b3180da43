package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestThreadsBoundTheRun(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var during int
	factories := testFactories()
	factories[0].Open = func(context.Context, driver.OpenOptions) (driver.Driver, error) {
		during = runtime.GOMAXPROCS(0)
		return nil, driver.Errorf(driver.ClassConnect, "connect", "", "no")
	}
	status := Main(Env{
		Args:   []string{"alpha", "producer", "--threads", "3", "--silent"},
		Stdout: io.Discard, Stderr: io.Discard, Factories: factories,
	})
	require.Equal(t, exitConnect, status)
	require.Equal(t, 3, during)
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}

// A wrong web configuration is an error before the run; a password in it is not printed.
func TestMetricsWebConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.yml")
	require.NoError(t, os.WriteFile(file, []byte("basic_auth_users: {u: hunter2hunter2}\n"), 0o600))
	got := call(nil, "mem", "client", "--message-count", "5", "--metrics", "127.0.0.1:0", "--metrics-web-config", file)
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.stderr, "error: --metrics-web-config: "+file)
	require.Contains(t, got.stderr, "a password of basic_auth_users is no bcrypt hash")
	require.NotContains(t, got.stderr, "hunter2")
	got = call(nil, "mem", "client", "--metrics-web-config", file)
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.stderr, "--metrics-web-config needs --metrics")
}

// stuckDriver never connects.
type stuckDriver struct{ driver.Driver }

func (stuckDriver) Producer(ctx context.Context, _ driver.ProducerSpec, _ driver.Completions) (driver.Producer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuckDriver) Close(context.Context) error { return nil }

func TestInterruptedWhileConnecting(t *testing.T) {
	factories := testFactories()
	signals := make(chan os.Signal, 1)
	factories[0].Open = func(context.Context, driver.OpenOptions) (driver.Driver, error) {
		signals <- os.Interrupt
		return stuckDriver{}, nil
	}
	var stderr output
	status := Main(Env{Args: []string{"alpha", "producer"}, Stdout: io.Discard, Stderr: &stderr, Signals: signals, Factories: factories})
	require.Equal(t, exitInterrupted, status, stderr.String())
}
