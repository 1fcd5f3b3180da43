//go:build unix

package crossing

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/cli"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
)

var shared = brokertest.Shared{
	ArtemisOptions:  []brokertest.ArtemisOption{brokertest.WithTLSClientCerts()},
	ActiveMQOptions: []brokertest.ActiveMQOption{brokertest.WithActiveMQClientCerts()},
	RabbitMQOptions: []brokertest.RabbitMQOption{brokertest.WithRabbitMQClientCerts()},
}

// begun is when the tests began.
var begun = time.Now()

func TestMain(m *testing.M) { brokertest.Main(m, &shared) }

// pairs are the protocols to send and to receive with.
func pairs() [][2]string {
	return [][2]string{{"amqp", "amqp"}, {"amqp", "stomp"}, {"stomp", "amqp"}, {"stomp", "stomp"}}
}

// urls are the addresses of a broker by protocol.
type urls map[string]string

// bothBrokers are those over which messages cross.
func bothBrokers(t *testing.T) map[string]urls {
	t.Helper()
	artemis, classic := shared.Artemis(t), shared.ActiveMQ(t)
	return map[string]urls{
		"artemis": {"amqp": artemis.AMQPURL(), "stomp": artemis.STOMPURL()},
		"classic": {"amqp": classic.AMQPURL(), "stomp": classic.STOMPURL()},
	}
}

// patience bounds each wait for an event that must happen: longer than a busy machine needs, and shorter than a hang.
const patience = 2 * time.Minute

// soon bounds the other operations of a test, besides whole runs.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// latency is a latency of the summary, in microseconds.
type latency struct {
	P50   int64 `json:"50"`
	Max   int64
	Count uint64
}

// summary is the last element of the JSON file.
type summary struct {
	SampleType, Result                        string
	TotalSent, TotalCompleted, TotalReceived  uint64
	TotalMissing                              *uint64
	TotalTransfer                             latency `json:"totalTransferTime"`
	TotalSend                                 latency `json:"totalSendTime"`
	Foreign, Unstamped, Redelivered, Negative uint64
	ConsumerReleased, ConsumerRejected        uint64
	ReceivedEarly                             uint64
	Replies, RequestsTimedOut, RepliesForeign uint64
	RepliesDuplicated, Answered               uint64
	TotalRoundTrip                            latency `json:"totalRoundTrip"`
	Problems, Warnings, LeftBehind            []string
}

// failing runs the command line in this process and returns its status and its error output.
func failing(t *testing.T, args ...string) (status int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cli.Main(cli.Env{
		Args: append(args, "--connect-timeout", patience.String(), "--silent"), Stdout: &out, Stderr: &errs, Factories: drivers.All(),
	})
	return status, errs.String()
}

// perfmq runs the command line in this process; it must succeed and be quiet about errors.
func perfmq(t *testing.T, args ...string) summary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.json")
	var stdout, stderr bytes.Buffer
	status := cli.Main(cli.Env{
		Args:   append(args, "--connect-timeout", patience.String(), "--silent", "--json", file),
		Stdout: &stdout, Stderr: &stderr, Factories: drivers.All(),
	})
	require.Zerof(t, status, "perfmq %s\n%s", strings.Join(args, " "), stderr.String())
	require.NotContains(t, stderr.String(), "error:")
	text := musttest.Get(os.ReadFile(file))(t)
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(text, &all))
	var s summary
	require.NoError(t, json.Unmarshal(all[len(all)-1], &s))
	require.Equal(t, "summary", s.SampleType)
	require.Equal(t, "success", s.Result)
	require.Empty(t, s.Problems)
	require.Empty(t, s.LeftBehind)
	return s
}
