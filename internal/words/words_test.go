package words_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write docs/result-reference.md")

// TestGuideHasAllKinds: the table of findings in docs/result-reference.md is made of the kinds.
func TestGuideHasAllKinds(t *testing.T) {
	const guide, from, to = "../../docs/result-reference.md", "<!-- findings, written by -update of internal/words -->\n", "<!-- end of findings -->"
	text := musttest.Get(os.ReadFile(guide))(t)
	before, rest, ok := strings.Cut(string(text), from)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, to)
	require.True(t, ok)
	var b strings.Builder
	b.WriteString("\n| kind | severity | text |\n| --- | --- | --- |\n")
	values := regexp.MustCompile(`%[.0-9]*[df]|%s|%%`)
	seen := map[string]bool{}
	for _, k := range words.Kinds() {
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Severity, values.ReplaceAllStringFunc(k.Text, func(verb string) string {
			switch verb {
			case "%s":
				return "…"
			case "%%":
				return "%"
			default:
				return "N"
			}
		}))
	}
	want := before + from + b.String() + "\n" + to + after
	if *update {
		require.NoError(t, os.WriteFile(guide, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run the test with -update to write it")
}

func TestFind(t *testing.T) {
	require.Equal(t, result.Finding{
		Kind: "rejected", Severity: "problem", Count: 3, Subject: "queue://A", Failure: true, Text: "queue://A: messages rejected by the broker: 3",
	}, words.Find("rejected", "queue://A", 3, 3))
	pause := words.Find("pause", words.Perfmq, 1, "once", time.Second, "12:00:00", 5)
	require.Equal(t, "perfmq was paused once, the longest for 1s until 12:00:00: the latencies of 5 sends and receipts include that", pause.Text)
	require.False(t, pause.Failure)
	require.True(t, words.As(pause, result.Problem).Failure)
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"1 outage": words.Plural(1, "outage"), "2 outages": words.Plural(uint64(2), "outage"), "once": words.Times(1),
		"< 0.01 %": words.Percent(1e-6), "> 99.99 %": words.Percent(1 - 1e-6), "100.00 %": words.Percent(1), "0.00 %": words.Percent(0),
		"34 µs": words.Duration(34), "1.20 ms": words.Duration(1200), "0 µs": words.Duration(0), "2.00 s": words.Duration(2_000_000), "1m40s": words.Duration(100_400_000),
		"999 s": words.Seconds(999 * time.Second), "1000 s": words.Seconds(999500 * time.Millisecond), "0.123 s": words.Seconds(123456 * time.Microsecond),
		"1.50": words.Megabytes(1.5e6), "12.3k": words.Short(12_345), "9999": words.Short(9999), "10.0k": words.Short(10_000), "100k": words.Short(99_960),
		"999k": words.Short(999_400), "1.00M": words.Short(999_900), "2.50G": words.Short(2_500_000_000), "0.25": words.Short(0.25),
		"a, b and 1 more": words.First([]string{"a", "b", "c"}, 2, ", "),
	} {
		require.Equal(t, want, got)
	}
}
