//go:build unix

package mqtt_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/examples/driver-mqtt/mqtt"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/perfmq"
	"github.com/perfmq/perfmq/pkg/result"
)

// asProgram makes the test binary the program, for runs.
const asProgram = "MQTT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(perfmq.Main(mqtt.Factory())) //nolint:forbidigo // as main does
	}
	brokertest.Main(m, &shared)
}

// program returns perfmq with MQTT.
func program(t *testing.T, out *bytes.Buffer, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// TestRuns: what is sent is received, each message once.
func TestRuns(t *testing.T) {
	url := config(t).URL
	for name, options := range map[string]string{
		"once": "-o keep-alive=10s", "durable": "--durable --clientID c", "shared": "--shared 1 --consumers 3",
	} {
		dir, out := filepath.Join(t.TempDir(), "run"), new(bytes.Buffer)
		args := strings.Fields("mqtt client --user admin --password admin --rate 8000 --message-count 12000 --max-pending 200 --verify " + options)
		args = append(args, "--threshold", "lost == 0", "--threshold", "duplicated == 0", "--url", url, "--result", dir, "topic://runs/"+name)
		require.NoError(t, program(t, out, args...).Run(), out)
		r, err := result.Read(dir)
		require.NoError(t, err)
		require.EqualValues(t, 12000, r.Total.Producers.Completed, out)
		require.EqualValues(t, 12000, r.Total.Consumers.Received, out)
	}
}

// TestKill: a broker that is killed ends the run, with its reason.
func TestKill(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithoutManagement())
	out := new(bytes.Buffer)
	cmd := program(t, out, strings.Fields("mqtt client --rate 500 --max-pending 10 --duration 2m --url "+mqttURL(a)+" topic://kill")...)
	require.NoError(t, cmd.Start())
	time.AfterFunc(3*time.Second, a.Kill)
	require.Error(t, cmd.Wait())
	require.Equal(t, result.StatusFailed, cmd.ProcessState.ExitCode(), out)
	require.Contains(t, out.String(), "error: ", out)
	require.Regexp(t, `the connection broke|the broker closed the connection`, out.String())
}
