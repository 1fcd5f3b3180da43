//go:build unix

package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	runresult "github.com/perfmq/perfmq/pkg/result"
)

var (
	quietRuns = flag.Int("quiet.runs", 1, "runs of each load in TestQuietRuns")
	quietPage = flag.String("quiet.page", "", "the page into which TestQuietRuns writes its table")
)

// quietSection is that of docs/lab/benchmarks.md. The table stands between the comments.
const quietSection = `
## Runs in which nothing is wrong

A load far below what broker and tester can do must not be told to have a limit, or anything else to look at. ` + "`make limits`" + ` makes 20 runs of each
load, on an idle machine, and fails if one names another limit than the rate (for consumers alone: the producers) or finds something.

<!-- quiet runs: written by make limits -->
<!-- end of quiet runs -->
`

// TestQuietRuns: loads far below the capacity of broker and tester have no limit but their rate, consumers alone none
// but their producers, and no findings, however often they run. Runs on a machine that other programs keep busy are not
// held against the tool. `make limits` makes 20 runs of each, on Artemis as well, for docs/lab/benchmarks.md.
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
	protocols := []string{"amqp", "stomp"}
	if *quietPage == "" {
		protocols = protocols[:1]
	}
	for _, broker := range brokers {
		for _, protocol := range protocols {
			url := broker.amqp
			if protocol == "stomp" {
				url = broker.stomp
			}
			run(t, limit, protocol, "client", "--url", url, "--message-count", "20000", "--max-pending", "100", "queue://"+unique(t, "warm")) // Java's code
			for _, load := range []quietLoad{
				{"client --rate 200 --max-pending 100", runresult.LimitNone},
				{"client --rate 1000 --max-pending 100 --producers 3 --consumers 2", runresult.LimitNone},
				{"consumer", runresult.LimitProducers},
			} {
				q := quietCount{limits: map[string]int{}, findings: map[string]int{}}
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
		writeTable(t, *quietPage, quietSection, table.String())
	}
}

type quietBroker struct{ name, amqp, stomp string }

// quietLoad is a load and the limit that it is known to have.
type quietLoad struct {
	args string
	want string
}

// quietCount counts the limits and findings of several runs.
type quietCount struct {
	limits   map[string]int
	findings map[string]int
	crowded  int
}

func (l *quietLoad) run(t *testing.T, protocol, url string, q *quietCount) {
	t.Helper()
	queue := "queue://" + unique(t, "quiet")
	if l.want == runresult.LimitProducers { // another process sends
		p := start(t, protocol, "producer", "--url", url, "--rate", "100", "--max-pending", "100", "--duration", "1m", queue)
		p.printed("--- warmup false")
		defer p.interrupt()
	}
	args := append([]string{protocol}, strings.Fields(l.args)...)
	r := run(t, limit, append(args, "--url", url, "--warmup", "1", "--duration", "4.5", queue)...)
	require.Equal(t, statusOK, r.status)
	kind := limitOf(t, &r)
	q.limits[kind]++
	for _, f := range r.summary.Findings {
		q.findings[f.Kind]++
	}
	if strings.Contains(strings.Join(r.summary.Warnings, "\n"), "the machine was ") {
		q.crowded++
		return
	}
	require.Equal(t, l.want, kind, r.summary.Details.Limit)
	require.Empty(t, r.summary.Findings)
}

// counted lists the kinds with their counts.
func counted[K ~string](n map[K]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%s: %d", kind, n[kind]))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// writeTable writes a table into a page, between the comments of its section. The section is appended if the page does
// not have it.
func writeTable(t *testing.T, page, section, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(page, []byte(withTable(t, string(text), section, table)), 0o644)) //nolint:gosec // a page of the project
}

// withTable returns a page with that table.
func withTable(t *testing.T, page, section, table string) string {
	t.Helper()
	marks := regexp.MustCompile("<!-- .* -->\n").FindAllString(section, -1)
	require.Len(t, marks, 2)
	if !strings.Contains(page, marks[0]) {
		page += section
	}
	head, rest, _ := strings.Cut(page, marks[0])
	_, tail, ok := strings.Cut(rest, marks[1])
	require.True(t, ok, "the page has no line %s", marks[1])
	return head + marks[0] + "\n" + table + "\n" + marks[1] + tail
}

// TestTablesOfBenchmarks: each table finds its place in docs/lab/benchmarks.md, and the next one takes that.
func TestTablesOfBenchmarks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/lab/benchmarks.md")
	require.NoError(t, err)
	for _, section := range []string{quietSection, foundSection} {
		title, _, _ := strings.Cut(strings.TrimSpace(section), "\n")
		once := withTable(t, string(text), section, "| a table |\n")
		require.Equal(t, 1, strings.Count(once, "\n"+title+"\n"))
		require.Equal(t, 1, strings.Count(once, " -->\n\n| a table |\n\n<!-- "))
		again := withTable(t, once, section, "| another |\n")
		require.Equal(t, strings.Replace(once, "| a table |", "| another |", 1), again)
	}
}
