package brokerside

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// Every second has its own sample, though the seconds begin with the watch, and end a little early or late.
func TestEverySecondHasItsSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.log")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		w := musttest.Get(Open(t.Context(), Config{Log: path}))(t)
		w.Start(asIs)
		began := time.Now()
		for n := range 60 {
			late := time.Duration(n%5-2) * 20 * time.Millisecond
			<-time.After(time.Until(began.Add(time.Duration(n+1)*time.Second + late)))
			use := w.Take()
			require.NotNil(t, use, "second %d", n+1)
			require.InDelta(t, 1e6, use.Span, 300_000, "second %d", n+1)
		}
		w.Stop()
	})
}
