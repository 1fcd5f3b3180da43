//go:build unix

package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBrokerEndsWithItsStdin(t *testing.T) {
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = inR.Close() }()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"artemis", "--no-management"}, inR, outW)
		_ = outW.Close() // ends the loop below when the start failed
		ended <- err
	}()
	got := map[string]string{}
	for lines := bufio.NewScanner(outR); got["READY"] == "" && lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		got[key] = value
	}
	require.NoError(t, inW.Close())
	require.NoError(t, <-ended)
	assert.Equal(t, "1", got["READY"])
	assert.Regexp(t, `^amqp://127\.0\.0\.1:\d+$`, got["AMQP_URL"])
	assert.NotContains(t, got, "MANAGEMENT_URL", "what there is not, has no line")
	assert.NoDirExists(t, got["BROKER_DIR"])
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"kafka"}, {"artemis", "what"}, {"artemis", "--nonsense"}} {
		require.Error(t, run(context.Background(), args, os.Stdin, io.Discard), "%v", args)
	}
	require.ErrorIs(t, run(context.Background(), []string{"artemis", "--help"}, os.Stdin, io.Discard), flag.ErrHelp)
}
