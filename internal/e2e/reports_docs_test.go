package e2e

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const reportsFolder = "../../docs/reports"

// reportText returns the words of a page of docs/reports, without markup and the commas of numbers.
func reportText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(reportsFolder, name))
	require.NoError(t, err)
	words := string(text)
	if strings.HasSuffix(name, ".html") {
		words = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>`).ReplaceAllString(words, "")
		words = html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(words, " "))
	}
	return withoutCommas(words)
}

func withoutCommas(text string) string {
	return regexp.MustCompile(`\d{1,3}(?:,\d{3})+`).ReplaceAllStringFunc(text, func(n string) string {
		return strings.ReplaceAll(n, ",", "")
	})
}

// reported are the numbers of a text.
func reported(text string) []string {
	return regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`).FindAllString(withoutCommas(text), -1)
}

// TestReportsList: the list of docs/reports names each of its pages, and no others; it has no number but those that
// the named pages have.
func TestReportsList(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(reportsFolder, "README.md"))
	require.NoError(t, err)
	named := map[string]bool{"README.md": true}
	prose := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			prose += line
			continue
		}
		pages := ""
		for _, name := range regexp.MustCompile(`[a-z-]+\.(?:md|html)`).FindAllString(cells[0], -1) {
			named[name] = true
			pages += reportText(t, name)
		}
		for _, n := range reported(cells[2]) {
			require.True(t, slices.Contains(reported(pages), n), "%s has no %s: %s", cells[0], n, line)
		}
	}
	require.Empty(t, reported(prose))
	entries, err := os.ReadDir(reportsFolder)
	require.NoError(t, err)
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
	}
	require.Equal(t, have, named)
}

// TestSoakReport: the counts of the soak test are those of the report beside it.
func TestSoakReport(t *testing.T) {
	t.Parallel()
	page, report := reportText(t, "soak.md"), reportText(t, "soak.html")
	counts := regexp.MustCompile(`- (\d+) messages sent, (\d+) confirmed, (\d+) in doubt .* (\d+) received, 0 lost, (\d+) received again`).FindStringSubmatch(page)
	require.Len(t, counts, 6, page)
	for _, said := range []string{
		"Sent " + counts[1] + " messages in", counts[2] + " were confirmed",
		"messages in doubt after outages, which the broker may have or not: " + counts[3],
		"an outage cut off their settlement: " + counts[5],
	} {
		require.True(t, strings.Contains(report, said), said)
	}
	busy := regexp.MustCompile(`the machine was (\d+)% busy, (\d+)% with other programs`).FindStringSubmatch(page)
	require.Len(t, busy, 3, page)
	require.True(t, strings.Contains(report, "the machine was "+busy[1]+"% busy, "+busy[2]+"% with other"), busy[0])
}
