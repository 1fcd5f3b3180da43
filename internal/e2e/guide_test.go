//go:build unix

package e2e

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

const limit = 2 * time.Minute // for runs of a few seconds: a hang is longer, a slow machine is not

// TestGuideQueue is cases 1 and 2 of the user guide of `artemis perf`.
func TestGuideQueue(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for _, c := range []struct {
		name string
		args []string
		rate float64
	}{
		{name: "as simple as can be", args: []string{"--duration", "2"}},
		{name: "latencies", args: []string{"--duration", "2", "--show-latency"}},
		{
			name: "100 in flight",
			args: []string{"--duration", "3", "--warmup", "1", "--max-pending", "100", "--show-latency", "--hdr", "HDR"},
		},
		{
			name: "target rate", rate: 300,
			args: []string{"--duration", "3s", "--warmup", "1s", "--max-pending", "100", "--show-latency", "--rate", "300", "--hdr", "HDR"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			hdr := filepath.Join(t.TempDir(), "run.hdr")
			args := []string{"amqp", "client", "--url", a.AMQPURL()}
			for _, arg := range c.args {
				args = append(args, strings.Replace(arg, "HDR", hdr, 1))
			}
			r := run(t, limit, append(args, "queue://"+queue)...)
			require.Equal(t, statusOK, r.status)
			require.Equal(t, "duration reached", r.summary.Reason)
			require.NotZero(t, r.summary.TotalSent)
			require.Equal(t, r.summary.TotalSent, r.summary.TotalCompleted)
			require.Equal(t, r.summary.TotalSent, r.summary.TotalReceived)
			q := settled(t, a, queue)
			require.EqualValues(t, r.summary.TotalCompleted, q.MessagesAdded, "the broker's own counter")
			require.EqualValues(t, r.summary.TotalReceived, q.MessagesAcked, "the broker's own counter")

			warm := strings.Contains(r.stdout, "--- warmup true\n")
			require.Equal(t, strings.Contains(strings.Join(c.args, " "), "--warmup"), warm)
			require.Contains(t, r.stdout, "--- warmup false\n")
			if warm {
				require.Less(t, r.summary.TotalSend.Count, r.summary.TotalCompleted, "the summary's latencies are without the warm-up")
			}
			if strings.Contains(strings.Join(c.args, " "), "--hdr") {
				requireComplete(t, hdr, &r)
			}
			if c.rate > 0 {
				requireRate(t, c.rate, 3, &r)
			}
		})
	}
}

// TestGuideTopics is case 3: 10 durable topics with 3 producers and 2 unshared durable subscriptions each.
func TestGuideTopics(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for name, extra := range map[string][]string{
		"all-out":     nil,
		"target rate": {"--rate", "400", "--threads", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			const topics, producers, consumers = 10, 3, 2
			seed := unique(t, "topic")
			// A subscription of ours on each topic counts the messages that the broker took in.
			for i := range topics {
				require.NoError(t, a.CreateQueue(soon(t), seed+strconv.Itoa(i), "audit."+seed+strconv.Itoa(i), "MULTICAST"))
			}
			p := start(t, append([]string{
				"amqp", "client", "--url", a.AMQPURL(), "--warmup", "1", "--duration", "10m", "--max-pending", "20",
				"--show-latency", "--producers", strconv.Itoa(producers), "--consumers", strconv.Itoa(consumers),
				"--num-destinations", strconv.Itoa(topics), "--durable", "--persistent", "--clientID", "test_id", "topic://" + seed,
			}, extra...)...)
			p.printed("--- warmup false")
			for i := range topics {
				subs := musttest.Get(a.Subscriptions(soon(t), seed+strconv.Itoa(i)))(t)
				require.Len(t, subs, 1+consumers)
				for _, s := range subs {
					require.True(t, s.Durable, s.Name)
					require.Regexp(t, "^(test_id|audit)", s.Name)
				}
			}
			r := p.interrupt()
			require.Equal(t, "success", r.summary.Result)
			require.NotZero(t, r.summary.TotalSent)
			require.Equal(t, r.summary.TotalSent, r.summary.TotalCompleted)
			require.Equal(t, r.summary.TotalCompleted*consumers, r.summary.TotalReceived)
			require.Equal(t, r.summary.TotalReceived, *r.summary.TotalExpected)
			var added, durable int64
			eventually(t, "the broker has counted all messages, which are persistent", func() bool {
				added, durable = 0, 0
				for i := range topics {
					q := counters(t, a, "audit."+seed+strconv.Itoa(i))
					added, durable = added+q.MessagesAdded, durable+q.DurableMessageCount
				}
				return added >= int64(r.summary.TotalCompleted) && durable >= added
			})
			require.EqualValues(t, r.summary.TotalCompleted, added, "the broker's own counters")
			require.Equal(t, added, durable, "messages are persistent")
			for i := range topics {
				subs := musttest.Get(a.Subscriptions(soon(t), seed+strconv.Itoa(i)))(t)
				require.Len(t, subs, 1, "its subscriptions are removed")
				require.Equal(t, "audit."+seed+strconv.Itoa(i), subs[0].Name)
				require.NotZero(t, subs[0].MessagesAdded, "each topic has load")
			}
		})
	}
}

func TestKeptSubscription(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	topic := unique(t, "topic")
	args := []string{"amqp", "client", "--url", a.AMQPURL(), "--durable", "--clientID", "kept", "topic://" + topic}
	r := run(t, limit, append(args, "--keep-subscription", "--message-count", "100")...)
	require.Equal(t, statusOK, r.status)
	first := settledSubscriptions(t, a, topic, "")
	require.Len(t, first, 1)
	require.True(t, first[0].Durable)
	require.Zero(t, first[0].MessageCount)
	require.EqualValues(t, 100, first[0].MessagesAcked)

	p := start(t, append(args, "--rate", "50")...)
	p.printed("--- warmup false")
	again := musttest.Get(a.Subscriptions(soon(t), topic))(t)
	require.Len(t, again, 1)
	require.Equal(t, first[0].Name, again[0].Name, "the second run takes up the subscription of the first")
	r = p.interrupt()
	require.Equal(t, "success", r.summary.Result)
	require.Equal(t, r.summary.TotalSent, r.summary.TotalReceived)
	left := musttest.Get(a.Subscriptions(soon(t), topic))(t)
	require.Empty(t, left, "without --keep-subscription it is removed")
}

func TestSharedSubscriptions(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	topic := unique(t, "topic")
	r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--shared", "3", "--consumers", "2", "--producers", "2",
		"--max-pending", "10", "--message-count", "1001", "topic://"+topic)
	require.Equal(t, statusOK, r.status)
	require.EqualValues(t, 1001, r.summary.TotalCompleted)
	require.EqualValues(t, 3*1001, r.summary.TotalReceived, "each subscription gets all, its consumers share them")
	eventually(t, "the broker has removed what nobody uses any more", func() bool {
		left, err := a.Subscriptions(soon(t), topic)
		return err == nil && len(left) == 0
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for _, c := range []struct {
		rate      float64
		producers int
	}{{1, 1}, {1.5, 1}, {0.3, 1}, {10, 7}, {33.3, 4}} {
		rate := strconv.FormatFloat(c.rate, 'f', -1, 64)
		t.Run(rate, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--duration", "2", "--max-pending", "100", "--rate", rate,
				"--producers", strconv.Itoa(c.producers), "queue://"+queue)
			require.Equal(t, statusOK, r.status)
			require.EqualValues(t, r.summary.TotalSent, settled(t, a, queue).MessagesAcked)
			requireRate(t, c.rate, 2, &r)
		})
	}
}

// requireRate: message n is due n/rate after the start. Exactly the messages that are due before the load has lasted
// seconds are sent, or, by a busy machine, reported as unsent: internal/load has the tests by a fake clock.
func requireRate(t *testing.T, rate, seconds float64, r *result) {
	t.Helper()
	due := uint64(math.Ceil(rate * seconds))
	require.LessOrEqual(t, r.summary.TotalSent, due, "messages due in %g s", seconds)
	if strings.Contains(r.stdout, "--- warmup true\n") { // the average is without it
		return
	}
	average := r.summary.Details.Figures
	require.Equal(t, due, average.Due)
	require.Equal(t, due, r.summary.TotalSent+average.Unsent)
}

// TestDestinationNames: the characters that docs/protocols.md names, as a user gives them. A name is either one
// destination, with messages that arrive and are counted by the broker, or refused. The conformance suite has more
// names, on all brokers.
func TestDestinationNames(t *testing.T) {
	t.Parallel()
	artemis := shared.Artemis(t)
	all := []string{"PUB one", "a b c", "p%q", "p%20q", "grün", "名前", "x>y", "q.>", "m,n", "s*t", "q.*", "u#v", "q.#", "h?i"}
	for _, c := range []struct {
		protocol, kind string
		args           []string
		refused        string // the names, joined by |
		because        string
	}{
		{"rocketmq", "queue://", []string{"--embedded"}, "PUB one|a b c|grün|名前|x>y|q.>|m,n|s*t|q.*|u#v|q.#|h?i", "a name has letters"},
		{"amqp", "topic://", []string{"--url", artemis.AMQPURL()}, "s*t|q.*|u#v|q.#|h?i", "name"},
		{"stomp", "queue://", []string{"--url", artemis.STOMPURL()}, "s*t|q.*|u#v|q.#|h?i", "name"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("%sn%d-", c.kind, counter.Add(1))
			client := append([]string{c.protocol, "client"}, c.args...)
			args := append(slices.Clone(client), "--message-count", "560", "--max-pending", "1", "--verify")
			refused := strings.Split(c.refused, "|")
			for _, name := range all {
				if !slices.Contains(refused, name) {
					args = append(args, prefix+name)
				}
			}
			r := run(t, limit, args...)
			require.Equal(t, statusOK, r.status, r.stderr)
			assert.EqualValues(t, 560, r.verification(t).Total.Once)
			if c.protocol != "stomp" { // over it Artemis is not asked
				assert.Contains(t, countLines(&r), equalCounts(560)[0])
			}
			for _, name := range refused[:2] { // the others are refused in the driver's own tests
				r := run(t, limit, append(slices.Clone(client), "--message-count", "1", prefix+name)...)
				assert.Equal(t, statusUsage, r.status)
				assert.Contains(t, r.stderr, c.because)
				assert.Contains(t, r.stderr, "hint: ")
			}
		})
	}
}
