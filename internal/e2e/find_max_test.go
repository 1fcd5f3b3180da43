//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/search"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// TestFindMax: the maximum found for a broker that serves 2000 messages a second is never more than that (within 3%),
// and not much less, unless the output names the tester as the limit, as on a busy machine. Each tried rate has its
// result.
func TestFindMax(t *testing.T) {
	t.Parallel()
	const capacity = 2000
	for _, protocol := range []string{"amqp", "stomp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "found")
			r := run(t, limit, protocol, "client", "--embedded", "--embedded-faults", "rate=2000", "--rate", "1700", "--duration", "1.2s", "--warmup", "0.2s",
				"--find-max", "transfer.p99 < 200ms", "--result", dir)
			text, err := os.ReadFile(filepath.Join(dir, "search.json"))
			require.NoError(t, err, r.stderr)
			var found search.Found
			require.NoError(t, json.Unmarshal(text, &found))
			require.LessOrEqual(t, found.Rate, capacity*1.03, r.stdout)
			spoiled := found.Failed.Tester
			for i, p := range found.Points {
				require.Equal(t, p.Kept, p.Why == "", p)
				require.True(t, p.Rate <= capacity*1.03 || !p.Kept, p)
				spoiled = spoiled || p.Tester
				matches, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%03d-*", i+1)))
				require.NoError(t, err)
				require.Len(t, matches, 1)
				one, err := runresult.Read(matches[0])
				require.NoError(t, err)
				require.True(t, one.Complete)
			}
			switch r.status {
			case statusOK:
				require.True(t, found.Held)
				require.True(t, found.Rate >= capacity*0.97 || spoiled, r.stdout)
				require.Regexp(t, `(?m)^--- (maximum:|at least) `, r.stdout)
			default: // a machine so busy that no rate is kept for longer
				require.Equal(t, statusThreshold, r.status, r.stderr)
				require.True(t, spoiled, r.stdout)
			}
		})
	}
}
