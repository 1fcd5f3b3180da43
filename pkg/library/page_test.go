package library

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestPage: the pages about drivers have the drivers' code, and name existing functions.
func TestPage(t *testing.T) {
	for page, patterns := range map[string][]string{
		"library-driver.md": {"*.go", "../../internal/drivers/library/*/*.go", "../transport/*.go"},
		"own-protocol.md":   {"../../examples/driver-mqtt/*.go", "../../examples/driver-mqtt/mqtt/*.go"},
	} {
		text := musttest.Get(os.ReadFile("../../docs/" + page))(t)
		var code strings.Builder
		for _, pattern := range patterns {
			files := musttest.Get(filepath.Glob(pattern))(t)
			require.NotEmpty(t, files, pattern)
			for _, file := range files {
				text := musttest.Get(os.ReadFile(file))(t)
				code.Write(text)
			}
		}
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		require.Greater(t, len(blocks), 3, page)
		for _, block := range blocks {
			require.Truef(t, strings.Contains(code.String(), block[1]), "no driver has this code of %s:\n%s", page, block[1])
		}
		for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z].*?) \\|").FindAllStringSubmatch(string(text), -1) {
			for _, name := range regexp.MustCompile("[A-Za-z]+`").FindAllString(row[1], -1) {
				require.Regexp(t, `(?m)^(func (\([^)]*\) )?|type )`+strings.TrimSuffix(name, "`")+`\b`, code.String())
			}
		}
	}
}
