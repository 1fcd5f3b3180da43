package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// counted returns a destination with the broker's counts.
func counted(name string, sent, accepted, unconfirmed, added, received, again, acknowledged uint64) result.DestinationCount {
	return result.DestinationCount{
		Destination: name, Sent: sent, Received: received,
		Added:        &result.Compared{Count: added, Least: accepted, Most: accepted + unconfirmed},
		Acknowledged: &result.Compared{Count: acknowledged, Least: received - again, Most: received},
	}
}

func TestBrokerCountInWords(t *testing.T) {
	t.Parallel()
	unknown := result.DestinationCount{Destination: "queue://U", Sent: 5, Why: "broken"}
	check := func(name, want string, notes []string, list ...result.DestinationCount) {
		var b strings.Builder
		writeBrokerCount(&b, &result.BrokerCount{Destinations: list, Notes: notes})
		assert.Equal(t, want, strings.ReplaceAll(b.String(), "--- broker's count: ", ""), name)
	}
	check("nothing", "", nil)
	check("equal", "added 320000, sent 320000: equal\nacknowledged 320000, received 320000: equal\n",
		nil, counted("queue://A", 320000, 320000, 0, 320000, 320000, 0, 320000))
	check("differs", "added 320003, sent 320000: DIFFERS by 3\nacknowledged 319998, received 320000: DIFFERS by -2\n",
		nil, counted("queue://A", 320000, 320000, 0, 320003, 320000, 0, 319998))
	check("some were refused", "added 300, accepted 300: equal\nacknowledged 300, received 300: equal\n",
		nil, counted("queue://A", 320, 300, 0, 300, 300, 0, 300))
	check("in doubt", "added 318, accepted 315 to 320: possible\nacknowledged 318, received 318 to 320: possible\n",
		nil, counted("queue://A", 320, 315, 5, 318, 320, 2, 318))
	check("beyond doubt", "added 323, accepted 315 to 320: DIFFERS by 3\nacknowledged 317, received 318 to 320: DIFFERS by -1\n",
		nil, counted("queue://A", 320, 315, 5, 323, 320, 2, 317))
	check("one more and one less", "added 30, sent 30: DIFFERS by 0 (queue://A by 2, queue://B by -2)\nacknowledged 0, received 0: equal\n",
		nil, counted("queue://A", 10, 10, 0, 12, 0, 0, 0), counted("queue://B", 10, 10, 0, 8, 0, 0, 0), counted("queue://C", 10, 10, 0, 10, 0, 0, 0))
	check("partly known", "added 10, sent 10: equal (of 1 of 2 destinations)\nacknowledged 10, received 10: equal (of 1 of 2 destinations)\nbroken\n",
		[]string{"broken"}, counted("queue://A", 10, 10, 0, 10, 10, 0, 10), unknown)
	check("a note", "no \\x1b[2J\n", []string{"no \x1b[2J"})
	var b strings.Builder
	writeBrokerCount(&b, nil)
	require.Empty(t, b.String())
}

// The counts are in all outputs; a difference is a finding that does not fail the run.
func TestBrokerCountInOutputs(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	path := filepath.Join(t.TempDir(), "json")
	j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
	metrics := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	var console bytes.Buffer
	f := NewFan(r, j, NewConsole(&console, ConsoleOptions{}), metrics)
	f.Secrets.Add("u", "hunter2")
	require.NoError(t, f.Start(clientRun()))
	interval := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	for i := range 25 {
		interval.Depths = append(interval.Depths, brokerside.Depth{Destination: "queue://" + string(rune('a'+i)), Messages: uint64(i)}) //nolint:gosec // small
	}
	interval.Depths[0].Destination = "queue://hunter2"
	interval.Backlog = brokerside.Backlog(interval.Depths)
	require.NoError(t, f.Interval(interval))
	_, scraped := request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.Contains(t, scraped, `perfmq_destination_depth{destination="queue://t"} 19`)
	require.Contains(t, scraped, "perfmq_backlog_messages 300")
	require.Equal(t, 20, strings.Count(scraped, "\nperfmq_destination_depth{"))

	s := summary(stats.Counters{}, closedLoop())
	s.BrokerCount = &result.BrokerCount{
		Destinations: []result.DestinationCount{counted("queue://A", 10, 10, 0, 13, 10, 0, 9)}, Notes: []string{"hunter2"},
	}
	s.BrokerCount.Destinations[0].Depth = new(uint64(4))
	require.NoError(t, f.Summary(s))
	_, scraped = request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.Contains(t, scraped, `perfmq_destination_depth{destination="queue://A"} 4`)
	require.NoError(t, f.Close())
	got := musttest.Get(result.Read(dir))(t)
	require.True(t, got.Outcome.Success)
	require.EqualValues(t, 300, *got.Rows[0].Backlog)
	depth := uint64(4)
	require.Equal(t, &result.BrokerCount{Notes: []string{"***"}, Destinations: []result.DestinationCount{{
		Destination: "queue://A", Sent: 10, Received: 10, Added: &result.Compared{Count: 13, Least: 10, Most: 10},
		Acknowledged: &result.Compared{Count: 9, Least: 10, Most: 10}, Depth: &depth,
	}}}, got.BrokerCount)
	text := musttest.Get(os.ReadFile(path))(t)
	require.Contains(t, string(text), `"backlog":300`)
	require.Contains(t, string(text), `"brokerCount":{"destinations":[{"destination":"queue://A","sent":10,"added":{"count":13,"least":10,"most":10},`)
	for _, out := range []string{string(text), console.String(), scraped} {
		require.NotContains(t, out, "hunter2")
	}
}
