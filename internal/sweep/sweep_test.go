package sweep

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
)

// TestHashCell: the embedded broker and its faults are in the hash of a cell.
func TestHashCell(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []plan.Plan{{}, {Embedded: true}, {Embedded: true, Faults: "rate=5"}} {
		r := run.Run{Plan: &of, Secrets: new(safetext.Secrets)}
		var b strings.Builder
		require.NoError(t, hashCell(&b, nil, &r))
		seen[b.String()] = true
	}
	require.Len(t, seen, 3)
}
