//go:build unix

package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/verify"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

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
		require.Contains(t, r.stderr, "error: write ")
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
