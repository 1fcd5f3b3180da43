//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestImage carries out the Dockerfile's first stage in a folder, except for the base image: the files of COPY suffice
// to build the binary, and the image holds it and the CA certificates.
func TestImage(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../Dockerfile"))(t)
	stage, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, ok)
	work, build := t.TempDir(), ""
	for line := range strings.Lines(stage) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "COPY":
			for _, from := range words[1 : len(words)-1] {
				out, err := exec.Command("cp", "-R", filepath.Join("../..", from), filepath.Join(work, from)).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
		case strings.Contains(line, "go build"):
			build = strings.TrimPrefix(strings.TrimSpace(line), "RUN ")
		}
	}
	cmd := exec.Command("sh", "-c", strings.Replace(build, " /perfmq ", " ./image-perfmq ", 1))
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", build, out)

	require.FileExists(t, filepath.Join(work, "image-perfmq"))
	require.Equal(t, 2, strings.Count(final, "COPY --from=build"), "the image holds the binary and the certificates")
}
