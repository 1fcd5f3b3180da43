package threshold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"ack.p99 < 50ms":                   "ack.p99 < 50ms",
		"ack.p99<0.05s":                    "ack.p99 < 0.05s",
		"transfer.p99.9 <= 1.5s":           "transfer.p99.9 <= 1.5s",
		"response.max<300us":               "response.max < 300us",
		"lost == 0":                        "lost == 0",
		"completed > 10k":                  "completed > 10k",
		"received.min >= 90% of target":    "received.min >= 90% of target",
		"completed.avg>=99.5 %  of target": "completed.avg >= 99.5 % of target",
		"sent.avg != 1M/s":                 "sent.avg != 1M/s",
		" tester.cpu < 80% ":               "tester.cpu < 80%",
		"broker.cpu < 1.5":                 "broker.cpu < 1.5",
		"broker.memory <= 1.5GiB":          "broker.memory <= 1.5GiB",
		"broker.network < 100 MB/s":        "broker.network < 100 MB/s",
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String())
		again, err := Parse(got.String())
		require.NoError(t, err, text)
		require.Equal(t, got, again)
	}
	for text, want := range map[string]string{
		"":                             "METRIC OPERATOR VALUE",
		"ack.p99":                      "METRIC OPERATOR VALUE",
		"ack.p99 = 5ms":                "METRIC OPERATOR VALUE",
		"ack.p98 < 5ms":                `no metric "ack.p98"`,
		"ack.p99 < 5":                  "must be a time",
		"ack.p99 < -5ms":               "must not be negative",
		"ack.p99 < 90% of target":      "is no rate",
		"lost == none":                 "must be a number",
		"lost == NaN":                  "must be a number",
		"lost == -1":                   "must not be negative",
		"tester.cpu < 80":              "must be a share",
		"completed.avg > x% of target": "must be a number",
		"broker.memory < 1 cow":        "must be a number of bytes",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestJudge(t *testing.T) {
	values := map[string]float64{
		"ack.p99": 50_000, "lost": 0, "received.min": 899, "completed.avg": 999.5,
		"broker.cpu": 0.85, "broker.memory": 1<<28 - 1, "broker.network": 12.5e6, "group.senders.completed.avg": 450, "group.others.completed.avg": 450,
	}
	for text, want := range map[string]string{
		"ack.p99 < 50ms":                 "ack.p99 < 50ms: FAILED, 50ms",
		"ack.p99 <= 50ms":                "ack.p99 <= 50ms: passed, 50ms",
		"ack.p99 > 49ms":                 "ack.p99 > 49ms: passed, 50ms",
		"lost == 0":                      "lost == 0: passed, 0",
		"lost != 0":                      "lost != 0: FAILED, 0",
		"broker.cpu < 0.8":               "broker.cpu < 0.8: FAILED, 0.85",
		"broker.memory < 256MiB":         "broker.memory < 256MiB: passed, 268.44MB",
		"broker.network >= 12.5MB/s":     "broker.network >= 12.5MB/s: passed, 12.5MB/s",
		"received.min >= 90% of target":  "received.min >= 90% of target: FAILED, 899/s (89.9%)",
		"completed.avg >= 99% of target": "completed.avg >= 99% of target: passed, 999.5/s (99.95%)",
		"transfer.p50 < 1s":              "transfer.p50 < 1s: FAILED, not measured",
		"damaged >= 0":                   "damaged >= 0: FAILED, not measured",

		"group.senders.completed.avg >= 90% of target": "group.senders.completed.avg >= 90% of target: passed, 450/s (90%)",
		"group.others.completed.avg >= 1% of target":   "group.others.completed.avg >= 1% of target: FAILED, 450/s",
		"group.senders.ack.p99 < 50ms":                 "group.senders.ack.p99 < 50ms: FAILED, not measured",
	} {
		demand := musttest.Get(Parse(text))(t)
		target := func(group string) float64 { return map[string]float64{"": 1000, "senders": 500}[group] }
		got := Judge([]Threshold{demand}, target, values)
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].String())
	}
}

func TestMetrics(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics() {
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.NotEmpty(t, m.Help)
		value := map[Unit]string{Messages: "1", Count: "1", Decimal: "1.5", Bytes: "1MB", BytesPerSecond: "1MB/s", PerSecond: "1/s", Time: "1ms", Percent: "1%"}[m.Unit]
		_, err := Parse(m.Name + " < " + value)
		require.NoError(t, err, "%s can be written", m.Name)
	}
}

// A metric of a group is named by both; metrics that only the whole run has are not of a group.
func TestMetricsOfGroups(t *testing.T) {
	for name, group := range map[string]string{
		"group.senders.sent": "senders", "group.senders.sent.avg": "senders", "group.a-b_c.1.received.min": "a-b_c.1",
		"group.sent.sent": "sent", "group.x.sent.ack.p99.9": "x.sent", "group.x.commits.failed": "x",
	} {
		m, ok := Find(name)
		require.True(t, ok, name)
		require.Equal(t, [2]string{name, group}, [2]string{m.Name, m.Group})
		parsed, err := Parse(name + map[Unit]string{Messages: " == 1", Count: " == 1", PerSecond: " > 5k", Time: " < 5ms"}[m.Unit])
		require.NoError(t, err)
		require.Equal(t, m, parsed.Metric)
	}
	for _, name := range []string{"group.sent", "group..sent", "group.a.lost", "group.a.missing", "group.a.tester.cpu", "group.a.b", "group.a.broker.cpu", "groups.a.sent"} {
		_, ok := Find(name)
		require.False(t, ok, name)
	}
}
