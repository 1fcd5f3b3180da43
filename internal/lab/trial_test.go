//go:build unix

package main

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
)

// TestTrials carries out some rows of docs/lab/failures.md: real brokers fail, and what perfmq reports of it is judged by
// their own counts.
func TestTrials(t *testing.T) {
	brokertest.Needs(t, "brokers")
	t.Setenv("PERFMQ_CONNECT_TIMEOUT", "1m") // a busy machine
	s := session{perfmq: filepath.Join(t.TempDir(), "perfmq"), dir: t.TempDir(), allowed: 10 * time.Second, atOnce: 3}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.perfmq, "github.com/perfmq/perfmq/cmd/perfmq").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.only = regexp.MustCompile("^(rabbitmq/restart|rocketmq/kill)$")
	rows := musttest.Get(s.all(t.Context(), failureTrials(false)))(t)
	require.NoError(t, mistakes(rows))
	require.Len(t, rows, 3, "each protocol of each broker has one")
}

// TestCommandsHaveFlags: no command defines a flag twice, and each prints its help.
func TestCommandsHaveFlags(t *testing.T) {
	for _, c := range commands() {
		require.ErrorIs(t, run(t.Context(), []string{c.name, "-h"}), flag.ErrHelp, c.name)
	}
}
