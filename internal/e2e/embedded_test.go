//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/verify"
)

// verification reads the verification result of a run.
func (r *result) verification(t *testing.T) *verify.Result {
	t.Helper()
	require.NotNil(t, r.summary.Details.Verification, "the run was to verify")
	return r.summary.Details.Verification
}

// whole tells that all messages arrived once, in order and undamaged.
func requireWhole(t *testing.T, v *verify.Result, messages uint64) {
	t.Helper()
	require.True(t, v.Known)
	require.Equal(t, messages, v.Sent)
	require.Equal(t, runresult.Verified{Expected: messages, Received: messages, Once: messages}, v.Total)
}

// TestEmbeddedPairs: messages sent over each protocol arrive over each, whole.
func TestEmbeddedPairs(t *testing.T) {
	t.Parallel()
	const messages = 2000
	for i, from := range broker.Protocols() {
		for k, to := range broker.Protocols() {
			kind := []string{"queue", "topic"}[(i+k)%2]
			if from != to && (from == broker.RocketMQ || to == broker.RocketMQ) {
				kind = "topic" // its queues are apart
			}
			t.Run(from+" to "+to+" over a "+kind, func(t *testing.T) {
				t.Parallel()
				args := []string{
					from, "client", "--embedded", "--consumer-protocol", to, "--verify", "--max-pending", "50",
					"--message-count", strconv.Itoa(messages), "--property", "color=red", kind + "://TEST",
				}
				if kind == "topic" && from != broker.RocketMQ { // which has no texts
					args = append(args, "--message-type", "text")
				}
				r := run(t, limit, args...)
				require.Equal(t, statusOK, r.status)
				v := r.verification(t)
				if from == broker.RocketMQ || to == broker.RocketMQ {
					v.Total.Disordered = 0 // RocketMQ spreads messages over several queues
				}
				requireWhole(t, v, messages)
				require.Zero(t, r.summary.Unstamped, "the time survives")
			})
		}
	}
}

// done reads the number of faults of a kind that the embedded broker reports.
func done(t *testing.T, stderr, what string) uint64 {
	t.Helper()
	m := regexp.MustCompile(`note: faults of the broker:.* ` + what + ` (\d+)`).FindStringSubmatch(stderr)
	require.Len(t, m, 2, "%s", stderr)
	n := musttest.Get(strconv.ParseUint(m[1], 10, 64))(t)
	return n
}

// TestEmbeddedFaults: the verification finds exactly the faults that the broker was told to make, and made.
func TestEmbeddedFaults(t *testing.T) {
	const messages = 10_000
	t.Parallel() // most of the time they wait for messages that will not come
	for _, protocol := range broker.Protocols() {
		for _, c := range []struct {
			fault, done string
			want        uint64
			found       func(*runresult.Verified) uint64
			status      int
		}{
			{"lose=97", "lost", 103, func(c *runresult.Verified) uint64 { return c.Lost }, statusFailed},
			{"damage=97", "damaged", 103, func(c *runresult.Verified) uint64 { return c.Damaged }, statusFailed},
			{"duplicate=97", "duplicated", 103, func(c *runresult.Verified) uint64 { return c.Duplicates }, statusFailed},
			{"reorder=97", "reordered", 103, func(c *runresult.Verified) uint64 { return c.Disordered }, statusOK},
			{"withhold=2500", "stored but not confirmed", 4, func(c *runresult.Verified) uint64 { return c.UnconfirmedArrived }, statusFailed},
		} {
			if protocol != broker.AMQP && c.done != "lost" && c.fault != "withhold=2500" {
				continue // these happen in the store, whatever the protocol
			}
			t.Run(protocol+" "+c.fault, func(t *testing.T) {
				t.Parallel()
				args := []string{
					protocol, "client", "--embedded", "--embedded-faults", c.fault, "--verify", "--max-pending", "50",
					"--message-count", strconv.Itoa(messages), "--drain-timeout", "6s", "queue://TEST",
				}
				if protocol == broker.RocketMQ {
					args = append(args, "-o", "queues=1") // order is per queue
				}
				r := run(t, limit, args...)
				require.Equal(t, c.status, r.status)
				v := r.verification(t)
				assert.Equal(t, c.want, done(t, r.stderr, c.done), "what the broker did")
				assert.Equal(t, c.want, c.found(&v.Total), "what was found")
				// And nothing else.
				clean := v.Total
				clean.Lost, clean.Damaged, clean.Duplicates, clean.Redelivered, clean.Disordered, clean.UnconfirmedArrived = 0, 0, 0, 0, 0, 0
				clean.DisorderedRedelivered = 0
				assert.Equal(t, runresult.Verified{Expected: clean.Expected, Received: clean.Received, Once: clean.Once}, clean)
			})
		}
	}
}

// TestBrokerCommand: a broker in one process, producers and consumers in others, joined by perfmq verify.
func TestBrokerCommand(t *testing.T) {
	t.Parallel()
	const messages = 3000
	b := serve(t, "--faults", "duplicate=1000")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	send := func(name string) {
		r := run(t, limit, "amqp", "producer", "--url", b.at("amqp"), "--message-count", strconv.Itoa(messages), "--max-pending", "20",
			"--verify-file", file(name), "queue://Q")
		require.Equal(t, statusOK, r.status)
	}
	send("producer-1")
	b.control(http.MethodPut, "/faults", "lose=100")
	send("producer-2")
	consumer := start(t, "stomp", "consumer", "--url", b.at("stomp"), "--verify-file", file("consumer"), "queue://Q")
	eventually(t, "the broker has nothing left", func() bool {
		s := b.stats()
		return len(s.Destinations) == 1 && len(s.Destinations[0].Queues) == 1 && s.Destinations[0].Queues[0].Depth == 0
	})
	consumer.silent()
	r := consumer.interrupt()
	require.Equal(t, statusFailed, r.status, "duplicates are seen without the producers' side")
	require.EqualValues(t, 3, r.verification(t).Total.Duplicates)
	require.EqualValues(t, 2*messages+3-30, r.summary.TotalReceived)

	r = run(t, limit, "verify", "--json", file("joined.json"), file("producer-1"), file("producer-2"), file("consumer"))
	require.Equal(t, statusFailed, r.status)
	require.Contains(t, r.stderr, "messages lost, accepted but never received: 30 of 6000")
	text := musttest.Get(os.ReadFile(file("joined.json")))(t)
	var v verify.Result
	require.NoError(t, json.Unmarshal(text, &v))
	require.Equal(t, runresult.Verified{Expected: 2 * messages, Received: 2*messages - 30, Once: 2*messages - 33, Lost: 30, Duplicates: 3}, v.Total)

	r = run(t, limit, "verify", "--allow-lost", "--allow-duplicates", file("producer-1"), file("producer-2"), file("consumer"))
	require.Equal(t, statusOK, r.status)

	b.signal(os.Interrupt)
	r = b.wait(limit)
	require.Equal(t, statusOK, r.status)
	require.Contains(t, r.stdout, "\nsent 6000, stored 5973, settled 5973, left 0")
	require.Contains(t, r.stdout, "lost 30, duplicated 3")
}

// TestTrace: over each protocol and client, the sampled messages alone carry their number, and arrive with it.
func TestTrace(t *testing.T) {
	t.Parallel()
	const messages, every = 3000, 10
	for _, protocol := range broker.Protocols() {
		for _, client := range []string{"native", "library"} {
			t.Run(protocol+", "+client, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "run")
				r := run(t, limit, protocol, "client", "--embedded", "--client", client, "--producers", "3", "--max-pending", "50",
					"--message-count", strconv.Itoa(messages), "--property", "order={{seq}}", "--trace-sample", fmt.Sprint("1/", every),
					"--result", dir, "queue://TEST")
				require.Equal(t, statusOK, r.status)
				list := musttest.Get(runresult.Slowest(messages, dir))(t)
				require.InDelta(t, messages/every, len(list), 80)
				for _, m := range list {
					require.NotEmpty(t, m.Producer, m.ID)
					require.Equal(t, "completed", m.End, m.ID)
					require.GreaterOrEqual(t, m.Received, m.Sent, m.ID)
					require.GreaterOrEqual(t, m.Settled, m.Received, m.ID)
				}
			})
		}
	}
}
