package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
)

func requireMistake(t *testing.T, err error, text, hint string) {
	t.Helper()
	require.EqualError(t, err, text)
	var m *plan.Mistake
	require.ErrorAs(t, err, &m)
	require.Contains(t, m.Hint, hint)
}
