//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// fourGroups has queues of two brokers. One of the brokers is reached over two protocols. NAME is replaced.
const fourGroups = `
vars: {amqp: "", stomp: "", rocketmq: ""}
verify: true
brokers:
  in: {protocol: amqp, url: "${amqp}", site: artemis}
  out: {protocol: stomp, url: "${stomp}", site: artemis}
  other: {protocol: rocketmq, url: "${rocketmq}", site: rocketmq}
groups:
  senders: {role: producer, broker: in, destination: queue://NAME, producers: 3, max-pending: 50, persistent: true}
  readers: {role: consumer, broker: out, destination: queue://NAME, consumers: 2}
  rocket-senders: {role: producer, broker: other, destination: queue://NAME, producers: 2, max-pending: 20, send-timeout: 1m}
  rocket-readers: {role: consumer, broker: other, destination: queue://NAME, consumers: 2}
steps:
  - name: fill
    groups: {senders: {message-count: 1501}, rocket-senders: {message-count: 703}}
  - name: all
    duration: 3s
    groups: {senders: {rate: 301}, readers: , rocket-senders: {rate: 97}, rocket-readers: }
  - name: one-side
    groups: {senders: {message-count: 211}, rocket-senders: {message-count: 89}, rocket-readers: }
  - name: drain
    groups: [readers, rocket-readers]
    until: drained
  - name: end
    groups: {senders: {message-count: 55}, readers: , rocket-senders: {message-count: 44}, rocket-readers: }
thresholds: [failed == 0, lost == 0, duplicated == 0, damaged == 0]
`

// testFourGroups: the totals of a run over three protocols and two brokers equal the counts of the brokers.
func testFourGroups(t *testing.T, b *brokertest.RocketMQ) {
	t.Helper()
	a := shared.Artemis(t)
	name := strings.NewReplacer(".", "-", "/", "-").Replace(newQueue(t, a))
	require.NoError(t, a.CreateQueue(soon(t), name, name, "ANYCAST"))
	got := runScenario(t, "--set", "amqp="+a.AMQPURL(), "--set", "stomp="+a.STOMPURL(), "--set", "rocketmq="+b.URL(),
		scenarioFile(t, strings.ReplaceAll(fourGroups, "NAME", name)))
	sums := byWorkers(got)
	q := settled(t, a, name)
	paced := sentBy(t, got, "all") // on a busy machine less than 3 s of its rates
	require.LessOrEqual(t, paced["senders"], uint64(3*301))
	require.LessOrEqual(t, paced["rocket-senders"], uint64(3*97))
	require.EqualValues(t, 1501+paced["senders"]+211+55, q.MessagesAdded)
	require.EqualValues(t, q.MessagesAdded, sums["senders"].completed)
	require.EqualValues(t, q.MessagesAcked, sums["readers"].received)
	require.Equal(t, q.MessagesAdded, q.MessagesAcked)
	stored := musttest.Get(b.TopicMessages(soon(t), name))(t)
	require.EqualValues(t, 703+paced["rocket-senders"]+89+44, stored)
	require.EqualValues(t, stored, sums["rocket-senders"].completed)
	require.EqualValues(t, stored, sums["rocket-readers"].received)
	consumed(t, b, name, sums["rocket-readers"].received)
	require.EqualValues(t, q.MessagesAdded+stored, got.Verification.Total.Once)
	require.Len(t, got.Verification.Subscriptions, 2)
}

// sentBy returns the messages sent by each group of a step.
func sentBy(t *testing.T, r *runresult.Result, step string) map[string]uint64 {
	t.Helper()
	sent := map[string]uint64{}
	for i := range r.Steps {
		for k := range r.Steps[i].Groups {
			g := &r.Steps[i].Groups[k]
			if r.Steps[i].Name == step && g.Counts.Producers != nil {
				sent[g.Name] = g.Counts.Producers.Sent
			}
		}
	}
	require.NotEmpty(t, sent)
	return sent
}

// awayForAStep has a durable subscription. Its group is away while messages are sent. NAME is replaced.
const awayForAStep = `
verify: true
broker: BROKER
groups:
  senders: {role: producer, destination: topic://NAME, producers: 2, max-pending: 20, persistent: true}
  away: {role: consumer, destination: topic://NAME, durable: true, clientID: NAME, keep-subscription: true}
steps:
  - {name: together, groups: {senders: {message-count: 301}, away: }, until: drained}
  - {name: without, groups: {senders: {message-count: 457}}}
  - {name: back, groups: [away], until: drained}
thresholds: [failed == 0, lost == 0, duplicated == 0]
`

// testAway: on its return, a durable group receives exactly the messages sent in its absence.
func testAway(t *testing.T, broker, topic string) *runresult.Result {
	t.Helper()
	got := runScenario(t, scenarioFile(t, strings.NewReplacer("NAME", topic, "BROKER", broker).Replace(awayForAStep)))
	received := map[string]uint64{}
	for i := range got.Steps {
		if c := got.Steps[i].Counts.Consumers; c != nil {
			received[got.Steps[i].Name] = c.Received
		}
	}
	require.EqualValues(t, map[string]uint64{"together": 301, "without": 0, "back": 457}, received)
	require.EqualValues(t, 301+457, got.Verification.Total.Once)
	return got
}

// scenarioFile writes a scenario.
func scenarioFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// byWorkers adds up the workers of a result by the names of their groups.
func byWorkers(r *runresult.Result) map[string]totals {
	sums := map[string]totals{}
	for i := range r.Workers {
		w := &r.Workers[i]
		group := w.Name[:strings.LastIndexByte(w.Name, '-')]
		sum := sums[group]
		sum.add(&w.Counts)
		sums[group] = sum
	}
	return sums
}

// TestScenarioDocument: each example of docs/scenarios.md is a scenario without mistakes.
func TestScenarioDocument(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile("../../docs/scenarios.md"))(t)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.Greater(t, len(examples), 6)
	for i, example := range examples {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("example-%d.yaml", i+1))
		require.NoError(t, os.WriteFile(file, example[1], 0o600))
		r := run(t, limit, "run", "--dry-run", file)
		require.Equal(t, statusOK, r.status, "%s%s", example[1], r.stderr)
	}
}
