//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddedFinding: a new kind of finding is a row in internal/words and the line that finds it. Each output has it.
func TestAddedFinding(t *testing.T) {
	dir := t.TempDir()
	replace := map[string]string{}
	for file, edit := range map[string][2]string{
		"internal/words/kinds.go":         {"var kinds = []Kind{\n", `{"new", result.Note, "new things: %d", "things"},` + "\n"},
		"internal/engine/observations.go": {"func Observe(s *stats.Summary) {\n", `s.Find("new", "", 7, 7)` + "\n"},
	} {
		path, err := filepath.Abs(filepath.Join("../..", file))
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), edit[0])
		replace[path] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(replace[path], []byte(strings.Replace(string(text), edit[0], edit[0]+edit[1], 1)), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
	perfmq := filepath.Join(dir, "perfmq")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay"), "-o", perfmq, "./cmd/perfmq")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	folder, jsonFile := filepath.Join(dir, "run"), filepath.Join(dir, "run.json")
	metrics := freeAddress(t)
	for _, format := range []string{"artemis", "short", "rocketmq"} {
		args := []string{"amqp", "client", "--embedded", "--message-count", "10", "--format", format, "queue://TEST"}
		if format == "artemis" {
			args = append(args, "--result", folder, "--json", jsonFile, "--metrics", metrics, "--metrics-linger", "scrape")
		}
		run := exec.CommandContext(t.Context(), perfmq, args...)
		var console strings.Builder
		run.Stdout = &console
		require.NoError(t, run.Start())
		if format == "artemis" {
			eventually(t, "the finding is in the metrics", func() bool {
				resp, err := http.Get("http://" + metrics + "/metrics") //nolint:noctx // of this machine
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				return regexp.MustCompile(`perfmq_run_findings{kind="new"[^}]*} 7\n`).Match(text)
			})
		}
		require.NoError(t, run.Wait())
		require.Regexp(t, `finding:? +new things: 7\n`, console.String())
	}
	const written = `{"kind":"new","count":7,"severity":"note","text":"new things: 7"}`
	for _, file := range []string{jsonFile, filepath.Join(folder, "result.json")} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, strings.NewReplacer(" ", "", "\n", "").Replace(string(text)), strings.ReplaceAll(written, " ", ""))
	}
	page, err := exec.CommandContext(t.Context(), perfmq, "report", "--format", "markdown", folder).Output()
	require.NoError(t, err)
	require.Contains(t, string(page), "- new things: 7\n")
}
