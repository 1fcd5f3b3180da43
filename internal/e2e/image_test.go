//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImage carries out the Dockerfile's first stage in a folder, except for the base image: the files of COPY suffice
// to build the binary, which with the CA certificates has the size that README.md states.
func TestImage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
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

	bytes := 0.0
	for _, file := range []string{filepath.Join(work, "image-perfmq"), "/etc/ssl/certs/ca-certificates.crt"} {
		if info, err := os.Stat(file); err == nil { // other systems have the certificates elsewhere; they are 1% of the image
			bytes += float64(info.Size())
		}
	}
	require.Equal(t, 2, strings.Count(final, "COPY --from=build"), "the image holds the binary and the certificates")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	sizes := regexp.MustCompile(`(?:binary|image)\s+of\s+(\d+) MB`).FindAllSubmatch(readme, -1)
	require.Len(t, sizes, 2)
	for _, size := range sizes {
		said, err := strconv.ParseFloat(string(size[1]), 64)
		require.NoError(t, err)
		require.InEpsilon(t, bytes/1e6, said, 0.1, "%s, but it is %.1f MB", size[0], bytes/1e6)
	}
}
