package cli

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
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
	require.Equal(t, result.StatusConnect, status)
	require.Equal(t, 3, during)
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}

// A wrong web configuration is an error before the run; a password in it is not printed.
func TestMetricsWebConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web.yml")
	require.NoError(t, os.WriteFile(file, []byte("basic_auth_users: {u: hunter2hunter2}\n"), 0o600))
	got := call(nil, "mem", "client", "--message-count", "5", "--metrics", "127.0.0.1:0", "--metrics-web-config", file)
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, got.stderr, "error: --metrics-web-config: "+file)
	require.Contains(t, got.stderr, "a password of basic_auth_users is no bcrypt hash")
	require.NotContains(t, got.stderr, "hunter2")
	got = call(nil, "mem", "client", "--metrics-web-config", file)
	require.Equal(t, result.StatusUsage, got.status)
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
	require.Equal(t, result.StatusInterrupted, status, stderr.String())
}

// A run watches a process (here its own) and a log; rows, result and summary have the figures.
func TestBrokerSide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, folder := filepath.Join(dir, "broker.log"), filepath.Join(dir, "result")
	require.NoError(t, os.WriteFile(log, []byte("ERROR before the run\n"), 0o600))
	done := make(chan ended)
	go func() {
		done <- call(nil, "mem", "client", "--rate", "500", "--duration", "3", "--broker-pid", strconv.Itoa(os.Getpid()), "--broker-log", log, "--result", folder, "--threshold", "broker.cpu < 1000")
	}()
	require.Eventually(t, func() bool {
		head, err := os.Stat(filepath.Join(folder, result.RowsFile))
		return err == nil && head.Size() > 0
	}, time.Minute, 5*time.Millisecond, "the load has begun")
	f := musttest.Get(os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0o600))(t)
	_, err := f.WriteString("WARN a\nERROR b \x1b[31m\nINFO c\nERROR d\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r := <-done
	require.Equal(t, result.StatusOK, r.status, r.stderr)
	require.Regexp(t, `(?m)^--- broker process: cpu [0-9.]+ cores \(at most [0-9.]+\), memory [0-9.]+ MB, threads [0-9]+, open files [0-9]+$`, r.stdout)
	require.Regexp(t, `(?m)^--- broker host: load `, r.stdout)
	require.Contains(t, r.stdout, "--- broker log: errors 2, warnings 1\n--- broker first error: ERROR b ")
	require.NotContains(t, r.stdout, "\x1b")
	got := musttest.Get(result.Read(folder))(t)
	require.Len(t, got.BrokerSide, 1)
	whole := got.BrokerSide[0].Whole
	require.Positive(t, *whole.CPU)
	require.EqualValues(t, 2, *whole.Errors)
	var cpu uint64
	var errors uint64
	for i := range got.Rows {
		if use := got.Rows[i].BrokerSide; use != nil {
			if use.CPU != nil {
				cpu += *use.CPU
			}
			errors += *use.Errors
		}
	}
	require.Equal(t, *whole.CPU, cpu, "the rows add up")
	require.EqualValues(t, 2, errors)
	require.InDelta(t, float64(cpu)/float64(whole.CPUSpan), *got.Thresholds[0].Measured, 1e-9)
}

func TestBrokerSideMistakes(t *testing.T) {
	for args, stderr := range map[string]string{
		"--broker-pid=0":               "error: --broker-pid=0: must be a whole number of at least 1\n",
		"--broker-metrics=localhost:9": "error: --broker-metrics=localhost:9: it must begin with http://HOST or https://HOST\n",
		"--broker-pid=2147483647": "error: there is no such process: 2147483647\n" +
			"hint: name a process of this host and a readable log; for other hosts use --broker-metrics\n",
	} {
		r := call(nil, "mem", "client", args, "--message-count", "1")
		require.Equal(t, result.StatusUsage, r.status, args)
		require.Equal(t, stderr, r.stderr, args)
	}
}

func TestRemoteWriteMistakes(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const to = "--remote-write=http://h "
	for args, stderr := range map[string]string{
		"--remote-write=localhost:9":                           "error: --remote-write=localhost:9: it must begin with http://HOST or https://HOST\n",
		"--remote-write-interval=5s":                           "error: --remote-write-interval needs --remote-write\nhint: add --remote-write\n",
		to + "--remote-write-interval=5ms":                     "error: --remote-write-interval=5ms: 5ms is shorter than 1s\n",
		to + "--remote-write-header=team":                      "error: --remote-write-header=team: must be KEY=VALUE\n",
		to + "--remote-write-header=X:Y=team":                  "error: --remote-write-header: X:Y cannot be given here\nhint: write NAME=VALUE; a secret belongs into --remote-write-token-file\n",
		to + "--remote-write-header=Authorization=Bearer-hunt": "error: --remote-write-header: Authorization cannot be given here\nhint: write NAME=VALUE; a secret belongs into --remote-write-token-file\n",
		to + "--remote-write-token-file=missing":               "error: --remote-write-token-file: missing: no such file or directory\nhint: check the path\n",
		to + "--remote-write-ca=missing":                       "error: --remote-write-ca: read CA file: missing: no such file or directory\nhint: check the path\n",
		to + "--remote-write-ca=" + empty:                      "error: --remote-write-ca: CA file " + empty + " holds no certificate in PEM form\nhint: give one with a -----BEGIN CERTIFICATE----- block\n",
		to + "--remote-write-token-file=" + empty:              "error: --remote-write-token-file " + empty + ": its first line is empty\n",
	} {
		r := call(nil, append([]string{"mem", "client", "--message-count", "1"}, strings.Fields(args)...)...)
		assert.Equal(t, result.StatusUsage, r.status, args)
		assert.Equal(t, stderr, r.stderr, args)
	}
}

// TestRemoteWriteEcho: a receiver that refuses the metrics, in hostile words, costs the run nothing but a warning, and
// learns the secret, which is shown nowhere.
func TestRemoteWriteEcho(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(testPassword+"\n"), 0o600))
	for name, c := range map[string]struct{ user, file, authorization string }{
		"password in the URL":  {user: "app:hunter2-%25%2f%C3%A9@", authorization: "Basic YXBwOmh1bnRlcjItJS/DqQ=="},
		"password in the file": {user: "app@", file: file, authorization: "Basic YXBwOmh1bnRlcjItJS/DqQ=="},
		"token":                {file: file, authorization: "Bearer " + testPassword},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				assert.Equal(t, "/api/v1/write", r.URL.Path)
				assert.Equal(t, c.authorization, r.Header.Get("Authorization"))
				remark := "\x1b[2J " + r.Header.Get("Authorization")
				if c.user != "" {
					remark += hostileRemark(1 << 19)
				}
				http.Error(w, remark, http.StatusBadRequest)
			}))
			defer server.Close()
			folder := filepath.Join(t.TempDir(), "result")
			args := []string{"mem", "client", "--message-count", "3", "--result", folder, "--remote-write-interval", "1h", "--remote-write", strings.Replace(server.URL, "://", "://"+c.user, 1)}
			if c.file != "" {
				args = append(args, "--remote-write-token-file", c.file)
			}
			got := call(nil, args...)
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			require.EqualValues(t, 2, requests.Load(), "the first and the last values")
			require.Contains(t, got.stderr, "warning: 2 of 2 remote writes to "+server.URL+"/api/v1/write did not arrive, the final values among them: server returned HTTP status 400 Bad Request: ")
			requireHarmless(t, "standard error", got.stderr, 10_000)
			for _, name := range musttest.Get(filepath.Glob(filepath.Join(folder, "*")))(t) {
				requireNoSecret(t, name, string(musttest.Get(os.ReadFile(name))(t)))
			}
		})
	}
}

// TestRemoteWriteTLS: one that is not trusted gets nothing, and costs the run ten seconds at its end.
func TestRemoteWriteTLS(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	args := []string{"mem", "client", "--message-count", "3", "--remote-write", server.URL, "--remote-write-interval", "1h"}
	got := call(nil, append(args, "--remote-write-ca", file)...)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	require.NotContains(t, got.stderr, "remote write")
	require.EqualValues(t, 2, requests.Load())
	got = call(nil, args...)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	require.Contains(t, got.stderr, "warning: 2 of 2 remote writes to "+server.URL+"/api/v1/write did not arrive, the final values among them: ")
	require.Contains(t, got.stderr, "certificate signed by unknown authority")
	require.EqualValues(t, 2, requests.Load())
}

// fullDisk is a standard output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: os.ErrInvalid}
}

// TestFullStandardOutput: output that was not written is a failure of its own, and no success.
func TestFullStandardOutput(t *testing.T) {
	t.Parallel()
	a, b := makeRepeats(t, "a", "1ms", 1), makeRepeats(t, "b", "1ms", 1)
	for _, args := range [][]string{
		{"--help"},
		{"mem", "client", "--help"},
		{"mem", "client", "--help-all"},
		{"version"},
		{"mem", "client", "--dry-run"},
		{"scenario", "schema"},
		{"scenario", "metrics"},
		{"completion", "bash"},
		{"report", "--format", "csv", a},
		{"compare", a, b},
		{"merge", filepath.Join("testdata", "before", "shard1"), filepath.Join("testdata", "before", "shard2")},
	} {
		var stderr output
		status := Main(Env{
			Args: args, Stdout: fullDisk{}, Stderr: &stderr, Factories: testFactories(), Version: run.Version{Number: "v0.0.0"},
		})
		assert.Equal(t, result.StatusFailed, status, args)
		assert.Equal(t, "error: write /dev/stdout: invalid argument\nhint: look at where standard output goes\n", stderr.String(), args)
	}
}

// TestNoPlaceForOutput: a place where nothing can be made is found before anything is done.
func TestNoPlaceForOutput(t *testing.T) {
	t.Parallel()
	a := makeRepeats(t, "a", "1ms", 1)
	file := filepath.Join(t.TempDir(), "file")
	assert.NoError(t, os.WriteFile(file, nil, 0o600))
	in := filepath.Join(file, "x")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"mem", "client", "--result", in}, "--result " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--json", in}, "--json " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--hdr", in}, "--hdr " + in + ": " + file + " is no folder"},
		{[]string{"mem", "client", "--verify-file", in}, "--verify-file " + in + ": " + file + " is no folder"},
		{[]string{"report", "--output", in, a}, "--output " + in + ": " + file + " is no folder"},
		{[]string{"report", "--output", a, a}, "--output " + a + " is a folder\nhint: name a file"},
		{[]string{"merge", "--result", in, filepath.Join(a, "0")}, "--result " + in + ": " + file + " is no folder"},
		{[]string{"merge", "--result", file, filepath.Join(a, "0")}, "--result " + file + " is a file\nhint: name a folder"},
	} {
		r := call(nil, c.args...)
		assert.Equal(t, result.StatusUsage, r.status, c.args)
		assert.Equal(t, "error: "+c.says+"\n", r.stderr)
		assert.Empty(t, r.stdout)
	}
}
