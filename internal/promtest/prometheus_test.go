//go:build unix

package promtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/scenarios"
)

const deploy = "../../deploy/"

// promtool runs promtool.
func promtool(t *testing.T, stdin io.Reader, args ...string) {
	t.Helper()
	brokertest.Needs(t, "promtool")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "promtool", args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "promtool %s (Debian's package prometheus):\n%s", args, out)
}

// TestAlerts: each alert has a test that it fires, and not too early.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, nil, "test", "rules", deploy+"alerts_test.yml", deploy+"canary-alerts_test.yml")
	rules := musttest.Get(os.ReadFile(deploy + "alerts.yml"))(t)
	tests := musttest.Get(os.ReadFile(deploy + "alerts_test.yml"))(t)
	rules = append(rules, musttest.Get(os.ReadFile(deploy+"canary-alerts.yml"))(t)...)
	tests = append(tests, musttest.Get(os.ReadFile(deploy+"canary-alerts_test.yml"))(t)...)
	n := 0
	for line := range strings.Lines(string(rules)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok {
			require.Contains(t, string(tests), "        alertname: "+name+"\n        exp_alerts:\n          - ", "%s is not tested", name)
			n++
		}
	}
	require.Positive(t, n)
}

// TestNames: perfmq has all metrics that dashboard and alerts name. The table of docs/prometheus.md is that of the
// registry (TestMetricNames of package report).
func TestNames(t *testing.T) {
	t.Parallel()
	page := string(musttest.Get(os.ReadFile("../../docs/prometheus.md"))(t))
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, file := range []string{"grafana-dashboard.json", "alerts.yml", "canary-alerts.yml"} {
		text := musttest.Get(os.ReadFile(deploy + file))(t)
		names := regexp.MustCompile(`perfmq_[a-z_0-9]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names, file)
		for _, name := range names {
			if name != "perfmq_canary" && !strings.Contains(page, "\n| `"+name+"` | ") { // that is a recorded series
				base := suffix.ReplaceAllString(name, "")
				require.Contains(t, page, "\n| `"+base+"` | histogram | ", "%s of %s", name, file)
			}
		}
	}
}

// The load: two steps, so that there is everything that a dashboard shows. It lasts longer than Prometheus takes to
// restart.
const plan = `version: 1
name: promtest
verify: true
broker: {protocol: amqp, url: amqp://localhost:5672}
groups:
  senders: {role: producer, destination: queue://perfmq.prometheus, max-pending: 20, rate: 200}
  readers: {role: consumer, destination: queue://perfmq.prometheus}
  askers: {role: requester, destination: queue://perfmq.service, max-pending: 20, rate: 20}
  answerers: {role: responder, destination: queue://perfmq.service}
  crowd: {role: connections, rate: 2, hold: 2s}
steps:
  - {name: first, duration: 6s, warmup: 1s}
  - {name: second, duration: 21s}
thresholds:
  - failed == 0
`

// load is a load that runs under a Prometheus.
type load struct {
	metrics string // HOST:PORT, of a port that nobody else takes
	result  string // folder
	ended   chan int
	stderr  bytes.Buffer
}

// listen takes a port below the system's range for outgoing connections, so that nobody gets it once it is closed.
func listen(t *testing.T) net.Listener {
	t.Helper()
	for {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(10_000))))
		if err == nil {
			return l
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

func newLoad(t *testing.T) *load {
	t.Helper()
	listener := listen(t)
	defer listener.Close()
	return &load{metrics: listener.Addr().String(), result: filepath.Join(t.TempDir(), "result"), ended: make(chan int, 1)}
}

func (l *load) start(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "broker.log")
	require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	jvm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "jvm_memory_used_bytes{area=\"heap\"} 1e8\njvm_gc_pause_seconds_sum 1.5\n")
	}))
	t.Cleanup(jvm.Close)
	signals := make(chan os.Signal, 3)
	go func() {
		l.ended <- cli.Main(cli.Env{
			Args: []string{
				"run", file, "--embedded", "--reconnect", "--metrics", l.metrics, "--metrics-linger", "15s", "--result", l.result,
				"--broker-pid", strconv.Itoa(os.Getpid()), "--broker-metrics", jvm.URL, "--broker-log", log,
			},
			Environ: []string{"GOGC=100"}, Stdout: io.Discard, Stderr: &l.stderr,
			Signals: signals, Factories: drivers.All(), Scenarios: scenarios.FS(), Version: run.NewVersion("promtest"),
		})
	}()
}

// server is a Prometheus to query.
type server struct {
	*brokertest.Prometheus
	t *testing.T
}

// sample is a value at a time in seconds since the epoch.
type sample [2]float64

// UnmarshalJSON reads [time, "value"].
func (s *sample) UnmarshalJSON(text []byte) error {
	var parts [2]any
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	s[0], _ = parts[0].(float64)
	value, _ := parts[1].(string)
	var err error
	s[1], err = strconv.ParseFloat(value, 64)
	return err
}

type series struct {
	Metric map[string]string `json:"metric"`
	Value  sample            `json:"value"`
	Values []sample          `json:"values"`
}

// query asks at a time; the zero time is now.
func (s server) query(expr string, at time.Time) []series {
	s.t.Helper()
	form := url.Values{"query": {expr}}
	if !at.IsZero() {
		form.Set("time", strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64))
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r := musttest.Get(http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/api/v1/query?"+form.Encode(), nil))(s.t)
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []series }
	}
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(s.t, "success", answer.Status, "%s: %s", expr, answer.Error)
	return answer.Data.Result
}

// value asks for one value.
func (s server) value(expr string, at time.Time) float64 {
	s.t.Helper()
	list := s.query(expr, at)
	require.Len(s.t, list, 1, expr)
	return list[0].Value[1]
}

// panelQueries are the queries of the dashboard, as Grafana would send them; those of its annotations, whether they hold or not.
func panelQueries(t *testing.T) map[string]string {
	t.Helper()
	text := musttest.Get(os.ReadFile(deploy + "grafana-dashboard.json"))(t)
	type target struct{ Expr string }
	type panel struct {
		Title, Type string
		Targets     []target
	}
	var dashboard struct {
		Panels      []panel
		Annotations struct{ List []target }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	queries := map[string]string{}
	for _, panel := range append(dashboard.Panels, panel{Title: "annotation", Targets: dashboard.Annotations.List}) {
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
		for i, target := range panel.Targets {
			names := strings.NewReplacer("$__rate_interval", "10s", "$job", "perfmq", "$instance", ".*")
			expr := strings.TrimSuffix(names.Replace(target.Expr), " > 0")
			require.NotContains(t, expr, "$", "a variable that this test does not know")
			queries[fmt.Sprintf("%s %d", panel.Title, i)] = expr
		}
	}
	require.Greater(t, len(queries), 30)
	return queries
}

// example writes the example configuration with the address of a load.
func example(t *testing.T, l *load) string {
	t.Helper()
	text := musttest.Get(os.ReadFile(deploy + "prometheus.yml"))(t)
	require.Contains(t, string(text), "127.0.0.1:9400")
	alerts := musttest.Get(filepath.Abs(deploy + "alerts.yml"))(t)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	changed := strings.NewReplacer("127.0.0.1:9400", l.metrics, "alerts.yml", alerts).Replace(string(text))
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	return file
}

// eventually waits for a condition, asking each tenth of a second.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 2*time.Minute, 100*time.Millisecond, what)
}

// TestPrometheus runs a load under a Prometheus that is restarted.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	promtool(t, nil, "check", "config", deploy+"prometheus.yml")
	queries := panelQueries(t)
	l := newLoad(t)
	scraper := server{brokertest.StartPrometheus(t, example(t, l)), t}
	l.start(t) // last, so that all of it is scraped however long Prometheus takes to start

	ask := func(at time.Time) {
		for name, expr := range queries {
			if list := scraper.query(expr, at); hasNumber(list) {
				delete(queries, name)
			}
		}
	}
	eventually(t, "some seconds of the second step", func() bool {
		const expr = `perfmq_step_info{step="second"} and on () perfmq_messages_sent_total > 2000 ` +
			`and on () rate(perfmq_messages_completed_total[10s]) > 0`
		return len(scraper.query(expr, time.Time{})) > 0
	})
	body := scrape(t, l.metrics)
	promtool(t, strings.NewReader(body), "check", "metrics")
	ask(time.Time{})
	require.NoError(t, scraper.Stop())
	require.NoError(t, scraper.Start(t.Context()))

	// The queries for values that exist only at the end are made while the end is served.
	eventually(t, "the end", func() bool { return len(scraper.query("perfmq_run_success == 1", time.Time{})) > 0 })
	end := time.Now()
	ask(end)
	require.Equal(t, 0, <-l.ended, l.stderr.String())
	require.Empty(t, queries, "panels without data")
	l.compareRates(t, scraper, end)
	l.compareQuantiles(t, scraper, end)
}

// hasNumber reports whether a query has returned a value other than NaN.
func hasNumber(list []series) bool {
	for _, s := range list {
		if !math.IsNaN(s.Value[1]) {
			return true
		}
	}
	return false
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil))(t)
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body := musttest.Get(io.ReadAll(response.Body))(t)
	return string(body)
}

// compareRates: each value in Prometheus was the total of a row at that time, also over the restart of Prometheus, and
// no counter was reset. So Prometheus computes the rows' rates.
func (l *load) compareRates(t *testing.T, s server, end time.Time) {
	t.Helper()
	got := musttest.Get(result.Read(l.result))(t)
	at := map[uint64]float64{} // when so many were completed, in seconds since the epoch
	var total uint64
	for i := range got.Rows {
		r := &got.Rows[i]
		n := r.Producers.Completed
		if total += n; n > 0 {
			at[total] = float64(r.Time) / 1e6
		}
	}
	require.EqualValues(t, got.Total.Producers.Completed, total, "the rows add up")
	took := map[float64]float64{} // from the time of a sample to its end
	for _, raw := range s.query(`scrape_duration_seconds[3m]`, end) {
		for _, v := range raw.Values {
			took[v[0]] = max(took[v[0]], v[1])
		}
	}
	samples := 0
	for _, raw := range s.query(`perfmq_messages_completed_total[3m]`, end) {
		var before float64
		for _, v := range raw.Values {
			if v[1] == before {
				continue
			}
			when, ok := at[uint64(v[1])]
			require.True(t, ok, "there never was a total of %v", v[1])
			require.Contains(t, took, v[0])
			require.Greater(t, v[0]+took[v[0]]+0.01, when, "nothing is told before it happened")
			before = v[1]
			samples++
		}
		require.EqualValues(t, total, before, "the final total")
	}
	require.Positive(t, samples)
	require.Zero(t, s.value(`sum(resets(perfmq_messages_completed_total[3m]))`, end))
	require.InEpsilon(t, *got.Figures.Completed, s.value(`sum(perfmq_run_rate{messages="completed",value="average"})`, end), 1e-9)
}

// compareQuantiles: the quantiles of the histograms are in the same buckets as the quantiles of the HdrHistograms.
func (l *load) compareQuantiles(t *testing.T, s server, end time.Time) {
	t.Helper()
	got := musttest.Get(result.Read(l.result))(t)
	require.True(t, got.Outcome.Success)
	for name, hdr := range map[string]*result.Latency{
		"send_ack": got.Latencies[result.Ack], "response": got.Latencies[result.Response], "send_delay": got.Latencies[result.Delay], "transfer": got.Latencies[result.Transfer],
	} {
		const sums = `sum(perfmq_%s_seconds_%s{phase="measure"})`
		require.EqualValues(t, hdr.Count, s.value(fmt.Sprintf(sums, name, "count"), end), name)
		require.InDelta(t, float64(hdr.Sum)/1e6, s.value(fmt.Sprintf(sums, name, "sum"), end), 1e-6, name)
		for p, us := range map[string]int64{"0.5": hdr.P50, "0.9": hdr.P90, "0.99": hdr.P99, "0.999": hdr.P999} {
			v := float64(us) / 1e6
			q := s.value(fmt.Sprintf(`histogram_quantile(%s, sum by (le) (perfmq_%s_seconds_bucket{phase="measure"}))`, p, name), end)
			lower, upper := bucketOf(v)
			// The highest value is exact in the HdrHistogram and up to 1% higher in the buckets.
			if us == hdr.Max {
				_, upper = bucketOf(1.01 * v)
			}
			require.GreaterOrEqual(t, q, lower*(1-1e-9), "%s %s: %v", name, p, v)
			require.LessOrEqual(t, q, upper*(1+1e-9), "%s %s: %v", name, p, v)
		}
	}
}

// bucketOf returns the bounds of the classic bucket of a time in seconds.
func bucketOf(v float64) (lower, upper float64) {
	for decade := 1e-5; decade < 1000; decade *= 10 {
		for _, bound := range []float64{decade, 2.5 * decade, 5 * decade} {
			if v <= bound*(1+1e-9) {
				return lower, bound
			}
			lower = bound
		}
	}
	return lower, math.Inf(1)
}

// TestRemoteWrite: a Prometheus to which a run writes has the same series and final values as one that scrapes the run,
// with the exact number of messages, and they end a minute after the run.
func TestRemoteWrite(t *testing.T) {
	t.Parallel()
	l := newLoad(t)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	config := fmt.Sprintf("scrape_configs:\n  - {job_name: scraped, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: ['%s']}]}\n", l.metrics)
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	p := server{brokertest.StartPrometheus(t, file, "--web.enable-remote-write-receiver"), t}
	const messages = 1500
	go func() {
		l.ended <- cli.Main(cli.Env{
			Args: []string{
				"amqp", "client", "--embedded", "--message-count", strconv.Itoa(messages), "--rate", "500", "--warmup", "1s", "--verify", "--label", "env=ci",
				"--remote-write", p.URL(), "--remote-write-interval", "1s", "--result", l.result, "--metrics", l.metrics, "--metrics-linger", "15s",
			},
			Stdout: io.Discard, Stderr: &l.stderr, Signals: make(chan os.Signal), Factories: drivers.All(), Version: run.NewVersion("promtest"),
		})
	}()
	eventually(t, "the end", func() bool { return len(p.query(`perfmq_run_success{job="scraped"} == 1`, time.Time{})) > 0 })
	scraped := p.query(`{job="scraped",__name__!~"up|scrape_.*"}`, time.Time{})
	require.Equal(t, 0, <-l.ended, l.stderr.String())
	end := time.Now()
	require.NotContains(t, l.stderr.String(), "warning")

	host, err := os.Hostname()
	require.NoError(t, err)
	got := musttest.Get(result.Read(l.result))(t)
	of := fmt.Sprintf(`{job="perfmq",instance=%q,run=%q,label_env="ci"}`, host, got.RunID)
	for name, want := range map[string]float64{
		"perfmq_messages_sent_total": messages, "perfmq_messages_completed_total": messages, "perfmq_messages_received_total": messages,
		"perfmq_run_success": 1, `perfmq_remote_writes_total{state="lost"}`: 0,
	} {
		name, labels, _ := strings.Cut(name, "{")
		require.InDelta(t, want, p.value(name+strings.TrimSuffix(of, "}")+","+strings.TrimSuffix(labels, "}")+"}", end), 0, name)
	}
	require.InDelta(t, messages, p.value("sum(perfmq_send_ack_seconds_count"+of+")", end), 0)
	require.GreaterOrEqual(t, p.value("count_over_time(perfmq_messages_sent_total"+of+"[2m])", end), 2.0, "the first and the last")
	require.Empty(t, p.query(`{job="perfmq"}`, end.Add(time.Minute+time.Second)), "it has ended")

	name := func(labels map[string]string) string {
		for _, own := range []string{"job", "instance", "run"} {
			delete(labels, own)
		}
		return string(musttest.Get(json.Marshal(labels))(t))
	}
	written := map[string]float64{}
	for _, s := range p.query(`{job="perfmq"}`, end) {
		written[name(s.Metric)] = s.Value[1]
	}
	require.Greater(t, len(scraped), 200)
	for _, s := range scraped {
		series := name(s.Metric)
		_, known := written[series]
		require.True(t, known, "%s was not written", series)
		if of := s.Metric["__name__"]; strings.HasPrefix(of, "perfmq_") && of != "perfmq_remote_writes_total" && !math.IsNaN(s.Value[1]) {
			require.InDelta(t, s.Value[1], written[series], 0, series)
		}
		delete(written, series)
	}
	require.Empty(t, written)
}
