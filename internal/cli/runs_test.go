package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
)

// scenarioOfRuns has groups, steps, thresholds, labels and a rate per group.
const scenarioOfRuns = `name: told
labels: {version: "2.56"}
verify: true
brokers:
  main: {url: "mem://local", protocol: mem, options: {latency: 3.3ms}}
groups:
  fill: {role: producer, broker: main, destination: queue://ORDERS, message-count: 200, max-pending: 7}
  in: {role: producer, broker: main, destination: queue://ORDERS, rate: 90.7, max-pending: 50, producers: 2}
  out: {role: consumer, broker: main, destination: queue://ORDERS}
steps:
  - name: fill
    groups: [fill]
  - name: work
    duration: 3s
    warmup: 1s
    groups: [in, out]
    thresholds: ["ack.p99 < 10ms", "received >= 1000"]
thresholds: ["completed >= 1"]
`

// toldRuns are runs whose broker does as told, under a fake clock. No message is due, sent or answered at the end of an
// interval: rates and latencies are no divisors of a second.
var toldRuns = []struct {
	name, args string
	status     int
}{
	{"rated", "mem client --rate 300.7 --duration 4 --warmup 1 --max-pending 10 -o latency=3.7ms -o delivery-latency=1.9ms queue://A", exitOK},
	{"lost", "mem client --rate 300.7 --duration 3 --max-pending 30 --verify --drain-timeout 2s -o latency=3.7ms -o lose=300 -o duplicate=200 queue://A", exitFailed},
	{"refused", "mem producer --rate 101.3 --duration 3 --max-pending 20 -o latency=2.3ms -o reject=10 -o fail=7 -o release=50 -o modify=60 queue://A", exitFailed},
	{"stalled", "mem client --rate 200.3 --duration 5 --max-pending 40 -o latency=1.7ms -o stall-after=1500ms -o stall-for=2s queue://A", exitOK},
	{"transactions", "mem producer --message-count 300 --max-pending 20 --commit-interval 10 -o latency=7.9ms -o fail-commit=9 queue://A", exitFailed},
	{"late", "mem client --rate 80.3 --duration 3 --tx --tx-size 4 --delivery-delay 200ms --priority 3 --property k=v -o latency=900us queue://A", exitOK},
	{"scenario", "run SCENARIO", exitThreshold},
}

// shown are the flags of a format.
var shown = map[string][]string{run.Artemis: {"--show-latency"}}

// TestToldRuns holds every output of eight runs to the byte.
func TestToldRuns(t *testing.T) {
	for _, c := range toldRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			scenario := filepath.Join(folder, "told.yaml")
			require.NoError(t, os.WriteFile(scenario, []byte(scenarioOfRuns), 0o600))
			args := strings.Fields(strings.ReplaceAll(c.args, "SCENARIO", scenario))
			clean := func(text string) string { return withoutHost(strings.ReplaceAll(text, folder, "FOLDER")) }

			for _, format := range []string{run.Artemis, run.Short, run.RocketMQ} {
				r := runTold(t, slices.Concat(args, []string{"--format", format}, shown[format])...)
				require.Equal(t, c.status, r.status, r.stderr)
				golden(t, filepath.Join("runs", c.name, format+".txt"), clean(r.stdout+"--- stderr\n"+r.stderr))
			}
			dir := filepath.Join(folder, "result")
			r := runTold(t, append(args, "--silent", "--json", filepath.Join(folder, "run.json"), "--hdr", filepath.Join(folder, "run.hdr"),
				"--result", dir, "--metrics", "127.0.0.1:9", "--metrics-linger", "10s")...)
			require.Equal(t, c.status, r.status, r.stderr)
			golden(t, filepath.Join("runs", c.name, "metrics.txt"), clean(r.metrics))
			for _, file := range []string{"run.json", "run.hdr", "result/result.json", "result/rows.jsonl", "result/latencies.hdr"} {
				text, err := os.ReadFile(filepath.Join(folder, file))
				require.NoError(t, err)
				golden(t, filepath.Join("runs", c.name, filepath.Base(file)), clean(string(text)))
			}
			for _, format := range []string{"markdown", "csv"} {
				page := call(nil, "report", "--format", format, dir)
				require.Equal(t, exitOK, page.status, page.stderr)
				golden(t, filepath.Join("runs", c.name, "page."+format), clean(page.stdout))
			}
		})
	}
}

// TestToldShards merges the shards of a told run.
func TestToldShards(t *testing.T) {
	folder := t.TempDir()
	args := strings.Fields("mem client --rate 300.7 --duration 3 --producers 2 --consumers 2 --max-pending 10 --verify " +
		"-o latency=3.7ms --run-id told queue://A")
	for _, shard := range []string{"1", "2"} {
		r := runTold(t, append(args, "--shard", shard+"/2", "--result", filepath.Join(folder, shard))...)
		golden(t, filepath.Join("runs", "shard"+shard+".txt"), withoutHost(r.stdout+"--- stderr\n"+r.stderr))
	}
	r := call(nil, "merge", "--result", filepath.Join(folder, "both"), filepath.Join(folder, "1"), filepath.Join(folder, "2"))
	golden(t, "runs/merge.txt", withoutHost(strings.ReplaceAll(fmt.Sprintf("status %d\n%s--- stderr\n%s", r.status, r.stdout, r.stderr), folder, "FOLDER")))
}

// TestToldComparison compares two sets of told runs.
func TestToldComparison(t *testing.T) {
	folder := t.TempDir()
	for set, latency := range map[string]int{"before": 3700, "after": 5300} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, set), 0o750))
		for i := range 6 {
			r := runTold(t, "mem", "client", "--rate", "200.3", "--duration", "4", "--max-pending", "20", "--silent",
				"-o", fmt.Sprintf("latency=%dus", latency+100*i), "--result", filepath.Join(folder, set, fmt.Sprint(i)), "queue://A")
			require.Equal(t, exitOK, r.status, r.stderr)
		}
	}
	file := filepath.Join(folder, "compare.json")
	r := call(nil, "compare", "--unlike", "--json", file, filepath.Join(folder, "before"), filepath.Join(folder, "after"))
	clean := func(text string) string { return withoutHost(strings.ReplaceAll(text, folder, "FOLDER")) }
	golden(t, "runs/compare.txt", clean(fmt.Sprintf("status %d\n%s--- stderr\n%s", r.status, r.stdout, r.stderr)))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	golden(t, "runs/compare.json", clean(string(text)))
}

// toldRun is how a told run ended, with its last metrics if it serves any.
type toldRun struct {
	ended
	metrics string
}

// runTold runs perfmq under a fake clock, with the protocol mem alone.
func runTold(t *testing.T, args ...string) (r toldRun) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr output
		l := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		env := Env{
			Args: args, Environ: []string{"GOGC=100"}, Stdout: &stdout, Stderr: &stderr, Factories: []driver.Factory{mem.Factory()},
			Version: run.Version{Number: "v0.0.0"}, FakeClock: true,
			Listen: func(context.Context, string, string, string) (net.Listener, error) { return l, nil },
		}
		status := make(chan int, 1)
		go func() { status <- Main(env) }()
		if strings.Contains(strings.Join(args, " "), "--metrics-linger") {
			for !strings.Contains(stderr.String(), "serving the final metrics") {
				time.Sleep(time.Second) //nolint:forbidigo // by the fake clock
			}
			r.metrics = l.get(t, "/metrics")
		}
		r.ended = ended{<-status, stdout.String(), stderr.String()}
	})
	return r
}

// memoryListener accepts connections from within the process.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { close(l.closed); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

func (l *memoryListener) get(t *testing.T, path string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			l.conns <- far
			return near, nil
		},
	}}
	answer, err := client.Get("http://localhost" + path) //nolint:noctx // in memory
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return string(bytes.TrimSpace(text)) + "\n"
}

var (
	hostKeys = `"(?:cpu|cores|cpus|memory|memoryPeak|machineBusy|machineAll|gcPauses|gcPauseMax|cpuSeconds|cpuShare|` +
		`gcPauseMaxMicroseconds|memoryPeakBytes|runId|go|run|planHash|os|arch|revision|depth|backlog)": *(?:"[^"]*"|[-+.0-9e]+)`
	hostValue = regexp.MustCompile(`,` + hostKeys + `|` + hostKeys + `,?`)
	hostLine  = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go_|process_|promhttp_|perfmq_(process|cpu|memory|gc|machine|tester|run_end)).*\n`)
)

// withoutHost leaves out the figures of the machine and the process, and random numbers.
func withoutHost(text string) string {
	return hostLine.ReplaceAllString(hostValue.ReplaceAllString(text, ""), "")
}
