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

	"github.com/perfmq/perfmq/internal/musttest"
)

const reportsFolder = "../../docs/reports"

// reportText returns the words of a page of docs/reports, without markup and the commas of numbers.
func reportText(t *testing.T, name string) string {
	t.Helper()
	text := musttest.Get(os.ReadFile(filepath.Join(reportsFolder, name)))(t)
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

// TestReportsList: the list of docs/reports names each of its pages, and no others; each of its numbers stands in a
// named page.
func TestReportsList(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile(filepath.Join(reportsFolder, "README.md")))(t)
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
	entries := musttest.Get(os.ReadDir(reportsFolder))(t)
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
	}
	require.Equal(t, have, named)
}
