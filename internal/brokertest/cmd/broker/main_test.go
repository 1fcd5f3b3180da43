//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// TestMain lets -detach start the test binary as the program.
func TestMain(m *testing.M) {
	if os.Getenv("PERFMQ_TEST_AS_BROKER") != "" {
		main()
		return
	}
	m.Run()
}

// TestDetach: the broker continues without the process that started it, on the default ports, until -stop.
func TestDetach(t *testing.T) {
	brokertest.Needs(t, "Artemis")
	t.Setenv("PERFMQ_TEST_AS_BROKER", "1")
	t.Setenv("TMPDIR", t.TempDir()) // so that -stop finds no other brokers
	t.Cleanup(func() { assert.NoError(t, run(context.Background(), []string{"-stop"}, os.Stdin, io.Discard)) })
	var said bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"artemis", "-detach", "--no-management", "-heap", "256M"}, os.Stdin, &said))

	// A shell evaluates the printed lines.
	out, err := exec.Command("sh", "-c", said.String()+`echo "$PERFMQ_URL $AMQP_URL $STOMP_URL $BROKER_DIR $HARNESS_PID"`).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var url, amqp, stomp, dir string
	var pid int
	_, err = fmt.Sscan(string(out), &url, &amqp, &stomp, &dir, &pid)
	require.NoError(t, err, "%s", out)
	require.Equal(t, amqp, url)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "amqp://"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Contains(t, said.String(), fmt.Sprintf("-stop %d\n", pid))

	// A second one finds the default ports taken.
	var second bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"artemis", "-detach", "--no-management", "-heap", "256M"}, os.Stdin, &second))
	require.NotContains(t, second.String(), amqp)

	require.ErrorContains(t, run(t.Context(), []string{"-stop", "1"}, os.Stdin, io.Discard), "process 1 owns no detached broker")
	require.ErrorContains(t, run(t.Context(), []string{"-stop", "x"}, os.Stdin, io.Discard), "HARNESS_PID")
	require.DirExists(t, dir)
	said.Reset()
	require.NoError(t, run(t.Context(), []string{"-stop", strconv.Itoa(pid)}, os.Stdin, &said))
	require.Equal(t, fmt.Sprintf("stopped the broker of process %d\n", pid), said.String())
	require.NoDirExists(t, dir)
	_, err = net.Dial("tcp", strings.TrimPrefix(url, "amqp://"))
	require.Error(t, err)

	said.Reset()
	require.NoError(t, run(t.Context(), []string{"--stop"}, os.Stdin, &said))
	require.Equal(t, 1, strings.Count(said.String(), "stopped the broker of process"))
	said.Reset()
	require.NoError(t, run(t.Context(), []string{"-stop"}, os.Stdin, &said))
	require.Equal(t, "no detached broker is running\n", said.String())
}

// TestDetachFailure: the error text of the detached process is not lost.
func TestDetachFailure(t *testing.T) {
	t.Setenv("PERFMQ_TEST_AS_BROKER", "1")
	err := run(t.Context(), []string{"artemis", "-detach", "-heap", "nothing"}, os.Stdin, io.Discard)
	require.ErrorContains(t, err, "the broker did not start: ")
	require.ErrorContains(t, err, "Invalid initial heap size")
}

// TestBrokerEndsWithItsStdin: the command prints its lines, with the login that clients need, and ends with its stdin.
func TestBrokerEndsWithItsStdin(t *testing.T) {
	brokertest.Needs(t, "RocketMQ")
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = inR.Close() }()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"rocketmq", "--login"}, inR, outW)
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
	assert.Regexp(t, `^rocketmq://127\.0\.0\.1:\d+$`, got["export PERFMQ_URL"])
	assert.Equal(t, brokertest.RocketMQUser, got["export PERFMQ_USER"])
	assert.Equal(t, brokertest.RocketMQPassword, got["export PERFMQ_PASSWORD"])
	require.NotEmpty(t, got["BROKER_DIR"])
	assert.NoDirExists(t, got["BROKER_DIR"])
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"kafka"}, {"artemis", "what"}, {"artemis", "--nonsense"}, {"rabbitmq", "--heap", "1G"}, {"artemis", "-outlive-parent", "-detach=true"}} {
		require.Error(t, run(context.Background(), args, os.Stdin, io.Discard), "%v", args)
	}
	require.ErrorIs(t, run(context.Background(), []string{"artemis", "--help"}, os.Stdin, io.Discard), flag.ErrHelp)
}
