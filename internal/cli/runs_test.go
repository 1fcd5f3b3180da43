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
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/transport"
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
	{"rated", "mem client --rate 300.7 --duration 4 --warmup 1 --max-pending 10 -o latency=3.7ms -o delivery-latency=1.9ms queue://A", result.StatusOK},
	{"lost", "mem client --rate 300.7 --duration 3 --max-pending 30 --verify --drain-timeout 2s -o latency=3.7ms -o lose=300 -o duplicate=200 queue://A", result.StatusFailed},
	{"refused", "mem producer --rate 101.3 --duration 3 --max-pending 20 -o latency=2.3ms -o reject=10 -o fail=7 -o release=50 -o modify=60 queue://A", result.StatusFailed},
	{"stalled", "mem client --rate 200.3 --duration 5 --max-pending 40 -o latency=1.7ms -o stall-after=1500ms -o stall-for=2s queue://A", result.StatusOK},
	{"transactions", "mem producer --message-count 300 --max-pending 20 --commit-interval 10 -o latency=7.9ms -o fail-commit=9 queue://A", result.StatusFailed},
	{"late", "mem client --rate 80.3 --duration 3 --tx --tx-size 4 --delivery-delay 200ms --priority 3 --property k=v -o latency=900us queue://A", result.StatusOK},
	{"scenario", "run SCENARIO", result.StatusThreshold},
}

// shown are the flags of a format.
var shown = map[string][]string{run.Artemis: {"--show-latency"}}

// holdTold compares outputs of a told run, by the names of their golden files. Goroutines that are due at one moment of
// the fake clock run in any order, which now and then changes a count of waits, or the end by a look (5 ms): the outputs
// of one run of thirty must be those of the files.
func holdTold(t *testing.T, outputs func(folder string) map[string]string) {
	t.Helper()
	const most = 30
	for try := 1; ; try++ {
		folder := t.TempDir()
		got, same := outputs(folder), true
		for name, text := range got {
			text = strings.ReplaceAll(text, transport.Version, "devel") // so that a release changes no file, nor another Go
			text = strings.ReplaceAll(text, runtime.Version(), "go")
			got[name] = withoutHost(strings.ReplaceAll(text, folder, "FOLDER"))
			want, err := os.ReadFile(filepath.Join("testdata", "golden", "runs", name))
			same = same && err == nil && string(want) == got[name]
		}
		if same || *update || try == most {
			for name, text := range got {
				golden(t, filepath.Join("runs", name), text)
			}
			return
		}
	}
}

// TestToldRuns holds every output of eight runs to the byte.
func TestToldRuns(t *testing.T) {
	t.Parallel()
	for _, c := range toldRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			perfmq := func(folder string, flags ...string) toldRun {
				scenario := filepath.Join(folder, "told.yaml")
				require.NoError(t, os.WriteFile(scenario, []byte(scenarioOfRuns), 0o600))
				r := runTold(t, append(strings.Fields(strings.ReplaceAll(c.args, "SCENARIO", scenario)), flags...)...)
				require.Equal(t, c.status, r.status, r.stderr)
				return r
			}
			for _, format := range []string{run.Artemis, run.Short, run.RocketMQ} {
				holdTold(t, func(folder string) map[string]string {
					r := perfmq(folder, append(shown[format], "--format", format)...)
					return map[string]string{filepath.Join(c.name, format+".txt"): r.stdout + "--- stderr\n" + r.stderr}
				})
			}
			holdTold(t, func(folder string) map[string]string {
				dir := filepath.Join(folder, "result")
				r := perfmq(folder, "--silent", "--json", filepath.Join(folder, "run.json"), "--hdr", filepath.Join(folder, "run.hdr"),
					"--result", dir, "--metrics", "127.0.0.1:9", "--metrics-linger", "10s")
				got := map[string]string{filepath.Join(c.name, "metrics.txt"): r.metrics}
				for _, file := range []string{"run.json", "run.hdr", "result/result.json", "result/rows.jsonl", "result/latencies.hdr"} {
					text := musttest.Get(os.ReadFile(filepath.Join(folder, file)))(t)
					got[filepath.Join(c.name, filepath.Base(file))] = string(text)
				}
				for _, format := range []string{"markdown", "csv"} {
					page := call(nil, "report", "--format", format, dir)
					require.Equal(t, result.StatusOK, page.status, page.stderr)
					got[filepath.Join(c.name, "page."+format)] = page.stdout
				}
				return got
			})
		})
	}
}

// TestToldShards merges the shards of a told run.
func TestToldShards(t *testing.T) {
	args := strings.Fields("mem client --rate 300.7 --duration 3 --producers 2 --consumers 2 --max-pending 10 --verify " +
		"-o latency=3.7ms --run-id told queue://A")
	holdTold(t, func(folder string) map[string]string {
		got := map[string]string{}
		for _, shard := range []string{"1", "2"} {
			r := runTold(t, append(args, "--shard", shard+"/2", "--result", filepath.Join(folder, shard))...)
			got["shard"+shard+".txt"] = r.stdout + "--- stderr\n" + r.stderr
		}
		r := call(nil, "merge", "--result", filepath.Join(folder, "both"), filepath.Join(folder, "1"), filepath.Join(folder, "2"))
		got["merge.txt"] = fmt.Sprintf("status %d\n%s--- stderr\n%s", r.status, r.stdout, r.stderr)
		return got
	})
}

// TestToldComparison compares two sets of told runs.
func TestToldComparison(t *testing.T) {
	t.Parallel()
	holdTold(t, func(folder string) map[string]string {
		for set, latency := range map[string]int{"before": 3700, "after": 5300} {
			require.NoError(t, os.Mkdir(filepath.Join(folder, set), 0o750))
			for i := range 6 {
				r := runTold(t, "mem", "client", "--rate", "200.3", "--duration", "4", "--max-pending", "20", "--silent",
					"-o", fmt.Sprintf("latency=%dus", latency+100*i), "--result", filepath.Join(folder, set, fmt.Sprint(i)), "queue://A")
				require.Equal(t, result.StatusOK, r.status, r.stderr)
			}
		}
		r := call(nil, "compare", "--unlike", filepath.Join(folder, "before"), filepath.Join(folder, "after"))
		return map[string]string{
			"compare.txt": fmt.Sprintf("status %d\n%s--- stderr\n%s", r.status, r.stdout, r.stderr),
		}
	})
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
	text := musttest.Get(io.ReadAll(answer.Body))(t)
	assert.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return string(bytes.TrimSpace(text)) + "\n"
}

var (
	hostKeys = `"(?:cpu|cores|cpus|memory|memoryPeak|machineBusy|machineAll|gcPauses|gcPauseMax|cpuSeconds|cpuShare|` +
		`gcPauseMaxMicroseconds|memoryPeakBytes|runId|go|run|planHash|os|arch|revision|depth|backlog|digest)": *(?:"[^"]*"|[-+.0-9e]+)`
	hostValue = regexp.MustCompile(`,` + hostKeys + `|` + hostKeys + `,?`)
	hostLine  = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go_|process_|promhttp_|perfmq_(process|cpu|memory|gc|machine|tester|run_end)).*\n|` +
		`^\| machine \| \w+, \w+/\w+, \d+ proc.*\n`)
)

// withoutHost leaves out the figures of the machine and the process, and random numbers.
func withoutHost(text string) string {
	return hostLine.ReplaceAllString(hostValue.ReplaceAllString(text, ""), "")
}
