package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/transport"
	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	require.NoError(t, write([]string{dir}))
	for page, texts := range map[string][]string{
		"perfmq.1": {"perfmq\\-amqp (1)", ".SH EXIT STATUS"}, "perfmq-run.1": {"\\-\\-set NAME=VALUE", "  130  interrupted"},
		"perfmq-amqp-client.1": {
			".B \\-\\-max\\-pending N\nmessages in flight per producer; 0: no limit\n(default: 1)\n", "(default: as fast as possible)",
			".SH OPTIONS OF AMQP 1.0\n\\-o KEY=VALUE", ".SH SYNOPSIS\n.nf\n  perfmq amqp client [flags]", ".SH EXIT STATUS", "    3  a \\-\\-threshold failed",
		},
		"perfmq-rocketmq-consumer.1": {"Destinations"}, "perfmq-verify.1": {"\\-\\-allow\\-lost"}, "perfmq-completion-zsh.1": {"\tsource <(perfmq completion zsh)"},
	} {
		got := musttest.Get(os.ReadFile(filepath.Join(dir, page)))(t)
		for _, text := range append(texts, transport.Version) {
			require.Contains(t, string(got), text, page)
		}
		if groff, err := exec.LookPath("groff"); err == nil {
			command := exec.Command(groff, "-man", "-Tascii", "-ww", filepath.Join(dir, page))
			var warnings bytes.Buffer
			command.Stderr = &warnings
			require.NoError(t, command.Run())
			require.Empty(t, warnings.String(), page)
		}
	}
	require.NoFileExists(t, filepath.Join(dir, "perfmq-mem.1"), "it is there to test perfmq")
	require.Error(t, write(nil))
}
