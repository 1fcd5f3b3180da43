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

	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// TestPandas runs the Python examples of docs/results.md, one after the other in one process as in a notebook, on two
// results. They print the result's average rate.
func TestPandas(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../docs/results.md"))(t)
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(blocks), 3)
	script := "import warnings\nwarnings.simplefilter('error')\n" // pandas warns about deprecated features
	for _, block := range blocks {
		script += block[1]
	}
	work := t.TempDir()
	for _, dir := range []string{"run", "second"} {
		r := run(t, limit, "amqp", "client", "--embedded", "--rate", "300", "--max-pending", "100", "--duration", "4", "--warmup", "1",
			"--result", filepath.Join(work, dir), "queue://TEST")
		require.Equal(t, statusOK, r.status)
	}
	cmd := exec.Command(pythonWith(t, "pandas"), "-c", script)
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	got := musttest.Get(runresult.Read(filepath.Join(work, "run")))(t)
	mean := regexp.MustCompile(`(?m)^completed/s +(\S+)$`).FindSubmatch(out)
	require.NotNil(t, mean, "%s", out)
	printed := musttest.Get(strconv.ParseFloat(string(mean[1]), 64))(t)
	require.InEpsilon(t, *got.Figures.Completed, printed, 0.01)
	require.NotContains(t, strings.ToLower(string(out)), "nan")
}

// pythonWith returns a Python that has a module: Debian's own, which has its packages, or the first one in the PATH.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	require.FailNow(t, "this test needs Python's "+module+": apt-get install python3-"+module)
	return ""
}
