package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

func TestConsoleSteps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	fakeSteps(t, 3, 2, 1).feed(t, nil, NewConsole(&out, ConsoleOptions{ShowLatency: true}))
	golden(t, "console-steps.txt", out.String())
}

func TestResultSteps(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	f := fakeSteps(t, 3, 2, 1)
	f.feed(t, nil, r)
	require.NoError(t, r.Close())
	resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
	got := musttest.Get(result.ReadHistograms(dir))(t)
	require.Empty(t, got.Outcome.Warnings[1:], "the rows add up to their steps")
	var steps []string
	for i := range got.Rows {
		steps = append(steps, got.Rows[i].Step)
	}
	assert.Equal(t, strings.Fields("allout allout allout allout paced paced paced drain drain"), steps)
}

// writeStepsHDR writes the log of a run of three steps.
func writeStepsHDR(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.hdr")
	h := musttest.Get(NewHDR(path))(t)
	fakeSteps(t, 3, 2, 1).feed(t, nil, h)
	require.NoError(t, h.Close())
	return path
}
