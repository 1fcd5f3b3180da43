package cli

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// freePort listens on a port below the ephemeral ports, so that no other process gets the port after it is closed.
func freePort(t *testing.T) net.Listener {
	t.Helper()
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(10_000+rand.IntN(10_000)))
		if err == nil {
			return listener
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

func TestMetricsDuringARun(t *testing.T) {
	sentSome := regexp.MustCompile(`(?m)^perfmq_messages_sent_total(\{[^}]*\})? [1-9]`)
	listener := freePort(t)
	address := listener.Addr().String()

	taken := call(nil, "mem", "client", "--message-count", "5", "--metrics", address)
	require.Equal(t, exitUsage, taken.status)
	require.Equal(t, "error: listen for metrics on "+address+": bind: address already in use\n"+
		"hint: another program listens there, perhaps another perfmq: give another port by --metrics; port 0 takes a free one\n", taken.stderr)
	require.Empty(t, taken.stdout)
	require.NoError(t, listener.Close())

	signals := make(chan os.Signal, 1)
	results := make(chan ended, 1)
	go func() { results <- callWith(signals, nil, "mem", "client", "--rate", "200", "--metrics", address) }()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), `version="v0.0.0"`) && sentSome.Match(text)
	}, time.Minute, 20*time.Millisecond)
	signals <- os.Interrupt
	got := <-results
	require.Equal(t, exitInterrupted, got.status, got.stderr)
	require.Contains(t, got.stdout, "--- result:              success")
}

// With "scrape" the run ends after the first scrape of the final values.
func TestMetricsLingerScrape(t *testing.T) {
	listener := freePort(t)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	results := make(chan ended, 1)
	go func() {
		results <- call(nil, "mem", "client", "--message-count", "50", "--metrics", address, "--metrics-linger", "scrape")
	}()
	var last string
	for {
		response, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			var text []byte
			text, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err == nil {
				last = string(text)
			}
		}
		select {
		case got := <-results:
			require.Equal(t, exitOK, got.status, got.stderr)
			require.Contains(t, got.stderr, "serving the final metrics until they are scraped, for 1m0s at most")
			require.NotContains(t, got.stderr, "nobody")
			require.Contains(t, last, "perfmq_run_success 1", "the last answer has the final values")
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A wrong web configuration is an error before the run; a password in it is not printed.
func TestMetricsWebConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.yml")
	for _, c := range []struct{ text, message string }{
		{"basic_auth_users: {u: hunter2hunter2}\n", "a password of basic_auth_users is no bcrypt hash"},
		{"tls_server_config: {cert_file: none.pem, key_file: none.key}\n", "none.pem"},
		{"tls: {}\n", "field tls not found"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		got := call(nil, "mem", "client", "--message-count", "5", "--metrics", "127.0.0.1:0", "--metrics-web-config", file)
		require.Equal(t, exitUsage, got.status)
		require.Contains(t, got.stderr, "error: --metrics-web-config: "+file)
		require.Contains(t, got.stderr, c.message)
		require.Contains(t, got.stderr, "docs/prometheus.md")
		require.NotContains(t, got.stderr, "hunter2")
		require.NotContains(t, got.stdout, "SUMMARY")
	}
	got := call(nil, "mem", "client", "--metrics-web-config", file)
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.stderr, "--metrics-web-config has nothing to serve")
	got = call(nil, "mem", "client", "--message-count", "5", "--metrics", "127.0.0.1:0", "--metrics-linger", "later")
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.stderr, "or scrape")
}

// The final values are served after the run, until a signal arrives.
func TestMetricsLinger(t *testing.T) {
	listener := freePort(t)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	signals := make(chan os.Signal, 1)
	results := make(chan ended, 1)
	go func() {
		results <- callWith(signals, nil, "mem", "client", "--message-count", "50", "--metrics", address, "--metrics-linger", "1h")
	}()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), "perfmq_run_success 1") &&
			strings.Contains(string(text), "perfmq_messages_received_total 50")
	}, time.Minute, 20*time.Millisecond)
	signals <- os.Interrupt
	got := <-results
	require.Equal(t, exitOK, got.status, "the run was complete: "+got.stderr)
	require.Contains(t, got.stderr, "serving the final metrics for 1h0m0s")
	require.NotContains(t, got.stderr, "stopping")

	got = call(nil, "mem", "client", "--metrics-linger", "1s")
	require.Equal(t, exitUsage, got.status)
	require.Contains(t, got.stderr, "add --metrics HOST:PORT")
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
