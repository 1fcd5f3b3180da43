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

// TestPage: docs/library-driver.md has the drivers' code, and names existing functions.
func TestPage(t *testing.T) {
	page := musttest.Get(os.ReadFile("../../docs/library-driver.md"))(t)
	var code strings.Builder
	for _, pattern := range []string{"*.go", "../../internal/drivers/library/*/*.go", "../transport/pool.go"} {
		files := musttest.Get(filepath.Glob(pattern))(t)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text := musttest.Get(os.ReadFile(file))(t)
			code.Write(text)
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(blocks), 3)
	for _, block := range blocks {
		require.Truef(t, strings.Contains(code.String(), block[1]), "no driver has this code:\n%s", block[1])
	}
	rows := regexp.MustCompile("(?m)^\\| (`[A-Z].*?) \\|").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 5)
	for _, row := range rows {
		for _, name := range regexp.MustCompile("[A-Za-z]+`").FindAllString(row[1], -1) {
			require.Regexp(t, `(?m)^(func (\([^)]*\) )?|type )`+strings.TrimSuffix(name, "`")+`\b`, code.String())
		}
	}
}
