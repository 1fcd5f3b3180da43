//go:build unix

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

var foundPage = flag.String("search.page", "", "the page into which TestFindMaxTable writes its table")

// foundSection is that of docs/lab/benchmarks.md. The table stands between the comments.
const foundSection = `
## What a search finds

` + "`make search`" + ` lets ` + "`--find-max 'transfer.p99 < 200ms'`" + ` search brokers that are told how many messages a second they serve, and fails if what
it finds is more than 3% off, unless the search itself names the tester, or its machine, as the limit: then the rate is "at least".

<!-- searches: written by make search -->
<!-- end of searches -->
`

// TestFindMax: the maximum found for a broker that serves 2000 messages a second is that (within 3%), unless the output
// names the tester as the limit, as on a busy machine. Each tried rate has its result. `make search` does so up to 50,000
// messages a second, one search after the other, for docs/lab/benchmarks.md.
func TestFindMax(t *testing.T) {
	t.Parallel()
	if *foundPage != "" {
		foundTable(t)
		return
	}
	for _, protocol := range []string{"amqp", "stomp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			findMax(t, protocol, 2000, "--rate", "1700", "--duration", "1.2s", "--warmup", "0.2s")
		})
	}
}

func foundTable(t *testing.T) {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "On %s with %d processors, broker and tester in one process:\n\n", runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU())
	table.WriteString("| protocol | served/s | found/s | difference | loads | outcome |\n| --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, protocol := range []string{"amqp", "stomp"} {
		for _, capacity := range []float64{2000, 5000, 10_000, 20_000, 50_000} {
			found := findMax(t, protocol, capacity, "--duration", "3", "--warmup", "1")
			fmt.Fprintf(&table, "| %s | %s | %s | %+.1f%% | %d | %s |\n", protocol, sweeps.PerSecond(capacity), sweeps.PerSecond(found.Rate),
				100*(found.Rate/capacity-1), len(found.Points), found)
			t.Logf("\n%s", &table)
			require.True(t, found.Rate >= capacity*0.97 || found.Kind() != sweeps.Maximum, "%v", found)
		}
	}
	writeTable(t, *foundPage, foundSection, table.String())
}

// findMax searches a broker that serves so many messages a second, and judges the rate that was found.
func findMax(t *testing.T, protocol string, capacity float64, args ...string) *sweeps.Search {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "found")
	r := run(t, 2*limit, append([]string{
		protocol, "client", "--embedded", "--embedded-faults", fmt.Sprintf("rate=%.0f", capacity),
		"--find-max", "transfer.p99 < 200ms", "--result", dir,
	}, args...)...)
	text, err := os.ReadFile(filepath.Join(dir, sweeps.SearchFile))
	require.NoError(t, err, r.stderr)
	var found sweeps.Search
	require.NoError(t, json.Unmarshal(text, &found))
	require.LessOrEqual(t, found.Rate, capacity*1.03, r.stdout)
	spoiled := found.Failed.Tester
	for i, p := range found.Points {
		require.Equal(t, p.Kept, p.Why == "", p)
		require.True(t, p.Rate <= capacity*1.03 || !p.Kept, p)
		spoiled = spoiled || p.Tester
		matches, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%03d-*", i+1)))
		require.NoError(t, err)
		require.Len(t, matches, 1)
		one, err := runresult.Read(matches[0])
		require.NoError(t, err)
		require.True(t, one.Complete)
	}
	switch r.status {
	case statusOK:
		require.True(t, found.Held)
		require.True(t, found.Rate >= capacity*0.97 || spoiled, r.stdout)
		require.Regexp(t, `(?m)^--- (maximum:|at least) `, r.stdout)
	default: // a machine so busy that no rate is held
		require.Contains(t, []int{statusThreshold, statusUndecided}, r.status, r.stderr)
		require.True(t, spoiled, r.stdout)
	}
	return &found
}
