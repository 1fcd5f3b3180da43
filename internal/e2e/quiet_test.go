//go:build unix

package e2e

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

var (
	quietRuns = flag.Int("quiet.runs", 1, "runs of each load in TestQuietRuns")
	quietPage = flag.String("quiet.page", "", "the page into which TestQuietRuns writes its table")
)

// The table of docs/benchmarks.md stands between these. The section is appended if the page does not have it.
const (
	quietBegin   = "<!-- quiet runs: written by make limits -->\n"
	quietEnd     = "<!-- end of quiet runs -->\n"
	quietSection = `
## Runs in which nothing is wrong

A load far below what broker and tester can do must not be told to have a limit, or anything else to look at. ` + "`make limits`" + ` makes 20 runs of each
load, on an idle machine, and fails if one names another limit than the rate (for consumers alone: the producers) or finds something.

` + quietBegin + quietEnd
)

// TestQuietRuns: loads far below the capacity of broker and tester have no limit but their rate, consumers alone none
// but their producers, and no findings, however often they run. Runs on a machine that other programs keep busy are not
// held against the tool. `make limits` makes 20 runs of each, on Artemis as well, for docs/benchmarks.md.
func TestQuietRuns(t *testing.T) {
	t.Parallel()
	b := serve(t)
	brokers := []quietBroker{{"embedded", b.at("amqp"), b.at("stomp")}}
	if *quietPage != "" {
		a := shared.Artemis(t)
		brokers = append(brokers, quietBroker{a.Title(), a.AMQPURL(), a.STOMPURL()})
	}
	var table strings.Builder
	fmt.Fprintf(&table, "On %s with %d processors, perfmq and the brokers beside each other:\n\n", runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU())
	table.WriteString("| broker | protocol | load | runs | limits named | findings | runs while others had the processors |\n" +
		"| --- | --- | --- | ---: | --- | --- | ---: |\n")
	for _, broker := range brokers {
		for _, protocol := range []string{"amqp", "stomp"} {
			url := broker.amqp
			if protocol == "stomp" {
				url = broker.stomp
			}
			run(t, limit, protocol, "client", "--url", url, "--message-count", "20000", "--max-pending", "100", "queue://"+unique(t, "warm")) // Java's code
			for _, load := range []quietLoad{
				{"client --rate 200 --max-pending 100", stats.LimitNone},
				{"client --rate 1000 --max-pending 100 --producers 3 --consumers 2", stats.LimitNone},
				{"consumer", stats.LimitProducers},
			} {
				q := quietCount{limits: map[stats.LimitKind]int{}, findings: map[string]int{}}
				for range *quietRuns {
					load.run(t, protocol, url, &q)
				}
				fmt.Fprintf(&table, "| %s | %s | `%s` | %d | %s | %s | %d |\n", broker.name, protocol, load.args, *quietRuns, counted(q.limits),
					counted(q.findings), q.crowded)
			}
		}
	}
	t.Logf("\n%s", &table)
	if *quietPage != "" {
		text, err := os.ReadFile(*quietPage)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*quietPage, []byte(withQuietRuns(t, string(text), table.String())), 0o644)) //nolint:gosec // a page of the project
	}
}

type quietBroker struct{ name, amqp, stomp string }

// quietLoad is a load and the limit that it is known to have.
type quietLoad struct {
	args string
	want stats.LimitKind
}

// quietCount counts the limits and findings of several runs.
type quietCount struct {
	limits   map[stats.LimitKind]int
	findings map[string]int
	crowded  int
}

func (l *quietLoad) run(t *testing.T, protocol, url string, q *quietCount) {
	t.Helper()
	queue := "queue://" + unique(t, "quiet")
	if l.want == stats.LimitProducers { // another process sends
		p := start(t, protocol, "producer", "--url", url, "--rate", "100", "--max-pending", "100", "--duration", "1m", queue)
		p.printed("--- warmup false")
		defer p.interrupt()
	}
	args := append([]string{protocol}, strings.Fields(l.args)...)
	r := run(t, limit, append(args, "--url", url, "--warmup", "1", "--duration", "4.5", queue)...)
	require.Equal(t, statusOK, r.status)
	kind := limitOf(t, &r)
	q.limits[kind]++
	var all []struct{ Findings []struct{ Kind, Text string } }
	require.NoError(t, json.Unmarshal([]byte(r.json), &all))
	found := all[len(all)-1].Findings
	for _, f := range found {
		q.findings[f.Kind]++
	}
	if strings.Contains(strings.Join(r.summary.Warnings, "\n"), "the machine was ") {
		q.crowded++
		return
	}
	require.Equal(t, l.want, kind, r.summary.Limit)
	require.Empty(t, found)
}

// counted lists the kinds with their counts.
func counted[K ~string](n map[K]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%s: %d", kind, n[kind]))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// withQuietRuns returns a page with that table.
func withQuietRuns(t *testing.T, page, table string) string {
	t.Helper()
	if !strings.Contains(page, quietBegin) {
		page += quietSection
	}
	head, rest, _ := strings.Cut(page, quietBegin)
	_, tail, ok := strings.Cut(rest, quietEnd)
	require.True(t, ok, "the page has no line %s", quietEnd)
	return head + quietBegin + "\n" + table + "\n" + quietEnd + tail
}

// TestQuietRunsPage: the table finds its place in docs/benchmarks.md, and the next one takes that.
func TestQuietRunsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/benchmarks.md")
	require.NoError(t, err)
	once := withQuietRuns(t, string(text), "| a table |\n")
	require.Equal(t, 1, strings.Count(once, "\n## Runs in which nothing is wrong\n"))
	require.Contains(t, once, quietBegin+"\n| a table |\n\n"+quietEnd)
	again := withQuietRuns(t, once, "| another |\n")
	require.Equal(t, strings.Replace(once, "| a table |", "| another |", 1), again)
}
