//go:build unix

package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// countLines returns the lines of a run about the broker's count.
func countLines(r *result) (list []string) {
	for line := range strings.Lines(r.stdout) {
		if text, ok := strings.CutPrefix(line, "--- broker's count: "); ok {
			list = append(list, strings.TrimSpace(text))
		}
	}
	return list
}

// equalCounts are the lines of a client run after a full count.
func equalCounts(messages int) []string {
	n := strconv.Itoa(messages)
	return []string{"added " + n + ", sent " + n + ": equal", "acknowledged " + n + ", received " + n + ": equal"}
}

// depths returns the depths in the intervals of a run.
func depths(r *result) (list []uint64) {
	for i := range r.intervals {
		if b := r.intervals[i].Row.Backlog; b != nil {
			list = append(list, *b)
		}
	}
	return list
}

// TestCountOfEmbedded: the embedded broker's count equals the run's, less the lost messages, plus the duplicated ones.
func TestCountOfEmbedded(t *testing.T) {
	t.Parallel()
	const messages = 9700
	for _, protocol := range broker.Protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := run(t, limit, protocol, "client", "--embedded", "--max-pending", "50", "--message-count", strconv.Itoa(messages), "queue://TEST")
			require.Equal(t, statusOK, r.status)
			assert.Equal(t, equalCounts(messages), countLines(&r))
			r = run(t, limit, protocol, "client", "--embedded", "--broker-count", "off", "--message-count", "10", "queue://TEST")
			assert.Empty(t, countLines(&r))
			assert.Empty(t, depths(&r))
			r = run(t, limit, protocol, "client", "--embedded", "--max-pending", "50", "--message-count", strconv.Itoa(messages), "topic://TEST")
			require.Equal(t, statusOK, r.status)
			assert.Equal(t, equalCounts(messages)[:1], countLines(&r))
		})
	}
	r := run(t, limit, "amqp", "client", "--embedded", "--embedded-faults", "lose=97", "--message-count", strconv.Itoa(messages),
		"--drain-timeout", "2s", "--max-pending", "50", "queue://TEST")
	assert.Equal(t, []string{"added 9600, sent 9700: DIFFERS by -100", "acknowledged 9600, received 9600: equal"}, countLines(&r))
	r = run(t, limit, "stomp", "client", "--embedded", "--embedded-faults", "duplicate=97", "--message-count", strconv.Itoa(messages),
		"--drain-timeout", "2s", "--max-pending", "50", "queue://TEST")
	assert.Equal(t, []string{"added 9800, sent 9700: DIFFERS by 100", "acknowledged 9800, received 9800: equal"}, countLines(&r))
}

// TestCountOfArtemis: the broker's count equals the run's and the operator console's; three messages of another client
// are found.
func TestCountOfArtemis(t *testing.T) {
	t.Parallel()
	const messages = 20_003
	a := shared.Artemis(t)
	queue := newQueue(t, a)
	r := run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--message-count", strconv.Itoa(messages), "--max-pending", "50", "--producers", "3",
		"--consumers", "2", "queue://"+queue)
	require.Equal(t, statusOK, r.status)
	assert.Equal(t, equalCounts(messages), countLines(&r))
	q := settled(t, a, queue)
	assert.EqualValues(t, messages, q.MessagesAdded)
	assert.EqualValues(t, messages, q.MessagesAcked)

	for kind, want := range map[string][]string{"queue": equalCounts(1000), "topic": equalCounts(1000)[:1]} {
		// The broker makes and removes these. On a busy machine its counters follow so late that it removes them before.
		for tries := 1; ; tries++ {
			to := kind + "://" + unique(t, kind)
			r = run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--message-count", "1000", "--max-pending", "50", "--consumers", "3", to)
			if got := countLines(&r); !slices.Contains(got, "the broker removed "+to+" with its count") || tries == 8 {
				assert.Equal(t, want, got, kind)
				break
			}
		}
	}

	dir := filepath.Join(t.TempDir(), "run")
	p := start(t, "amqp", "producer", "--url", a.AMQPURL(), "--rate", "500", "--message-count", "2500", "--max-pending", "100", "--result", dir, "queue://"+queue)
	eventually(t, "the load has begun", func() bool { return counters(t, a, queue).MessagesAdded > messages })
	run(t, limit, "amqp", "producer", "--url", a.AMQPURL(), "--message-count", "3", "queue://"+queue)
	r = p.wait(limit)
	require.Equal(t, statusOK, r.status, "it is a finding, not a failure")
	assert.Equal(t, []string{"added 2503, sent 2500: DIFFERS by 3"}, countLines(&r))
	got := musttest.Get(runresult.Read(dir))(t)
	assert.Contains(t, got.Findings, runresult.Finding{
		Kind: "broker-added", Severity: runresult.Note, Count: 3, Subject: "queue://" + queue,
		Text: "queue://" + queue + ": the broker counted 3 messages more than it accepted: other clients sent, or it duplicated or dropped some",
	})
	r = run(t, limit, "amqp", "consumer", "--url", a.AMQPURL(), "--message-count", "2503", "queue://"+queue)
	assert.Equal(t, []string{"acknowledged 2503, received 2503: equal"}, countLines(&r))
}

// TestCountOfArtemisNotAllowed: for a user without the permission to manage Artemis, the native client reports so in
// one line, the library client prints no count, and the run succeeds.
func TestCountOfArtemisNotAllowed(t *testing.T) {
	t.Parallel()
	a := secure.Artemis(t)
	for _, client := range []string{"native", "library"} {
		var r result
		for range 5 { // a machine that others fill may leave the broker no time to refuse
			r = run(t, limit, "amqp", "client", "--url", a.AMQPURL(), "--user", "user", "--password", "user-secret", "--client", client,
				"--message-count", "1000", "--max-pending", "50", "queue://"+newQueue(t, a))
			if !strings.Contains(strings.Join(countLines(&r), " "), "no answer") {
				break
			}
		}
		require.Equal(t, statusOK, r.status)
		require.EqualValues(t, 1000, r.summary.TotalReceived)
		if client == "native" {
			require.Equal(t, []string{"ask for counters: it refuses: the user may lack the permission manage on the address " +
				"activemq.management"}, countLines(&r))
		} else {
			require.Empty(t, countLines(&r))
		}
	}
}

// told returns the products of the brokers of a run, as they reported them: "amqp: product version".
func told(t *testing.T, r *result) (list []string) {
	t.Helper()
	for _, b := range r.summary.Details.Brokers {
		list = append(list, b.Protocol+": "+b.Product+" "+b.Version)
		require.Regexp(t, `(?m)^--- broker: +`+regexp.QuoteMeta(b.Product+" "+b.Version)+"$", r.stdout)
	}
	return list
}

// TestCountOfRocketMQ: RocketMQ's offsets equal the counts of the run.
func TestCountOfRocketMQ(t *testing.T) {
	t.Parallel()
	const messages = 5003
	b := alone(t, &rocketMQ, shared.RocketMQ)
	for _, kind := range []string{"queue", "topic"} {
		r := run(t, limit, "rocketmq", "client", "--url", b.URL(), "--message-count", strconv.Itoa(messages), "--max-pending", "50", kind+"://count-"+kind)
		require.Equal(t, statusOK, r.status)
		require.Equal(t, []string{"rocketmq: RocketMQ " + strings.TrimPrefix(b.Title(), "RocketMQ ")}, told(t, &r))
		want := equalCounts(messages)
		if kind == "topic" {
			want = want[:1]
		}
		assert.Equal(t, want, countLines(&r))
		added := musttest.Get(b.TopicMessages(soon(t), "count-"+kind))(t)
		assert.EqualValues(t, messages, added)
	}
}

// TestCountOfActiveMQ: ActiveMQ Classic tells its counts by Jolokia.
func TestCountOfActiveMQ(t *testing.T) {
	t.Parallel()
	const messages = 5003
	a := alone(t, &activeMQ, shared.ActiveMQ)
	management := strings.Replace(a.ManagementURL(), "://", "://"+brokertest.User+":"+brokertest.Password+"@", 1)
	for protocol, url := range map[string]string{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()} {
		queue := protocol + "-queue"
		args := []string{protocol, "client", "--url", url, "--management-url", management, "--max-pending", "50"}
		r := run(t, limit, append(args, "--message-count", strconv.Itoa(messages), "queue://"+queue)...)
		require.Equal(t, statusOK, r.status)
		assert.Equal(t, equalCounts(messages), countLines(&r))
		q := musttest.Get(a.Queue(soon(t), queue))(t)
		assert.Equal(t, []int64{messages, messages, 0}, []int64{q.EnqueueCount, q.DequeueCount, q.QueueSize})
		r = run(t, limit, append(args, "--message-count", "1000", "--consumers", "2", "topic://"+protocol+"-topic")...)
		assert.Equal(t, equalCounts(1000)[:1], countLines(&r))
	}
	p := start(t, "stomp", "producer", "--url", a.STOMPURL(), "--management-url", management, "--rate", "500", "--message-count", "2500", "--max-pending", "100", "queue://THREE")
	eventually(t, "the load has begun", func() bool {
		q, err := a.Queue(soon(t), "THREE")
		return err == nil && q.EnqueueCount > 0
	})
	run(t, limit, "amqp", "producer", "--url", a.AMQPURL(), "--message-count", "3", "queue://THREE")
	r := p.wait(limit)
	assert.Equal(t, []string{"added 2503, sent 2500: DIFFERS by 3"}, countLines(&r))
	require.NotEmpty(t, depths(&r))
}

// TestCountByJolokia: STOMP to Artemis is counted by its Jolokia.
func TestCountByJolokia(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for _, url := range []string{a.ManagementURL(), strings.TrimSuffix(a.ManagementURL(), "/console/jolokia/")} {
		at := strings.Replace(url, "://", "://"+brokertest.User+":"+brokertest.Password+"@", 1)
		r := run(t, limit, "stomp", "client", "--url", a.STOMPURL(), "--management-url", at, "--message-count", "2003", "--max-pending", "50",
			"queue://"+newQueue(t, a))
		require.Equal(t, statusOK, r.status)
		assert.Equal(t, equalCounts(2003), countLines(&r))
		r = run(t, limit, "stomp", "client", "--url", a.STOMPURL(), "--management-url", at, "--message-count", "2003", "--max-pending", "50",
			"topic://"+unique(t, "topic"))
		assert.Equal(t, equalCounts(2003)[:1], countLines(&r))
		assert.NotContains(t, r.stdout+r.stderr+r.json, brokertest.Password)
	}
}

// TestCountOfRabbitMQ: RabbitMQ tells its counts by its management plugin, some seconds later.
func TestCountOfRabbitMQ(t *testing.T) {
	t.Parallel()
	const messages = 5003
	b := alone(t, &rabbitMQ, shared.RabbitMQ)
	t.Run("runs", func(t *testing.T) {
		for protocol, url := range map[string]string{"amqp": b.AMQPURL(), "stomp": b.STOMPURL()} {
			t.Run(protocol, func(t *testing.T) {
				t.Parallel()
				args := []string{
					protocol, "client", "--url", url, "--user", brokertest.User, "--password", brokertest.Password, "--management-url", b.ManagementURL(),
					"--max-pending", "50", "--message-count", strconv.Itoa(messages), "queue://" + protocol,
				}
				// The second run must not count the messages of the first. On a machine that stalls the plugin lags for longer
				// than perfmq waits: then other runs show it.
				for equal, tries := 0, 1; equal < 2; tries++ {
					r := run(t, limit, args...)
					require.Equal(t, statusOK, r.status)
					if slices.Equal(equalCounts(messages), countLines(&r)) {
						equal++
						continue
					}
					equal = 0
					require.Less(t, tries, 8, "%s", countLines(&r))
				}
			})
		}
	})
	at := strings.Replace(b.ManagementURL(), "://", "://"+brokertest.User+":wrong-secret@", 1)
	r := run(t, limit, "stomp", "client", "--url", b.STOMPURL(), "--user", brokertest.User, "--password", brokertest.Password, "--management-url", at,
		"--message-count", "10", "queue://wrong")
	require.Equal(t, statusOK, r.status, "a run that cannot count is a run")
	assert.Equal(t, []string{"ask the broker's management at " + b.ManagementURL() + `: the server answers "401 Unauthorized"`}, countLines(&r))
	require.NotContains(t, r.stdout+r.stderr+r.json, "wrong-secret")
	out := musttest.Get(b.Ctl(soon(t), "list_queues", "name", "messages"))(t)
	require.Contains(t, out, "stomp\t0\n")
}
