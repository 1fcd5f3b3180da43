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

// The table of docs/benchmarks.md stands between these.
const (
	quietBegin = "<!-- quiet runs: written by make limits -->\n"
	quietEnd   = "<!-- end of quiet runs -->"
)

// TestQuietRuns: loads far below what broker and tester can do have no limit but their rate, consumers alone none but their producers, and
// nothing is found, however often they run. What a machine that others keep busy does to a run is not held against the tool. `make
// limits` makes 20 runs of each, on Artemis as well, for docs/benchmarks.md.
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
		writeBetween(t, *quietPage, quietBegin, quietEnd, table.String())
	}
}

type quietBroker struct{ name, amqp, stomp string }

// quietLoad is a load and the limit that it is known to have.
type quietLoad struct {
	args string
	want stats.LimitKind
}

// quietCount is what several runs said.
type quietCount struct {
	limits   map[stats.LimitKind]int
	findings map[string]int
	crowded  int
}

func (l *quietLoad) run(t *testing.T, protocol, url string, q *quietCount) {
	t.Helper()
	queue := "queue://" + unique(t, "quiet")
	if l.want == stats.LimitProducers { // somebody sends
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

// counted lists how often there was what.
func counted[K ~string](n map[K]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%s: %d", kind, n[kind]))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// writeBetween replaces what a page has between two lines.
func writeBetween(t *testing.T, page, begin, end, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no line %s", page, begin)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no line %s", page, end)
	require.NoError(t, os.WriteFile(page, []byte(head+begin+"\n"+table+"\n"+end+tail), 0o644)) //nolint:gosec // a page of the project
}
