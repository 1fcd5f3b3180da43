package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

func TestConsoleSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	fakeSteps(t, 3, 2, 1).feed(t, nil, NewConsole(&out, ConsoleOptions{ShowLatency: true}))
	golden(t, "console-steps.txt", out.String())
	for line := range strings.Lines(out.String()) {
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no space at a line's end")
	}
	// The drain of allout has a block of its own: it is not joined with the first one of paced.
	require.Equal(t, 3+1+2+1, strings.Count(out.String(), "\n--- warmup "))
	for _, name := range []string{"allout", "paced", "drain"} {
		require.Equal(t, 1, strings.Count("\n"+out.String(), "\n\n--- STEP "+name+"\n\n--- warmup "))
		require.Equal(t, 1, strings.Count(out.String(), "\n\n--- STEP "+name+": "))
	}
}

func TestJSONSteps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	j, err := NewJSON(path, ResultOptions{})
	require.NoError(t, err)
	fakeSteps(t, 3, 2, 1).feed(t, nil, j)
	require.NoError(t, j.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	golden(t, "steps.json", string(text))
}

func TestResultSteps(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	f := fakeSteps(t, 3, 2, 1)
	f.feed(t, nil, r)
	require.NoError(t, r.Close())
	resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
	got, err := result.Read(dir, result.RowHistograms)
	require.NoError(t, err)
	require.Empty(t, got.Outcome.Warnings[1:], "the rows add up to their steps")
	var steps []string
	for i := range got.Rows {
		steps = append(steps, got.Rows[i].Step)
	}
	assert.Equal(t, strings.Fields("allout allout allout allout paced paced paced drain drain"), steps)
}

// Counters and histograms go on from step to step.
func TestPrometheusSteps(t *testing.T) {
	t.Parallel()
	f := fakeSteps(t, 3, 2, 1)
	f.run.Labels = map[string]string{"broker": "Artemis 2.56", "heap-size": "4g", "heap_size": "8g", "1\xff\u00e9": "\xff", "protocol": "x"}
	p, url := startPrometheus(t, f.run)
	info := "run_info client=native consumer_client=native consumer_protocol=amqp destinations=queue://TEST protocol=amqp scenario=night"
	labels := " label_1__=\\xff label_broker=Artemis 2.56 label_heap_size=4g label_heap_size_2=8g label_protocol=x"
	scrape := func(t *testing.T, url string) metrics { // each series has the labels
		t.Helper()
		m, bare := scrape(t, url), metrics{map[string]float64{}, map[string]*dto.Histogram{}}
		for name, value := range m.values {
			require.Contains(t, name, labels)
			bare.values[strings.Replace(name, labels, "", 1)] = value
		}
		for name, h := range m.histograms {
			require.Contains(t, name, labels)
			bare.histograms[strings.Replace(name, labels, "", 1)] = h
		}
		return bare
	}
	m := scrape(t, url)
	m.require(t, map[string]float64{info: 1, "step_info step=allout": 1})
	last := map[string]float64{}
	for _, s := range f.snapshots {
		require.NoError(t, p.Interval(s))
		m := scrape(t, url)
		m.require(t, map[string]float64{info: 1, "step_info step=" + s.Step: 1})
		require.InDelta(t, float64(s.Total[result.Sent]), m.sum("perfmq_messages_sent_total"), 1e-9)
		steps := 0
		for name, value := range m.values {
			if strings.HasPrefix(name, "perfmq_step_info") {
				steps++
			}
			if strings.Contains(name, "_total") {
				require.GreaterOrEqual(t, value, last[name], name)
				last[name] = value
			}
		}
		require.Equal(t, 1, steps)
		for name, h := range m.histograms {
			require.GreaterOrEqual(t, float64(h.GetSampleCount()), last[name], name)
			last[name] = float64(h.GetSampleCount())
		}
	}
	require.EqualValues(t, 5000, last["perfmq_messages_sent_total"])
	require.EqualValues(t, 40, last["perfmq_send_ack_seconds phase=measure"])
	require.NoError(t, p.Summary(f.summary))
	m = scrape(t, url)
	m.require(t, map[string]float64{info: 1, "phase phase=ended": 1})
	require.EqualValues(t, 5000, m.sum("perfmq_messages_sent_total"))
	for name := range m.values {
		require.False(t, strings.HasPrefix(name, "perfmq_step_info"), "no step is present any more")
	}
	problems, err := testutil.GatherAndLint(p.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	p.collector.interval(f.snapshots[0])
	p.collector.final = nil
	problems, err = testutil.GatherAndLint(p.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// writeStepsHDR writes the log of a run of three steps.
func writeStepsHDR(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.hdr")
	h, err := NewHDR(path)
	require.NoError(t, err)
	fakeSteps(t, 3, 2, 1).feed(t, nil, h)
	require.NoError(t, h.Close())
	return path
}

// Times rise through all steps without overlap, and no value is missing.
func TestHDRSteps(t *testing.T) {
	t.Parallel()
	file, err := os.Open(writeStepsHDR(t))
	require.NoError(t, err)
	defer file.Close()
	reader := hdrhistogram.NewHistogramLogReader(file)
	count := int64(0)
	end := int64(0)
	for {
		h, err := reader.NextIntervalHistogram()
		require.NoError(t, err)
		if h == nil {
			break
		}
		if h.Tag() == "transfer" {
			count += h.TotalCount()
			require.GreaterOrEqual(t, h.StartTimeMs(), end-1) // the reader's floats
			require.Greater(t, h.EndTimeMs(), h.StartTimeMs())
			end = h.EndTimeMs()
		}
	}
	require.EqualValues(t, 5*20, count)
}

// TestHostileSteps: names of steps, labels and commands come from the user, the output of commands from anywhere.
func TestHostileSteps(t *testing.T) {
	t.Parallel()
	text := hostile()
	f := fakeSteps(t, 1, 1, 1)
	for i, name := range f.run.Steps {
		hostileName := name + text
		f.run.Steps[i] = hostileName
		f.summary.Steps[i].Name, f.summary.Steps[i].Reason = hostileName, text
		for _, s := range f.snapshots {
			if s.Step == name {
				s.Step = hostileName
			}
		}
		for k := range f.summary.Thresholds {
			if f.summary.Thresholds[k].Step == name {
				f.summary.Thresholds[k].Step = hostileName
				f.summary.Steps[i].Thresholds[0].Step = hostileName
			}
		}
	}
	f.run.Scenario, f.run.Labels = text, map[string]string{text: text, "label 0": text}
	f.summary.Commands = []result.Command{{Step: f.run.Steps[0], When: "before", Command: text, Output: text}}

	jsonFile, hdrFile := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "a.hdr")
	var console, benchmark bytes.Buffer
	toJSON, err := NewJSON(jsonFile, ResultOptions{})
	require.NoError(t, err)
	toHDR, err := NewHDR(hdrFile)
	require.NoError(t, err)
	toResult, dir := newTestResult(t, ResultOptions{})
	metrics, err := NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil)
	require.NoError(t, err)
	secrets := &safetext.Secrets{}
	secrets.Add("app", "hunter2")
	f.feed(t, secrets, NewConsole(&console, ConsoleOptions{}), NewRocketMQ(&benchmark, ConsoleOptions{}), toJSON, toHDR, toResult, metrics)
	_, scraped := request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	for _, r := range []Reporter{toJSON, toHDR, toResult, metrics} {
		require.NoError(t, r.Close())
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	for name, out := range map[string]struct {
		text string
		most int
	}{
		"console":     {console.String(), 200 << 10},
		"rocketmq":    {benchmark.String(), 200 << 10},
		"json":        {read(jsonFile), 3 << 20},
		"hdr":         {read(hdrFile), 10 << 10},
		"metrics":     {scraped, 200 << 10},
		"rows.jsonl":  {read(filepath.Join(dir, result.RowsFile)), 1 << 20},
		"result.json": {read(filepath.Join(dir, result.ResultFile)), 3 << 20},
	} {
		assert.Less(t, len(out.text), out.most, name)
		assert.False(t, strings.ContainsAny(out.text, "\x1b\x07\u009b\u202e"), "escape sequences in %s", name)
		assert.False(t, strings.Contains(out.text, "hunter2"), "the password in %s", name)
		if name != "hdr" {
			assert.True(t, strings.Contains(out.text, "bytes left out)"), "how much more there was, in %s", name)
		}
		if name != "result.json" {
			assert.LessOrEqual(t, strings.Count(out.text, "\n--- result:"), 1, "lines of others in %s", name)
		}
	}
	got, err := result.Read(dir)
	require.NoError(t, err, "also the longest head is read again")
	require.Len(t, got.Labels, 2)
	require.Len(t, got.Steps, 3)
	require.Equal(t, got.Steps[0].Name, got.Rows[0].Step, "one name everywhere")
	require.Equal(t, got.Steps[0].Name, got.Commands[0].Step)
	require.Equal(t, got.Steps[1].Name, got.Thresholds[1].Step)
	require.True(t, strings.HasPrefix(got.Labels["label 0"], "\x1b[2J"), "JSON means the same as before")
	var records []map[string]any
	require.NoError(t, json.Unmarshal([]byte(read(jsonFile)), &records))
	require.Equal(t, got.Steps[0].Name, records[0]["step"])
	require.True(t, strings.HasPrefix(f.run.Steps[0], "allout\x1b") && strings.Contains(f.summary.Commands[0].Output, "hunter2"),
		"the engine's own texts are left alone")
}
