//go:build unix

package e2e

import (
	"bufio"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetrics scrapes during the run, and at its end, where the values are those of the summary. The server goes with
// the run, so the end is a drain that lasts: another consumer has taken messages that the client waits for.
func TestMetrics(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	thief := startThief(t, a, queue)
	p := start(t, "amqp", "client", "--url", a.AMQPURL(), "--duration", "3", "--warmup", "1", "--rate", "300", "--max-pending", "20",
		"--drain-timeout", "10m", "--metrics", "127.0.0.1:0", "queue://"+queue)
	url := metricsOf(t, &p.stderr)
	p.printed("--- warmup false")
	during := scrape(t, url)
	require.NotZero(t, during["perfmq_messages_sent_total"])
	require.NotContains(t, during, "perfmq_run_success")
	var last map[string]float64
	eventually(t, "a second of the drain is over", func() bool {
		last = scrape(t, url)
		return last[`perfmq_phase{phase="drain"}`] == 1
	})
	emptied(t, a, queue)
	thief.signal(syscall.SIGTERM)
	stolen := thief.wait(limit).summary.TotalReceived
	eventually(t, "the values after the last message", func() bool {
		last = scrape(t, url)
		return last["perfmq_messages_received_total"] == last["perfmq_messages_completed_total"]-float64(stolen)
	})
	p.signal(syscall.SIGINT)
	p.told("stopping: ")
	p.signal(syscall.SIGINT)
	r := p.wait(limit)
	require.Equal(t, statusFailed, r.status)
	require.Equal(t, stolen, *r.summary.TotalMissing)

	s := r.summary
	require.Equal(t, float64(s.TotalSent), last["perfmq_messages_sent_total"])
	require.Equal(t, float64(s.TotalBlocked), last["perfmq_messages_blocked_total"])
	require.Equal(t, float64(s.TotalCompleted), last["perfmq_messages_completed_total"])
	require.Equal(t, float64(s.TotalReceived), last["perfmq_messages_received_total"])
	for name, l := range map[string]*latency{
		"send_delay": s.TotalDelaySend, "send_ack": s.TotalSend, "response": s.TotalResponse, "transfer": s.TotalTransfer,
	} {
		require.Equal(t, float64(l.Count), last["perfmq_"+name+`_seconds_count{phase="measure"}`], name)
		require.Equal(t, float64(l.Count), last["perfmq_"+name+`_seconds_bucket{phase="measure",le="+Inf"}`], name)
		require.InDelta(t, l.mean(t)*float64(l.Count)/1e6, last["perfmq_"+name+`_seconds_sum{phase="measure"}`], 0.01*float64(l.Count)/1e6, name)
		all := l.Count + uint64(last["perfmq_"+name+`_seconds_count{phase="warmup"}`])
		want := s.TotalSent
		if name == "transfer" {
			want = s.TotalReceived
		}
		require.Equal(t, want, all, "%s: warm-up and measurement are all messages", name)
	}
	for name, value := range during {
		if strings.HasSuffix(name, "_total") || strings.Contains(name, "_bucket") || strings.Contains(name, "_count") {
			require.LessOrEqual(t, value, last[name], "counters only grow: %s", name)
		}
	}
}

// metricsOf returns the URL of the metrics of a run, from what it says.
func metricsOf(t *testing.T, stderr *lockedBuffer) (url string) {
	t.Helper()
	said := regexp.MustCompile(`note: metrics at (\S+)\n`)
	eventually(t, "the address of the metrics", func() bool {
		found := said.FindStringSubmatch(stderr.String())
		if found != nil {
			url = found[1]
		}
		return found != nil
	})
	return url
}

func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	return metrics(t, resp)
}

// metrics reads Prometheus's text format: a value by name and labels.
func metrics(t *testing.T, resp *http.Response) map[string]float64 {
	t.Helper()
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	values := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		require.Positive(t, at, line)
		value, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err, line)
		values[line[:at]] = value
	}
	require.NoError(t, lines.Err())
	return values
}
