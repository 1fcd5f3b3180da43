package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// hostile returns a remark of a malicious broker: 10 MB that clear the screen, set its title, imitate perfmq's lines
// and contain the password.
func hostile() string {
	return strings.Repeat("\x1b[2J\x1b]0;owned\x07\n--- result: success\n\u202e\u009b31m login app:hunter2! amqp://app:hunter2@h ", 10<<20/88)
}

// TestHostileTexts: texts of peers and users do not control a terminal, do not fill files, and show no password, in any
// output.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	text := hostile()
	s := brokenRun()
	s.Outcome.Reason, s.Findings, s.Outcome.LeftBehind = text, said([]string{text, text}, text), []string{text}
	s.Counters = []driver.Counter{{Name: text, Value: 1}}
	v := &verify.Result{
		Scopes: []verify.Scope{
			{Subscription: scope(text, text, result.Verified{Lost: 1})},
			{Subscription: scope("queue://B", "", result.Verified{Lost: 1})},
		},
		Verification: result.Verification{Unwatched: []string{text}, Notes: []string{text}},
	}
	s.Verified, s.Verification = v, v.Verified()
	run := clientRun()
	run.Destinations = []string{text, "queue://B"}

	folder := t.TempDir()
	jsonFile, hdrFile := filepath.Join(folder, "a.json"), filepath.Join(folder, "a.hdr")
	var console, benchmark bytes.Buffer
	toJSON := musttest.Get(NewJSON(jsonFile, ResultOptions{}))(t)
	toHDR := musttest.Get(NewHDR(hdrFile))(t)
	metrics := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	f := NewFan(NewConsole(&console, ConsoleOptions{}), NewRocketMQ(&benchmark, ConsoleOptions{}), toJSON, toHDR, metrics)
	f.Secrets = &safetext.Secrets{}
	f.Secrets.Add("app", "hunter2")
	require.NoError(t, f.Start(run))
	interval := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	interval.Protocol = s.Counters
	require.NoError(t, f.Interval(interval))
	require.NoError(t, f.Summary(s))
	_, scraped := request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.NoError(t, f.Close())

	written := musttest.Get(os.ReadFile(jsonFile))(t)
	var records []map[string]any
	require.NoError(t, json.Unmarshal(written, &records))
	require.Len(t, records, 2)
	logged := musttest.Get(os.ReadFile(hdrFile))(t)
	for name, out := range map[string]struct {
		text string
		most int
	}{
		"console":  {console.String(), 20 << 10},
		"rocketmq": {benchmark.String(), 20 << 10},
		"json":     {string(written), 6 * 12 * safetext.MaxField}, // twelve texts, escaped
		"hdr":      {string(logged), 4 << 10},
		"metrics":  {scraped, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Less(t, len(out.text), out.most)
			assert.False(t, strings.ContainsAny(out.text, "\x1b\x07\u009b\u202e"), "escape sequences")
			assert.False(t, strings.Contains(out.text, "hunter2"), "the password")
			if name != "hdr" {
				assert.True(t, strings.Contains(out.text, "bytes left out)"), "how much more there was")
			}
			if name != "json" {
				assert.LessOrEqual(t, strings.Count(out.text, "\n--- result:"), 1, "lines of others")
			}
		})
	}
	assert.Equal(t, text, s.Outcome.Reason, "the engine's own summary is left alone")
	assert.True(t, strings.HasPrefix(records[1]["problems"].([]any)[0].(string), "\x1b[2J\x1b]0;owned\x07\n--- result: success"),
		"JSON means the same as before")
}

func TestLongLists(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	writeList(&b, "--- problem:", make([]string, 100_000))
	assert.Equal(t, maxListed+1, strings.Count(b.String(), "\n"))
	assert.True(t, strings.HasSuffix(b.String(), "\n--- problem: and 99900 more\n"), b.String()[b.Len()-50:])
}
