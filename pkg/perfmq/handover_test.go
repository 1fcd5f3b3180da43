package perfmq

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const onLibrary = "rocketmq client --client library --message-count 3 queue://T"

// TestHandOver: a run on a library that is in another program goes there, whole, with its status. A dry run, and a
// mistake in the command line, do not.
func TestHandOver(t *testing.T) {
	var asked string
	err := errors.New("no such file")
	run := func(args string) (status int, stdout, stderr string) {
		env := musttest.Get(environment(nil))(t)
		var out, failed strings.Builder
		env.Args, env.Stdout, env.Stderr = strings.Split(args, " "), &out, &failed
		env.HandOver = func(program string) (int, error) {
			asked = program
			return result.StatusThreshold, err
		}
		return cli.Main(env), out.String(), failed.String()
	}
	status, _, stderr := run(onLibrary)
	require.Equal(t, result.StatusUsage, status)
	require.Contains(t, stderr, "error: perfmq-library has this client library, and cannot be started: no such file\n")
	require.Contains(t, stderr, "hint: put perfmq-library of the same release beside perfmq, or use --client native\n")

	asked, err = "", nil
	status, stdout, stderr := run(onLibrary + " --dry-run")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "client: rocketmq-client-go")
	status, _, _ = run(onLibrary + " --user u --password p")
	require.Equal(t, result.StatusUsage, status)
	status, _, _ = run("amqp client --embedded --message-count 3 queue://T")
	require.Zero(t, status)
	require.Empty(t, asked)

	status, stdout, stderr = run(onLibrary)
	require.Equal(t, result.StatusThreshold, status)
	require.Empty(t, stdout+stderr)
	require.Equal(t, "perfmq-library", asked)
}

// TestLibraryProgram: the other program has the driver, and nothing is handed over.
func TestLibraryProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, []driver.Factory{rocketmqgo.Factory()}, strings.Split(onLibrary+" --embedded --verify --result "+dir, " ")...)
	require.Zero(t, status, stderr)
	r := musttest.Get(result.Read(dir))(t)
	require.EqualValues(t, 3, r.Total.Consumers.Received)
}
