package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseStreamOffset(t *testing.T) {
	now := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	for text, want := range map[string]any{
		"first": "first", "last": "last", "next": "next", "0": uint64(0), "9223372036854775807": uint64(1<<63 - 1),
		"10m": now.Add(-10 * time.Minute), "2026-11-30T19:00:00Z": now.Add(-time.Hour),
	} {
		got, err := driver.ParseStreamOffset(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "First", "-1", "9223372036854775808", "-10m", "0s", "1.5", "1960-01-01T00:00:00Z", "today"} {
		_, err := driver.ParseStreamOffset(text, now)
		require.ErrorContains(t, err, "must be first, last, next, a number", text)
	}
}
