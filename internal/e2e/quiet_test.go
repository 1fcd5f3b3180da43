//go:build unix

package e2e

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	runresult "github.com/perfmq/perfmq/pkg/result"
)

var quietRuns = flag.Int("quiet.runs", 1, "runs of each load in TestQuietRuns; with more than one, over each protocol, and on Artemis, too")

// TestQuietRuns: loads far below the capacity of broker and perfmq have no limit but their rate, consumers alone none
// but their producers, and no findings, however often they run. A run on a machine that other programs keep busy is not
// judged. `make limits` makes 20 runs of each, for docs/lab/benchmarks.md.
func TestQuietRuns(t *testing.T) {
	t.Parallel()
	b := serve(t)
	targets := [][2]string{{"amqp", b.at("amqp")}}
	if *quietRuns > 1 {
		a := shared.Artemis(t)
		targets = append(targets, [2]string{"stomp", b.at("stomp")}, [2]string{"amqp", a.AMQPURL()}, [2]string{"stomp", a.STOMPURL()})
	}
	for _, target := range targets {
		run(t, limit, target[0], "client", "--url", target[1], "--message-count", "20000", "--max-pending", "100", "queue://"+unique(t, "warm")) // Java's code
		for load, want := range map[string]string{
			"client --rate 200 --max-pending 100":                              runresult.LimitNone,
			"client --rate 1000 --max-pending 100 --producers 3 --consumers 2": runresult.LimitNone,
			"consumer": runresult.LimitProducers,
		} {
			crowded := 0
			for range *quietRuns {
				if !quietRun(t, target[0], target[1], load, want) {
					crowded++
				}
			}
			t.Logf("%s %s: %d runs, %d of them while others had the processors", target, load, *quietRuns, crowded)
		}
	}
}

// quietRun makes one run, and reports whether it could be judged.
func quietRun(t *testing.T, protocol, url, load, want string) bool {
	t.Helper()
	queue := "queue://" + unique(t, "quiet")
	if want == runresult.LimitProducers { // another process sends
		p := start(t, protocol, "producer", "--url", url, "--rate", "100", "--max-pending", "100", "--duration", "1m", queue)
		p.printed("--- warmup false")
		defer p.interrupt()
	}
	args := append([]string{protocol}, strings.Fields(load)...)
	r := run(t, limit, append(args, "--url", url, "--warmup", "1", "--duration", "4.5", queue)...)
	require.Equal(t, statusOK, r.status)
	kind := limitOf(t, &r)
	if strings.Contains(strings.Join(r.summary.Warnings, "\n"), "the machine was ") {
		return false
	}
	require.Equal(t, want, kind, r.summary.Details.Limit)
	require.Empty(t, r.summary.Findings)
	return true
}
