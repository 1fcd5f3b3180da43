package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// told returns a run with problems, findings and warnings.
func told(t *testing.T) *result.Result {
	t.Helper()
	r := resultOf(t, usual())
	r.Outcome = result.Outcome{Status: 1, Reason: "duration reached", Problems: []string{"messages lost: 2"}, Warnings: []string{"perfmq was paused"}}
	measured := float64(r.Latencies[result.Ack].P99)
	r.Thresholds = []result.Threshold{
		{Threshold: "ack.p99 < 50ms", Metric: "ack.p99", Unit: "us", Measured: &measured, Kept: true},
		{Threshold: "completed.avg > 1000", Metric: "completed.avg", Unit: "messages/s"},
	}
	r.Stalls = []result.Stall{{Side: "send", Time: r.Start + 4*second, Elapsed: 4 * second, Length: second}}
	r.Findings = []result.Finding{{Kind: "lost", Count: 2, Subject: "queue://TEST", Failure: true, Examples: []string{"producer-0 12"}, Text: "messages lost: 2"}}
	r.Errors = []result.Failure{{Class: "timeout", Count: 3, Examples: []string{"no answer"}}}
	r.Verification = &result.Verification{Known: true, Sent: 650, Total: result.Verified{Expected: 650, Received: 648, Lost: 2}, Subscriptions: []result.Subscription{
		{Destination: "queue://TEST", Known: true, Verified: result.Verified{Expected: 650, Received: 648, Lost: 2}},
	}}
	depth := uint64(0)
	r.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{
		{Destination: "queue://TEST", Sent: 650, Added: &result.Compared{Count: 653, Least: 650, Most: 650}, Received: 650, Depth: &depth},
	}}
	r.Outages = []result.Outage{
		{
			Time: r.Start + 5_500_000, Elapsed: 5_500_000, Length: 800_000, Confirmed: 800_000, Received: 820_000, Reconnected: 750_000, Tried: 500_000, Back: 740_000,
			Workers: []string{"producer-0", "consumer-0"}, Attempts: 3, InDoubt: 7, Resent: 6, Class: "connection-lost", Error: "read: EOF",
		},
		{
			Time: r.Start + 6_900_000, Elapsed: 6_900_000, Workers: []string{"producer-0"}, NotBack: []string{"producer-0"}, Attempts: 1, Class: "connect",
			Error: "connection refused",
		},
	}
	r.Steps[0].Groups = []result.Group{
		{
			Name: "fast", Due: 410, Counts: result.Counts{Producers: &result.Producers{Sent: 400, Completed: 397, Rejected: 3}},
			Latencies: result.Latencies{result.Ack: latencyOf([]int64{300, 500, 900}, 1), result.Response: latencyOf([]int64{400, 600, 5000}, 1)},
		},
		{Name: "slow", Counts: result.Counts{Producers: &result.Producers{Sent: 250, Completed: 250}}},
		{
			Name: "readers", Counts: result.Counts{Consumers: &result.Consumers{Received: 650}},
			Latencies: result.Latencies{result.Transfer: latencyOf([]int64{700, 900, 2000}, 1)},
		},
	}
	watched(r)
	r.Brokers = []result.Broker{{Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.56.0"}}
	return r
}

// TestGolden compares the page of a known run with golden files.
func TestGolden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run"), told(t))
	p := musttest.Get(Read(filepath.Join(dir, "run")))(t)

	data := musttest.Get(json.MarshalIndent(dataOf(p), "", " "))(t)
	golden(t, "data.json", string(data)+"\n")
	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	_, words, _ := strings.Cut(b.String(), "<body>")
	words, _, _ = strings.Cut(words, "</main>")
	golden(t, "words.html", strings.TrimSpace(words)+"\n")
	b.Reset()
	require.NoError(t, p.Markdown(&b))
	golden(t, "report.md", b.String())
	b.Reset()
	require.NoError(t, p.CSV(&b))
	golden(t, "report.csv", b.String())
}

// TestFigures: the table has the metrics of a run, 500 messages in five measured seconds, also while it continues.
func TestFigures(t *testing.T) {
	t.Parallel()
	read := resultOf(t, usual())
	for _, complete := range []bool{true, false} {
		if !complete {
			read.Complete, read.Figures, read.Steps[0].Figures = false, nil, nil
		}
		run := newRun("run", read, 1)
		l := run.lines()[0]
		values := l.values()
		for name, want := range map[string]float64{
			"sent": 650, "completed": 650, "failed": 0, "elapsed": 7.1, "completed.avg": 100, "completed.min": 0, "completed.max": 200,
			"received.avg": 100, "received.min": 0, "received.max": 200,
		} {
			assert.InDelta(t, want, values[name], 1e-9, name)
		}
	}
}

// TestBacklogRead: the rates of reading a backlog are from its first to its last message, even if the consumers waited
// longer.
func TestBacklogRead(t *testing.T) {
	t.Parallel()
	var loads []load
	for _, n := range []uint64{400, 500, 600, 550, 450, 120, 0, 0} {
		loads = append(loads, load{step: "load", phase: result.Measure, receive: n, backlog: -1})
	}
	r := resultOf(t, loads)
	took := int64(5_300_000)
	r.Figures.Span, r.Figures.MinimumReceived.PerSecond = took, 450
	*r.Figures.Received = 2620e6 / float64(took)
	r.Steps[0].Figures = r.Figures
	run := newRun("read", r, 1)
	values := run.lines()[0].values()
	assert.InDelta(t, 450, values["received.min"], 1e-9)
	assert.InDelta(t, 600, values["received.max"], 1e-9)
}

// TestHostileTexts: no text of a result becomes markup or a formula, or misleads readers.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|=cmd()\u202e\x1b[31m\u2028]]>"
	r := told(t)
	r.Labels = map[string]string{evil: evil}
	r.Scenario = evil
	r.Outcome.Reason, r.Outcome.Problems = evil, []string{evil}
	r.Limit.Text = evil
	r.Findings[0].Text, r.Findings[0].Subject = evil, evil
	r.Errors[0].Class, r.Errors[0].Examples = evil, []string{evil}
	r.Verification.Subscriptions[0].Destination = evil
	r.Verification.Notes = []string{evil}
	r.BrokerCount.Destinations[0].Destination = evil
	r.Brokers[0].Product = evil
	r.Stalls[0].Side = evil
	r.BrokerSide[0].Sources[0], r.BrokerSide[0].FirstWarning, r.BrokerSide[0].Events[0].Text, r.BrokerSide[0].Notes[0] = evil, evil, evil, evil
	r.Outages[0].Error, r.Outages[0].Host, r.Steps[0].Groups[0].Name = evil, evil, evil
	r.Thresholds[0].Threshold = evil
	r.Versions.Perfmq, r.Plan = evil, []byte(`{"steps":[{"groups":[{"rate":"</script><img","broker":{"protocol":"<img","url":"amqp://<img"}}]}]}`)
	r.Steps = append(r.Steps, result.Step{Name: evil})
	r.Commands = []result.Command{{Step: evil, When: "before", Command: evil, Output: evil}}
	run := newRun(evil, r, 1)
	again := newRun("=1+1", r, 1)
	again.group = 1
	p := &Page{Title: evil, Runs: []*Run{run, again}}

	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	html := b.String()
	assert.Equal(t, 1+len((&view{Several: true}).scriptNames()), strings.Count(html, "<script"), "the data and our scripts")
	assert.Equal(t, 1+len((&view{Several: true}).scriptNames()), strings.Count(html, "</script"))
	assert.NotContains(t, html, "<img")
	assert.NotContains(t, html, "onerror=alert(1)>\"")
	assert.NotContains(t, html, "\u202e")
	assert.NotContains(t, html, "\x1b")
	assert.Contains(t, html, "default-src 'none'")
	assert.NotContains(t, html, "unsafe")

	b.Reset()
	require.NoError(t, p.Markdown(&b))
	assert.NotRegexp(t, `[^\\]<`, b.String(), "unescaped")
	assert.NotRegexp(t, `[^\\]\|=cmd`, b.String(), "a cell of its own")
	assert.NotContains(t, b.String(), "\u202e")

	b.Reset()
	require.NoError(t, p.CSV(&b))
	assert.Contains(t, b.String(), "\n'=1+1,")
}

func long(seconds int) *result.Result {
	ack := latencyOf([]int64{300, 400, 500, 90000}, 1)
	h := head()
	r := result.NewSum(h)
	var rows []result.Row
	for i := range seconds {
		row := rowsOf([]load{{step: "load", phase: result.Measure, sent: 4000, completed: 4000, receive: 3990, backlog: int64(10 * i)}})[0]
		row.Elapsed, row.Time = int64(i+1)*second, h.Start+int64(i+1)*second
		row.Latencies = result.Latencies{result.Delay: ack, result.Ack: ack, result.Response: ack, result.Transfer: ack}
		switch i {
		case seconds * 19 / 20:
			row.Producers.Completed = 1
		case seconds / 3:
			row.Producers.Completed, row.Producers.Sent = 7000, 7000
		}
		r.AddRow(&row)
		rows = append(rows, row)
	}
	r.Rows = rows
	return r
}

// TestLong: the page of two hours keeps the lowest and the highest second, and stays small.
func TestLong(t *testing.T) {
	t.Parallel()
	const seconds = 2 * 3600
	run := newRun("night", long(seconds), 1)
	p := &Page{Title: "night", Runs: []*Run{run}}
	s := run.series
	assert.LessOrEqual(t, len(s.points), maxPoints)
	assert.Greater(t, len(s.points), maxPoints/4)
	low, high, length, completed := math.Inf(1), 0.0, int64(0), uint64(0)
	for i := range s.points {
		v := s.points[i].values["completed"]
		low, high = min(low, v.low), max(high, v.high)
		length, completed = length+s.points[i].length, completed+uint64(v.amount/1e6)
	}
	assert.Equal(t, []float64{1, 7000}, []float64{low, high})
	assert.Equal(t, int64(seconds)*second, length)
	assert.Equal(t, uint64(4000*(seconds-2)+7001), completed)
	var b bytes.Buffer
	require.NoError(t, p.HTML(&b))
	assert.Less(t, b.Len(), 1<<20)
}

// TestThinning: steps and phases keep points of their own within the bound.
func TestThinning(t *testing.T) {
	t.Parallel()
	s := &series{limit: 50}
	var at int64
	for i := range 2000 {
		at += second
		row := rowsOf([]load{{step: fmt.Sprint("step", i/3), phase: result.Measure, completed: uint64(i), sent: uint64(i)}})[0]
		row.Elapsed = at
		s.add(&row)
		require.LessOrEqual(t, len(s.points), 100)
	}
	var sum uint64
	for i := range s.points {
		sum += uint64(s.points[i].values["completed"].amount / 1e6)
	}
	assert.Equal(t, uint64(2000*1999/2), sum)
	assert.Equal(t, at, s.points[len(s.points)-1].to)
}

// TestCurve: each rank has the value of the message at that rank; the last value is the maximum.
func TestCurve(t *testing.T) {
	t.Parallel()
	values := make([]int64, 1000)
	for i := range values {
		values[i] = int64(i + 1)
	}
	c := distributionOf(latencyOf(values, 1))
	require.NotNil(t, c)
	assert.Equal(t, []number64{1, 903, 991, 1000}, []number64{c.Value[0], c.Value[20], c.Value[40], c.Value[60]}, "0, 90, 99 and 100%")
	assert.Equal(t, []number64{501, 991, 999}, c.Marks)
}

// TestTooMany: the number of runs on a page is bounded.
func TestTooMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range MaxRuns + 1 {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, result.RowsFile), nil, 0o600))
	}
	_, err := Read(dir)
	require.ErrorIs(t, err, ErrTooMany)
	_, err = Read(t.TempDir())
	require.ErrorIs(t, err, result.ErrNoResult)
}

// TestPinned: third-party files are unchanged: uPlot 1.6.32 (npm, MIT) is in every page, axe-core 4.14.1 (npm, MPL-2.0)
// only in a test.
func TestPinned(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"assets/uplot/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"assets/uplot/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"testdata/axe/axe.min.js":        "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
	} {
		text := musttest.Get(os.ReadFile(path))(t)
		assert.Equal(t, want, fmt.Sprintf("%x", sha256.Sum256(text)), path)
	}
}

// TestManyOutages: the numbers of outages in table and charts are bounded, and the table says so.
func TestManyOutages(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	for i := range 600 {
		r.Outages = append(r.Outages, result.Outage{Elapsed: int64(i) * 10_000, Length: 1000, Workers: []string{"producer-0"}, Class: "connection-lost"})
	}
	run := newRun("run", r, 1)
	table := cutTables([]Table{outageTable(run)})[0]
	assert.Len(t, table.Rows, maxItems)
	assert.Contains(t, table.Note, "The first 200 of 600.")
	assert.Len(t, run.outageBands(), maxItems)
	run.Result.MoreOutages = &result.MoreOutages{Count: 5000, Length: 9_400_000, Longest: 3_000_000}
	assert.Contains(t, cutTables([]Table{outageTable(run)})[0].Note, "The first 200 of 5600.")
	assert.Equal(t, []string{"5600 outages, 10 s in all, the longest 3 s; the rate was not seen to recover after 600; over the whole run none: the rate was reached"}, run.limits())
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", -3: "-3", 3: "3", 1234.4: "1,234", -1234.4: "-1,234", -99.96: "-100", 12.34: "12.3", -12.34: "-12.3", 1.234: "1.23", -1.234: "-1.23",
		math.Copysign(0, -1): "0", math.Inf(1): "-",
	} {
		assert.Equal(t, want, number(v))
	}
}

// TestPlain: no text becomes markup, a link or a mention in Markdown.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a  b":                            "a  b",
		"*a* <b> #1 x|y":                  `\*a\* \<b\> \#1 x\|y`,
		"one\ntwo\x1b":                    `one two\u001b`,
		"thanks @admin!":                  "thanks `@admin!`",
		"see http://evil.example/a_b now": "see `http://evil.example/a_b` now",
		"(WWW.evil.example)":              "`(WWW.evil.example)`",
		"queue://TEST: lost, 2.":          "`queue://TEST`: lost, 2.",
		"x://`*a*`|b\\":                   "`x://\\u0060*a*\\u0060\\u007cb\\u005c`",
	} {
		assert.Equal(t, want, plain(text))
	}
}

// TestTiles: the tiles have the numbers of a run, and an unknown number is never 0.
func TestTiles(t *testing.T) {
	t.Parallel()
	tiles := func(change func(*result.Result)) []tile {
		r := resultOf(t, usual())
		change(r)
		return newRun("run", r, 1).tiles()
	}
	assert.Equal(t, []tile{
		{"completed", "100/s", ""},
		{"ack p50", "923 µs", ""},
		{"ack p99", "2.25 ms", ""},
		{"ack max", "2.29 ms", ""},
		{"lost", unmeasured, ""},
		{"duplicated", unmeasured, ""},
		{"thresholds", "none", ""},
		{"limit", "none", ""},
	}, tiles(func(*result.Result) {}))
	assert.Equal(t, []tile{
		{"lost", "0", "good"}, {"duplicated", "2", "warn"}, {"thresholds", "1/2", "bad"}, {"limit", "outage", "warn"},
	}, tiles(func(r *result.Result) {
		r.Verification = &result.Verification{Known: true, Total: result.Verified{Duplicates: 2}}
		r.Thresholds = []result.Threshold{{Kept: true}, {}}
		r.Outages = []result.Outage{{Length: second}}
	})[4:])
	assert.Equal(t, []tile{
		{"lost", "3", "bad"}, {"duplicated", "0", "good"}, {"thresholds", "1/1", "good"}, {"limit", "the machine", "warn"},
	}, tiles(func(r *result.Result) {
		r.Verification = &result.Verification{Known: true, Total: result.Verified{Lost: 3}}
		r.Findings = []result.Finding{{Kind: "lost", Failure: true}}
		r.Thresholds = []result.Threshold{{Kept: true}}
		r.Limit = &result.Limit{Kind: result.LimitMachine}
	})[4:])
	nothing := (&Run{Result: &result.Result{}}).tiles()
	for _, x := range nothing[:6] {
		assert.Equal(t, tile{x.Label, unmeasured, ""}, x)
	}
}

// TestUnconfirmed: messages in doubt are no failed ones, and only tables with some have a column of them.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	p := r.Total.Producers
	p.Rejected, p.Released, p.Modified, p.Failed = 1, 2, 3, 4
	run := newRun("run", r, 1)
	assert.NotContains(t, messages([]*Run{run}).Head, unconfirmed)
	p.Unconfirmed = 15
	table := messages([]*Run{run})
	assert.Equal(t, []string{"total", "completed", "failed", unconfirmed}, table.Head[2:6])
	assert.Equal(t, []string{"650", "650", "10", "15"}, table.Rows[0][2:6])
	assert.Equal(t, "Sent 650 messages in 7.10 s; 650 completed, 10 failed, 15 unconfirmed, 650 received.", run.lines()[0].counted())
}

// TestRepeat: a page has the commands that repeat a run, as its plan has them.
func TestRepeat(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a run")
	write(t, dir, resultOf(t, usual()))
	for plan, want := range map[string][]string{
		"": {"perfmq run '" + dir + "'"},
		"# perfmq v1 (go1)\n# perfmq amqp client queue://A\nversion: 1\n":        {"perfmq run '" + dir + "'", "perfmq amqp client queue://A"},
		"# perfmq v1 (go1)\n# note: this was --shard 1/2 of run 7\nversion: 1\n": {"perfmq run '" + dir + "'"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, result.PlanFile), []byte(plan), 0o600))
		p := musttest.Get(Read(dir))(t)
		assert.Equal(t, want, p.view().Stories[0].Repeat)
	}
}

// TestVerdict: a success with an outage is amber, and a run that was killed is neither a success nor failed.
func TestVerdict(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	run := newRun("run", r, 1)
	mark, v := run.verdict()
	assert.Equal(t, []string{"good", "success"}, []string{mark, v.String()})
	run.Result.Outages = []result.Outage{{Length: 40 * second, InDoubt: 15, Recovered: 1}}
	run.Result.Verification = &result.Verification{Known: true, Total: result.Verified{Duplicates: 2}}
	mark, v = run.verdict()
	assert.Equal(t, []string{"warn", "success after 1 outage of 40 s: 0 lost, 15 in doubt, 2 duplicated"}, []string{mark, v.String()})
	assert.Equal(t, []string{"1 outage of 40 s; over the whole run none: the rate was reached"}, run.limits())
	run.Result.Complete, run.Result.Outages = false, nil
	run.Result.Outcome = result.Outcome{Problems: []string{"there is no result.json"}}
	mark, v = run.verdict()
	assert.Equal(t, []string{"bad", "unfinished"}, []string{mark, v.String()})
}

// TestSlowest: the page has the slowest messages of the trace, with what the run did meanwhile.
func TestSlowest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	r := told(t)
	at := func(ms int64) int64 { return r.Start + ms*1000 }
	r.Trace = &result.Trace{Sample: "1/1000", Events: 2000}
	r.Stalls = []result.Stall{{Side: "both", Time: at(4100), Elapsed: 4_100_000, Length: 800_000}}
	r.Outages = []result.Outage{{Time: at(6200), Elapsed: 6_200_000, Length: 300_000}}
	r.Rows[5].Tester.Pauses, r.Rows[5].Tester.PauseMax = 1, 213_000
	w := musttest.Get(result.NewWriter(dir))(t)
	require.NoError(t, w.Start(r.Head))
	for i := range r.Rows {
		require.NoError(t, w.Row(r.Rows[i]))
	}
	for n := range int64(150) {
		var list []result.TraceEvent
		add := func(event string, ms int64, worker string) {
			list = append(list, result.TraceEvent{ID: fmt.Sprintf("4711-0-%d", n), Event: event, Time: at(ms), Worker: worker})
		}
		due := n * 40
		add("due", due, "producer-0")
		add("sent", due+1, "producer-0")
		switch n {
		case 105: // at 4.2 s, in the stall
			add("completed", due+650, "producer-0")
			add("received", due+700, "consumer-1")
		case 130: // at 5.2 s
			add("completed", due+250, "producer-0")
			add("received", due+240, "consumer-0")
			add("redelivered", due+300, "consumer-1")
		case 149: // at 5.96 s, before the outage
			add("resent", due+500, "producer-0")
			add("unconfirmed", due+900, "producer-0")
		default:
			add("completed", due+3, "producer-0")
			add("received", due+2+n%3, "<script>")
		}
		require.NoError(t, w.Trace(list))
	}
	require.NoError(t, w.Finish(*r))
	require.NoError(t, w.Close())
	p := musttest.Get(Read(dir))(t)
	table := p.slowTable()
	require.Len(t, table.Rows, 100)
	require.Equal(t, "run: 1/1000 of the messages, 2,000 events.", table.Note)
	var b strings.Builder
	for _, row := range table.Rows[:5] {
		fmt.Fprintln(&b, strings.Join(row, " | "))
	}
	golden(t, "slowest.txt", b.String())
	var page bytes.Buffer
	require.NoError(t, p.HTML(&page))
	require.Contains(t, page.String(), "Slowest traced messages")
	require.NotContains(t, page.String(), "<td><script>")
	p = musttest.Get(Read(dir, dir))(t)
	require.Len(t, p.slowTable().Rows, 100)
	require.Contains(t, p.slowTable().Note, "The clocks of the runs are taken to agree.")
	require.Empty(t, musttest.Get(Read(dir, dir, dir))(t).slowTable().Rows, "a page of many runs leaves them out")
}
