package result

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files and the schema")

// sampleStart is not on a whole second.
func sampleStart() time.Time { return time.Date(2026, 11, 21, 10, 30, 54, 535_000_000, time.UTC) }

func sampleHead() Head {
	return Head{
		RunID: "4611686018427387905", Start: sampleStart().UnixMicro(), Warmup: second,
		Plan:     json.RawMessage(`{"Load": {"rate": "1000/s <fixed>"}, "Broker": {"url": "amqp://u@h"}}`),
		Versions: Versions{Perfmq: "v0.9.0", Go: "go1.26.8", Clients: []Client{{Role: "producers", Protocol: "amqp", Name: "native"}}},
		Host:     Host{Name: "host-1", OS: "linux", Arch: "amd64", CPUs: 2, Memory: 8 << 30},
		Labels:   map[string]string{"heap": "4g", "note": "line\nbreak \x1b[31m\u202e"},
	}
}

// ofHistogram returns the distribution of a histogram, given the exact sum and maximum of its values.
func ofHistogram(h *Histogram, sum, longest int64) *Latency {
	l := &Latency{Count: h.Count(), Sum: sum, Max: longest, Histogram: h}
	l.percentiles()
	return l
}

// latencyOf returns n random latencies around mean microseconds.
func latencyOf(r *rand.Rand, n int, mean float64) *Latency {
	h := &Histogram{}
	var sum, longest int64
	for range n {
		us := int64(r.ExpFloat64() * mean)
		h.Record(us, 1)
		sum += us
		longest = max(longest, us)
	}
	return ofHistogram(h, sum, longest)
}

// sampleRow is the second number i, from 0, of a run. Each message is completed and received in the second in which it
// is sent.
func sampleRow(r *rand.Rand, i, messages int) Row {
	row := Row{
		Step: "load", Phase: Measure, Elapsed: int64(i+1) * second, Length: second,
		Time: sampleStart().UnixMicro() + int64(i+1)*second, Workers: 2, InFlight: 3,
		Counts: Counts{
			Producers: &Producers{Sent: uint64(messages), Blocked: 4, Completed: uint64(messages), CompletedBytes: uint64(1000 * messages), Failures: map[string]map[string]uint64{}},
			Consumers: &Consumers{Received: uint64(messages), Redelivered: 1, ReceivedBytes: uint64(1000 * messages)},
		},
		Latencies: Latencies{
			Delay: latencyOf(r, messages, 30), Ack: latencyOf(r, messages, 500), Response: latencyOf(r, messages, 530),
			Transfer: latencyOf(r, messages, 5000),
		},
		Tester: Tester{CPU: 300_000, Cores: 2, Memory: 40 << 20, MachineBusy: 900_000, MachineAll: 2_000_000},
	}
	if i == 0 {
		row.Phase = Warmup
	}
	if i == 1 {
		row.Leftover = &Latencies{Transfer: latencyOf(r, 2, 900)}
	}
	return row
}

// sample returns a run of some seconds, with its rows.
func sample(t testing.TB, seed uint64, seconds, messages int) *Result {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	r := &Result{Head: sampleHead(), Complete: true, Latencies: Latencies{}, Outcome: Outcome{
		Success: false, Status: 1, Reason: "duration reached", Problems: []string{"messages lost: 2"},
	}}
	require.NoError(t, r.complete())
	r.Measured = &Counts{}
	for i := range seconds {
		row := sampleRow(random, i, messages)
		r.Total.Add(&row.Counts)
		r.Tester.add(&row.Tester)
		if row.Phase != Warmup {
			r.Measured.Add(&row.Counts)
			r.Latencies.add(&row.Latencies)
		}
		r.End = row.Time
		r.Rows = append(r.Rows, row)
	}
	r.Tester.Cores, r.Tester.Memory, r.Tester.MemoryPeak = 2, 40<<20, 41<<20
	r.Steps = []Step{{Name: "load", Start: r.Start, End: r.End, Counts: r.Total, Latencies: r.Latencies, Figures: sampleFigures(messages)}}
	r.Figures = sampleFigures(messages)
	r.Stalls = []Stall{{Side: "both", Time: sampleStart().UnixMicro() + 4*second, Elapsed: 4 * second, Length: 2 * second}}
	expected, missing := r.Total.Producers.Completed, uint64(2)
	r.Expected, r.Missing = &expected, &missing
	r.Workers = []Worker{
		{Name: "producer-0", Destination: "queue://A", Counts: Counts{Producers: r.Total.Producers}},
		{Name: "consumer-0", Destination: "queue://A", Counts: Counts{Consumers: r.Total.Consumers}},
	}
	r.Errors = []Failure{{Class: "timeout", Count: 3, Examples: []string{"no answer"}}}
	r.Findings = []Finding{{
		Kind: "lost", Count: 2, Subject: "queue://A", Failure: true, Examples: []string{"producer-0 12", "producer-0 57"}, Text: "messages lost: 2",
	}}
	verified := Verified{Expected: expected, Received: expected - 2, Once: expected - 2, Lost: 2}
	r.Verification = &Verification{
		Known: true, Sent: expected, Total: verified, Subscriptions: []Subscription{{Destination: "queue://A", Known: true, Verified: verified}},
	}
	r.Protocol = map[string]uint64{"tx-checks": 7}
	return r
}

// sampleFigures are figures of a rate; a hundredth of it was missed.
func sampleFigures(messages int) *Figures {
	rate, payload, offered := float64(messages), float64(1000*messages), float64(messages)/0.99
	due, unsent := uint64(10000), uint64(100)
	return &Figures{
		Span: 10 * second,
		Sent: &rate, Completed: &rate, Received: &rate, CompletedBytes: &payload, ReceivedBytes: &payload,
		Offered: &offered, Due: &due, Unsent: &unsent,
		MinimumCompleted: &Extreme{PerSecond: rate, Time: sampleStart().UnixMicro() + 2*second, Elapsed: 2 * second},
	}
}

// write writes a result into a new folder and returns that.
func write(t testing.TB, r *Result) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "result")
	w := musttest.Get(NewWriter(dir))(t)
	require.NoError(t, w.Start(r.Head))
	for _, row := range r.Rows {
		require.NoError(t, w.Row(row))
	}
	require.NoError(t, w.Finish(*r))
	require.NoError(t, w.Close())
	return dir
}

func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries := musttest.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// edit replaces a text in a file of a result, and returns the path of the file.
func edit(t *testing.T, dir, file, old, with string) string {
	t.Helper()
	path := filepath.Join(dir, file)
	text := musttest.Get(os.ReadFile(path))(t)
	changed := strings.Replace(string(text), old, with, 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
	return path
}

// digestLine is the digest in a result.json.
var digestLine = regexp.MustCompile(`\s*"digest": ?"[0-9a-f]+",`)

// asJSON is how results are compared: nil and empty values are the same, and the digest is left out.
func asJSON(t testing.TB, value any) string {
	t.Helper()
	return digestLine.ReplaceAllString(string(musttest.Get(Encode(value, " "))(t)), "")
}
