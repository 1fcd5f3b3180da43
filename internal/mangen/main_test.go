package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	require.NoError(t, write([]string{dir}))
	for page, text := range map[string]string{
		"perfmq.1": "perfmq-amqp(1)", "perfmq-amqp-client.1": "--max-pending", "perfmq-run.1": "--set", "perfmq-rocketmq-consumer.1": "Destinations",
		"perfmq-verify.1": "--allow-lost",
	} {
		got, err := os.ReadFile(filepath.Join(dir, page))
		require.NoError(t, err)
		require.Contains(t, string(got), text, page)
		require.Contains(t, string(got), transport.Version, page)
	}
	require.Error(t, write(nil))
}
