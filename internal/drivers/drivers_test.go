package drivers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers"
)

// TestEveryClientIsDiagnosed: a port of another protocol is named soon, whichever client meets it.
func TestEveryClientIsDiagnosed(t *testing.T) {
	t.Parallel()
	for _, f := range drivers.All() {
		require.Equal(t, f.Name != "mem", f.Diagnose != nil, "%s %s", f.Name, f.Client)
	}
}
