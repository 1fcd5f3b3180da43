//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/verify"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// console is the output of a run, parsed by the reference's format to the character.
type console struct {
	url    string
	blocks []block
	// result and totals come from the summary; extra are the lines after the familiar ones, by name.
	result string
	totals map[string]uint64
	extra  map[string][]string
}

type block struct {
	warmup bool
	rates  map[string]uint64
}

// grammar describes the permitted lines of a role.
type grammar struct {
	producing, consuming, rated, showLatency bool
	peer                                     bool // artemis perf, which leaves spaces at line ends and has no lines of ours
}

// number matches a number, padded with spaces to width.
func number(width int) string {
	var alternatives []string
	for digits := 1; digits < width; digits++ {
		alternatives = append(alternatives, fmt.Sprintf(` {%d}\d{%d}`, width-digits, digits))
	}
	return "(" + strings.Join(append(alternatives, fmt.Sprintf(`\d{%d,}`, width)), "|") + ")"
}

// latencyLine matches a distribution after a label padded to width: two decimals behind six digits, always a point; or
// a hyphen in the place of each number, if there were no values.
func latencyLine(label string, width int) *regexp.Regexp {
	value := `(?:` + number(6) + `\.\d\d| {8}-) us`
	var b strings.Builder
	fmt.Fprintf(&b, `^%-*s mean: %s`, width, label, value)
	for _, p := range []string{"50.00", "90.00", "99.00", "99.90", "99.99"} {
		b.WriteString(" - " + strings.Replace(p, ".", `\.`, 1) + "%: " + value)
	}
	b.WriteString(` - max:    ` + value + `$`)
	return regexp.MustCompile(b.String())
}

// reader takes lines of the output one by one.
type reader struct {
	t     *testing.T
	lines []string
	at    int
}

func (r *reader) more() bool { return r.at < len(r.lines) }

func (r *reader) peek() string {
	if !r.more() {
		return ""
	}
	return r.lines[r.at]
}

func (r *reader) line(pattern *regexp.Regexp) []string {
	r.t.Helper()
	require.Regexp(r.t, pattern, r.peek(), "line %d of the output", r.at+1)
	r.at++
	return pattern.FindStringSubmatch(r.lines[r.at-1])
}

func (r *reader) text(want string) {
	r.t.Helper()
	r.line(regexp.MustCompile("^" + regexp.QuoteMeta(want) + "$"))
}

func (r *reader) rate(label string) uint64 {
	r.t.Helper()
	m := r.line(regexp.MustCompile(fmt.Sprintf(`^%-14s %s msg/sec$`, label, number(8))))
	return parseUint(r.t, m[1])
}

func (r *reader) total(label string) uint64 {
	r.t.Helper()
	m := r.line(regexp.MustCompile(fmt.Sprintf(`^%-20s%s$`, label, number(12))))
	return parseUint(r.t, m[1])
}

func parseUint(t *testing.T, text string) uint64 {
	t.Helper()
	n := musttest.Get(strconv.ParseUint(strings.TrimSpace(text), 10, 64))(t)
	return n
}

// readConsole fails the test where the output is not of the reference's format.
func readConsole(t *testing.T, text string, g grammar) console {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "\n"), "the last line ends")
	r := &reader{t: t, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	for i, line := range r.lines {
		if g.peer {
			r.lines[i] = strings.TrimRight(line, " ")
		}
		require.Equal(t, strings.TrimRight(r.lines[i], " \t\r"), r.lines[i], "no space at the end of line %d", i+1)
	}
	c := console{}
	c.url = r.line(regexp.MustCompile(`^Connection brokerURL = (\S+)$`))[1]
	for {
		r.text("")
		if r.peek() == "--- SUMMARY" {
			break
		}
		c.blocks = append(c.blocks, r.block(g))
	}
	r.at++
	r.summary(g, &c)
	return c
}

func (r *reader) block(g grammar) block {
	r.t.Helper()
	b := block{rates: map[string]uint64{}}
	b.warmup = r.line(regexp.MustCompile(`^--- warmup (true|false)$`))[1] == "true"
	if g.producing {
		for _, name := range []string{"sent", "blocked", "completed"} {
			b.rates[name] = r.rate("--- " + name + ":")
		}
	}
	if g.consuming {
		b.rates["received"] = r.rate("--- received:")
		if strings.HasPrefix(r.peek(), "--- foreign:") { // of whatever second they came in
			b.rates["foreign"] = r.rate("--- foreign:")
		}
	}
	if g.showLatency {
		if g.producing && g.rated {
			r.line(latencyLine("--- send delay time:", 20))
		}
		if g.producing {
			r.line(latencyLine("--- send ack time:", 20))
		}
		if g.consuming {
			r.line(latencyLine("--- transfer time:", 20))
		}
	}
	if strings.HasPrefix(r.peek(), "--- outage:") { // in the second in which there was one
		r.line(regexp.MustCompile(`^--- outage:    \d+\.\d s, (\d+ workers? not connected|all workers connected again, no message yet)$`))
	}
	return b
}

func (r *reader) summary(g grammar, c *console) {
	r.t.Helper()
	c.result = r.line(regexp.MustCompile(`^--- result:( {14}success| {17}fail| {5}threshold failed| (?:success|fail|threshold failed) after (?:1 outage of|\d+ outages, the longest) [\dhms.]+( m?s)?: .*\d+ in doubt.*| .* \(not all have an end\): .*)$`))[1]
	c.result = strings.TrimSpace(c.result)
	c.totals = map[string]uint64{}
	if g.producing {
		for _, name := range []string{"sent", "blocked", "completed"} {
			c.totals[name] = r.total("--- total " + name + ":")
		}
	}
	if g.consuming {
		c.totals["received"] = r.total("--- total received:")
	}
	if g.producing && g.rated {
		r.line(latencyLine("--- aggregated delay send time:", 31))
	}
	if g.producing {
		r.line(latencyLine("--- aggregated send time:", 31))
	}
	if g.consuming {
		r.line(latencyLine("--- aggregated transfer time:", 31))
	}
	c.extra = map[string][]string{}
	if g.peer {
		require.False(r.t, r.more(), "lines after the summary: %q", r.lines[r.at:])
		return
	}
	if g.producing && g.rated {
		r.line(latencyLine("--- aggregated response time:", 31))
	}
	for r.more() {
		m := r.line(regexp.MustCompile(`^--- ([a-z][a-z0-9' -]*|verified (?:queue|topic)://.+): +(\S.*)$`))
		c.extra[m[1]] = append(c.extra[m[1]], m[2])
	}
}

// number returns a number of the lines that only perfmq has; 0 if the line is not there.
func (c *console) number(t *testing.T, name string) uint64 {
	t.Helper()
	texts := c.extra[name]
	if len(texts) == 0 {
		return 0
	}
	require.Len(t, texts, 1, name)
	first, _, _ := strings.Cut(texts[0], " ")
	return parseUint(t, first)
}

// record is an element of the JSON file. A total that is not there is nil.
type record struct {
	SampleType string
	Warmup     bool
	Phase      string
	Time       int64
	Result     string
	Reason     string
	Sent       *uint64
	Delayed    *uint64
	Completed  *uint64
	Received   *uint64
	DelaySend  *latency `json:"delaySendTime"`
	Send       *latency `json:"sendTime"`
	Transfer   *latency `json:"transferTime"`
	Response   *latency `json:"responseTime"`
	Length     float64  `json:"intervalSeconds"`
	Counts     struct{ Sent, Blocked, Completed, Received uint64 }
	Leftover   struct {
		DelaySend *latency `json:"delaySendTime"`
		Send      *latency `json:"sendTime"`
		Transfer  *latency `json:"transferTime"`
		Response  *latency `json:"responseTime"`
	}
	Failures     map[string]map[string]uint64
	Redelivered  uint64
	Foreign      uint64
	Unstamped    uint64
	Negative     uint64 `json:"negativeTransfers"`
	TotalSent    uint64
	TotalBlocked uint64
	// Of these, the pointers are nil in roles that do not have them.
	TotalCompleted   uint64
	TotalReceived    uint64
	TotalExpected    *uint64
	TotalMissing     *uint64
	TotalRejected    uint64
	TotalReleased    uint64
	TotalModified    uint64
	Paused           uint64
	TotalFailed      uint64
	TotalUnconfirmed uint64
	TotalDelaySend   *latency `json:"totalDelaySendTime"`
	TotalSend        *latency `json:"totalSendTime"`
	TotalTransfer    *latency `json:"totalTransferTime"`
	TotalResponse    *latency `json:"totalResponseTime"`
	Problems         []string
	Warnings         []string
	LeftBehind       []string
	Findings         []struct{ Kind, Text string }
	ConsumerReleased uint64
	ConsumerRejected uint64
	ReceivedDelayed  uint64
	ReceivedEarly    uint64
	TotalLateness    *latency
	Row              struct{ Backlog *uint64 }
	Details          struct { // of the summary
		Verification *verify.Result
		Brokers      []struct{ Protocol, Product, Version string }
		Figures      struct{ Due, Unsent uint64 }
		Outages      []runresult.Outage
		Limit        struct {
			Kind       string
			Share      float64
			Text, Hint string
		}
	}
}

type latency struct {
	Mean  string
	P50   int64 `json:"50"`
	P99   int64 `json:"99"`
	Max   int64
	Count uint64
}

// check holds a result against the requirements on every run.
func check(t *testing.T, r *result) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n") {
		if line == "" {
			continue
		}
		require.Regexp(t, `^((error|hint|warning|note): |stopping[:;] |leaving at once$|  )`, line, "a line of the error output")
		r.signalled = r.signalled || strings.HasPrefix(line, "stopping")
	}
	require.NotContains(t, r.stdout+r.stderr, "goroutine ", "a panic")
	if r.args[0] == "run" {
		return // its tests look at the result's own folder
	}
	if !strings.Contains(r.stdout, "--- SUMMARY") {
		if isLoad(r.args) && !slices.Contains(r.args, "--silent") && !slices.Contains(r.args, "--dry-run") {
			require.NotZero(t, r.status, "a run without a summary is no success")
			require.Contains(t, r.stderr, "error: ")
		}
		return
	}
	g := grammar{
		producing: r.args[1] != "consumer", consuming: r.args[1] != "producer",
		rated: slices.Contains(r.args, "--rate"), showLatency: slices.Contains(r.args, "--show-latency"),
	}
	c := readConsole(t, r.stdout, g)
	want := statusOK
	switch {
	case strings.HasPrefix(c.result, "fail"):
		want = statusFailed
		require.Contains(t, r.stderr, "error: ", "a failure is told")
	case strings.HasPrefix(c.result, "threshold failed"):
		want = statusThreshold
	case r.signalled:
		want = statusInterrupted
	}
	if r.status != want {
		// The outputs can fail while the run does not.
		require.Equal(t, statusFailed, r.status, "the exit status of a run with the result %s", c.result)
		require.Regexp(t, "error: (write |the rendezvous )", r.stderr)
	}
	if r.json == "" {
		return
	}
	checkJSON(t, r, g)
	checkAgreement(t, r, g, &c)
}

// checkJSON reads the file and holds its elements against each other.
func checkJSON(t *testing.T, r *result, g grammar) {
	t.Helper()
	var all []record
	require.NoError(t, json.Unmarshal([]byte(r.json), &all), "the JSON file is complete:\n%s", r.json)
	require.NotEmpty(t, all)
	r.intervals, r.summary = all[:len(all)-1], all[len(all)-1]
	s := &r.summary
	require.Equal(t, "summary", s.SampleType)
	ends := s.TotalCompleted + s.TotalRejected + s.TotalReleased + s.TotalModified + s.TotalFailed + s.TotalUnconfirmed
	require.Equal(t, s.TotalSent, ends, "every message that was sent has one end")
	if s.TotalMissing != nil && g.producing && g.consuming {
		require.GreaterOrEqual(t, *s.TotalMissing+s.TotalReceived, *s.TotalExpected)
	}
	var sent, blocked, completed, received uint64
	var sums, measured counts
	last := int64(0)
	for i := range r.intervals {
		v := &r.intervals[i]
		require.Equal(t, "interval", v.SampleType)
		require.GreaterOrEqual(t, v.Time, last, "intervals follow each other")
		last = v.Time
		c := &v.Counts
		sent, blocked, completed, received = sent+c.Sent, blocked+c.Blocked, completed+c.Completed, received+c.Received
		for _, x := range []struct {
			rate  *uint64
			count uint64
			there bool
		}{{v.Sent, c.Sent, g.producing}, {v.Completed, c.Completed, g.producing}, {v.Received, c.Received, g.consuming}} {
			require.Equal(t, x.there, x.rate != nil)
			if x.there {
				require.InDelta(t, float64(x.count)/v.Length, *x.rate, 0.51, "a rate is the count over the length, rounded")
			}
		}
		n := countsOf(v.DelaySend, v.Send, v.Response, v.Transfer)
		sums.add(n)
		sums.add(countsOf(v.Leftover.DelaySend, v.Leftover.Send, v.Leftover.Response, v.Leftover.Transfer))
		if !v.Warmup {
			measured.add(n)
		}
	}
	require.Equal(t, [4]uint64{s.TotalSent, s.TotalBlocked, s.TotalCompleted, s.TotalReceived},
		[4]uint64{sent, blocked, completed, received}, "intervals add up to the totals")
	want := counts{}
	if g.producing {
		want.send = s.TotalCompleted
		if g.rated {
			want.delay, want.response = s.TotalSent, s.TotalCompleted
		}
	}
	if g.consuming {
		want.transfer = s.TotalReceived - s.Unstamped
	}
	require.Equal(t, want, sums, "latencies of all intervals have a value per message")
	require.Equal(t, measured, countsOf(s.TotalDelaySend, s.TotalSend, s.TotalResponse, s.TotalTransfer),
		"the summary has the latencies after the warm-up")
}

// mean returns the mean in microseconds.
func (l *latency) mean(t *testing.T) float64 {
	t.Helper()
	us := musttest.Get(strconv.ParseFloat(l.Mean, 64))(t)
	return us
}

// counts are the numbers of values of the latencies.
type counts struct{ delay, send, response, transfer uint64 }

func countsOf(delay, send, response, transfer *latency) counts {
	n := func(l *latency) uint64 {
		if l == nil {
			return 0
		}
		return l.Count
	}
	return counts{n(delay), n(send), n(response), n(transfer)}
}

func (c *counts) add(d counts) {
	c.delay += d.delay
	c.send += d.send
	c.response += d.response
	c.transfer += d.transfer
}

// checkAgreement holds the console's summary against the JSON's.
func checkAgreement(t *testing.T, r *result, g grammar, c *console) {
	t.Helper()
	s := &r.summary
	result, _, _ := strings.Cut(c.result, " after ") // outages
	require.Equal(t, s.Result, strings.Replace(result, "threshold failed", "success", 1), "thresholds do not enter that of JSON")
	require.Equal(t, []string{s.Reason}, c.extra["stopped"])
	require.Equal(t, s.Result == "success", len(s.Problems) == 0, "problems: %q", s.Problems)
	require.Len(t, c.extra["problem"], len(s.Problems))
	require.Len(t, c.extra["warning"], len(s.Warnings))
	want := map[string]uint64{}
	if g.producing {
		want["sent"], want["blocked"], want["completed"] = s.TotalSent, s.TotalBlocked, s.TotalCompleted
		require.Equal(t, s.TotalRejected, c.number(t, "total rejected"))
		require.Equal(t, s.TotalReleased, c.number(t, "total released"))
		require.Equal(t, s.TotalFailed, c.number(t, "total failed"))
		require.Equal(t, s.TotalUnconfirmed, c.number(t, "total unconfirmed"))
	}
	if g.consuming {
		want["received"] = s.TotalReceived
		require.Equal(t, s.Foreign, c.number(t, "total foreign"))
		require.Equal(t, s.Redelivered, c.number(t, "total redelivered"))
	}
	require.Equal(t, want, c.totals)
	require.Equal(t, s.TotalMissing != nil, len(c.extra["total missing"]) == 1)
	if s.TotalMissing != nil {
		require.Equal(t, *s.TotalMissing, c.number(t, "total missing"))
	}
}

// TestSameOutputAsArtemisPerf runs both tools: one parser reads the output of both, and the keys of their JSON are in
// ours.
func TestSameOutputAsArtemisPerf(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for name, c := range map[string]struct {
		args []string
		g    grammar
	}{
		"client":   {[]string{"--warmup", "1", "--rate", "200"}, grammar{producing: true, consuming: true, rated: true, showLatency: true}},
		"producer": {nil, grammar{producing: true, showLatency: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			file := filepath.Join(t.TempDir(), "peer.json")
			args := append(c.args, "--duration", "3", "--show-latency")
			cmd := a.PerfCommand(soon(t), name, slices.Concat([]string{"--protocol", "AMQP", "--json", file}, args, []string{"queue://" + queue})...)
			out := output(t, cmd)
			r := run(t, limit, slices.Concat([]string{"amqp", name, "--url", a.AMQPURL()}, args, []string{"queue://" + queue})...)
			require.Equal(t, statusOK, r.status)

			c.g.peer = true
			theirs := readConsole(t, out, c.g)
			c.g.peer = false
			ours := readConsole(t, r.stdout, c.g)
			require.Equal(t, slices.Sorted(maps.Keys(theirs.totals)), slices.Sorted(maps.Keys(ours.totals)))
			require.Equal(t, theirs.result, ours.result)

			text := musttest.Get(os.ReadFile(file))(t)
			requireKeys(t, string(text), r.json)
		})
	}
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out := musttest.Get(cmd.Output())(t)
	return string(out)
}

// ownMean is the mean as a number, which our latencies have beside artemis perf's text.
const ownMean = "meanMicroseconds"

// requireKeys compares the keys of our JSON with artemis perf's: ours has all of them, and its latencies have the same
// keys with values of the same type, and the mean as a number.
func requireKeys(t *testing.T, theirs, ours string) {
	t.Helper()
	samples := func(text string) map[string]map[string]any {
		var all []map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &all), "%s", text)
		byType := map[string]map[string]any{}
		for _, sample := range all {
			byType[sample["sampleType"].(string)] = sample
		}
		return byType
	}
	want, got := samples(theirs), samples(ours)
	require.Equal(t, []string{"interval", "summary"}, slices.Sorted(maps.Keys(want)))
	for kind, sample := range want {
		for key, value := range sample {
			require.Contains(t, got[kind], key, "the keys of %s", kind)
			require.IsType(t, value, got[kind][key], "%s of %s", key, kind)
			if nested, is := value.(map[string]any); is {
				our := got[kind][key].(map[string]any)
				require.Equal(t, slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(nested)), ownMean))), slices.Sorted(maps.Keys(our)), "%s of %s", key, kind)
				for k, v := range nested {
					if our["count"] == 0.0 && our[k] == nil {
						continue // without values there is null, where theirs has zeros
					}
					require.IsType(t, v, our[k], "%s of %s of %s", k, key, kind)
				}
			}
		}
	}
}
