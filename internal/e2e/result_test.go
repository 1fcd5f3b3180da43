//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// served is perfmq broker, in a process of its own.
type served struct {
	*process
	t *testing.T
}

func serve(t *testing.T, args ...string) *served {
	t.Helper()
	b := start(t, append([]string{
		"broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0", "--listen-rocketmq", "off",
		"--control", "127.0.0.1:0",
	}, args...)...)
	b.printed("Ctrl-C ends it")
	return &served{b, t}
}

// at returns the address of a listener.
func (s *served) at(listener string) string {
	m := regexp.MustCompile(listener + ` +(\S+)`).FindStringSubmatch(s.stdout.String())
	require.Len(s.t, m, 2)
	return m[1]
}

// control sends a request to the broker's control, and returns the body of the answer.
func (s *served) control(method, path, body string) []byte {
	s.t.Helper()
	url := strings.Replace(s.at("control"), "/stats", path, 1)
	request := musttest.Get(http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body)))(s.t)
	request.Header.Set(broker.ControlHeader, "1")
	answer := musttest.Get(http.DefaultClient.Do(request))(s.t)
	defer answer.Body.Close()
	require.Less(s.t, answer.StatusCode, 300)
	text := musttest.Get(io.ReadAll(answer.Body))(s.t)
	return text
}

// stats returns the broker's own counts.
func (s *served) stats() (all broker.Stats) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal(s.control(http.MethodGet, "/stats", ""), &all))
	return all
}

// TestResultOfAKilledRun: after kill -9 all earlier rows are there, none is torn, and the sum lacks at most the
// messages sent since the last row.
func TestResultOfAKilledRun(t *testing.T) {
	t.Parallel()
	const rate = 500
	b := serve(t)
	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "amqp", "producer", "--url", b.at(broker.AMQP), "--rate", strconv.Itoa(rate), "--max-pending", "1000", "--verify", "--result", dir, "queue://Q")
	rows := func() int {
		text, err := os.ReadFile(filepath.Join(dir, runresult.RowsFile))
		if err != nil {
			return 0
		}
		return bytes.Count(text, []byte("\n")) - 1
	}
	eventually(t, "three seconds are written", func() bool { return rows() >= 3 })
	before := rows()
	killed := time.Now()
	require.NoError(t, p.cmd.Process.Kill())
	<-p.done
	ended := time.Now()

	got := musttest.Get(runresult.Read(dir))(t)
	resulttest.Compile(t, runresult.Schema(), runresult.SchemaID).Validate(t, dir)
	require.False(t, got.Complete)
	require.GreaterOrEqual(t, len(got.Rows), before)
	last := time.UnixMicro(got.Rows[len(got.Rows)-1].Time)
	t.Logf("%d rows; the last ended %s before the kill", len(got.Rows), killed.Sub(last))
	var totals store.Totals
	eventually(t, "the broker has noticed", func() bool {
		now := b.stats().Total
		settled := now == totals
		totals = now
		return settled
	})
	sent := got.Total.Producers.Sent
	require.GreaterOrEqual(t, totals.Sent, got.Total.Producers.Completed, "nothing that did not happen")
	due := uint64(rate*ended.Sub(time.UnixMicro(got.Start)).Seconds()) + 1
	require.LessOrEqual(t, totals.Sent, due)
	known := uint64(got.Latencies[runresult.Ack].Count)
	if len(got.Outcome.Warnings) > 0 { // the kill came between a row and its histograms
		known += uint64(got.Rows[len(got.Rows)-1].Latencies[runresult.Ack].Count)
	}
	require.Equal(t, got.Total.Producers.Completed, known, "their latencies are there as well")
	t.Logf("the broker has %d messages, the result %d sent, %d completed", totals.Sent, sent, got.Total.Producers.Completed)
}
