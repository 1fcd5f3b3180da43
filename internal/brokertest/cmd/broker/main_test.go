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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
)

// TestMain lets -detach start the test binary as the program.
func TestMain(m *testing.M) {
	if os.Getenv("PERFMQ_TEST_AS_BROKER") != "" {
		main()
		return
	}
	m.Run()
}

// harnessOf starts a detached broker, and returns the values that it prints, as a shell reads them.
func harnessOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	text := musttest.Get(said(append(args, "-detach")...))(t)
	out, err := exec.Command("sh", "-c", text+`echo "$PERFMQ_URL $BROKER_DIR $HARNESS_PID"`).CombinedOutput()
	require.NoError(t, err, "%s", out)
	values := strings.Fields(string(out))
	require.Len(t, values, 3)
	got := map[string]string{"url": values[0], "dir": values[1], "pid": values[2]}
	require.Contains(t, text, "-stop "+got["pid"])
	t.Cleanup(func() { _, _ = said("-stop", got["pid"]) }) // if the test has not
	return got
}

// said carries out a command, and returns its output.
func said(args ...string) (string, error) {
	var out bytes.Buffer
	err := run(context.Background(), args, os.Stdin, &out)
	return out.String(), err
}

// perfmq carries out a successful run.
func perfmq(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	status := cli.Main(cli.Env{Args: args, Stdout: &out, Stderr: &out, Factories: drivers.All()})
	require.Equal(t, 0, status, out.String())
}

func reachable(url string) bool {
	_, address, _ := strings.Cut(url, "://")
	conn, err := net.Dial("tcp", address)
	if err == nil {
		err = conn.Close()
	}
	return err == nil
}

// TestDetach: two brokers continue without the process that started them. Each obeys the commands for it alone, and
// keeps its messages over a crash and a restart.
func TestDetach(t *testing.T) {
	brokertest.Needs(t, "Artemis")
	t.Setenv("PERFMQ_TEST_AS_BROKER", "1")
	t.Setenv("TMPDIR", t.TempDir()) // so that the commands find no other brokers
	const messages, kind = "1000", "artemis"
	first := harnessOf(t, kind, "--no-management", "-heap", "256M")
	second := harnessOf(t, kind, "--no-management", "-heap", "256M")
	require.NotEqual(t, first["url"], second["url"])
	for _, b := range []map[string]string{first, second} {
		perfmq(t, "amqp", "producer", "--persistent", "--url", b["url"], "--message-count", messages, "--max-pending", "10", "queue://KEPT")
	}

	for _, verb := range []string{"-kill", "-restart", "-stop"} {
		_, err := said(kind, verb)
		require.ErrorContains(t, err, first["pid"]+" "+kind, "it would have to guess")
		_, err = said(kind, verb, "1")
		require.ErrorContains(t, err, "process 1 runs no detached broker")
	}
	out := musttest.Get(said(kind, "-kill", first["pid"]))(t)
	require.Equal(t, fmt.Sprintf("%s of process %s: killed\n", kind, first["pid"]), out)
	_, err := said(kind, "-kill", first["pid"])
	require.ErrorContains(t, err, "it is not running")
	require.DirExists(t, first["dir"])
	for _, restarts := range []string{"after the crash", "of a running one"} {
		out, err = said(kind, "-restart", first["pid"])
		require.NoError(t, err, restarts)
		require.Contains(t, out, "ready")
	}
	perfmq(t, "amqp", "consumer", "--url", first["url"], "--message-count", messages, "--duration", "60", "queue://KEPT")

	out = musttest.Get(said("--stop", first["pid"]))(t)
	require.Equal(t, fmt.Sprintf("%s of process %s: stopped\n", kind, first["pid"]), out)
	require.NoDirExists(t, first["dir"])
	require.False(t, reachable(first["url"]))
	perfmq(t, "amqp", "consumer", "--url", second["url"], "--message-count", messages, "--duration", "60", "queue://KEPT")
	_, err = said(kind, "-stop")
	require.NoError(t, err)
	require.NoDirExists(t, second["dir"])
	out = musttest.Get(said("-stop"))(t)
	require.Equal(t, "no detached broker is running\n", out)
	_, err = said(kind, "-kill")
	require.ErrorContains(t, err, "start one with -detach")
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
	brokertest.Needs(t, "Artemis")
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = inR.Close() }()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"artemis", "--login", "--no-management"}, inR, outW)
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
	assert.Regexp(t, `^amqp://127\.0\.0\.1:\d+$`, got["export PERFMQ_URL"])
	assert.Equal(t, brokertest.User, got["export PERFMQ_USER"])
	assert.Equal(t, brokertest.Password, got["export PERFMQ_PASSWORD"])
	require.NotEmpty(t, got["BROKER_DIR"])
	assert.NoDirExists(t, got["BROKER_DIR"])
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"kafka"}, {"artemis", "what"}, {"artemis", "--nonsense"}, {"rabbitmq", "--heap", "1G"}, {"artemis", "-outlive-parent", "-detach=true"}} {
		require.Error(t, run(context.Background(), args, os.Stdin, io.Discard), "%v", args)
	}
	require.ErrorIs(t, run(context.Background(), []string{"artemis", "--help"}, os.Stdin, io.Discard), flag.ErrHelp)
}
