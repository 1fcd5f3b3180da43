//go:build unix

package e2e

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	runresult "github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// readResult reads a result that need not be a success.
func readResult(t *testing.T, dir string) *runresult.Result {
	t.Helper()
	resulttest.Compile(t, runresult.Schema(), runresult.SchemaID).Validate(t, dir)
	got := musttest.Get(runresult.Read(dir))(t)
	return got
}

// TestStallOfOneBroker: one of two brokers stalls, and the result, the summary and the page name it.
func TestStallOfOneBroker(t *testing.T) {
	t.Parallel()
	second := serve(t)
	dir := filepath.Join(t.TempDir(), "result")
	p := start(t, "run", "--result", dir, "--set", "first="+serve(t).at("amqp"), "--set", "second="+second.at("amqp"), scenarioFile(t, `
vars: {first: "", second: ""}
drain-timeout: 60s
stall-threshold: 2s
brokers:
  first: {protocol: amqp, url: "${first}"}
  second: {protocol: amqp, url: "${second}"}
groups:
  left: {role: producer, broker: first, destination: queue://Q, rate: 200, max-pending: 5000}
  left-readers: {role: consumer, broker: first, destination: queue://Q}
  right: {role: producer, broker: second, destination: queue://Q, rate: 200, max-pending: 5000}
  right-readers: {role: consumer, broker: second, destination: queue://Q}
steps: [{name: only, duration: 15s, groups: [left, left-readers, right, right-readers]}]
thresholds: [stall.count == 0, group.right.stall.max < 3s]
`))
	p.printed("--- ")
	second.control(http.MethodPost, "/stall?for=5s", "")
	r := p.wait(4 * limit)
	require.Contains(t, r.stdout, "broker second")
	m := readResult(t, dir)
	named := false
	for _, s := range m.Stalls {
		named = named || s.Broker == "second" && s.Length > 3*time.Second.Microseconds()
		require.False(t, s.Broker == "" && s.Group == "" && s.Length > 3*time.Second.Microseconds(), "%+v", s)
	}
	require.True(t, named, "%+v", m.Stalls)
	for _, threshold := range m.Thresholds {
		require.False(t, threshold.Kept, threshold.Threshold)
	}
	page := run(t, limit, "report", "--format", "markdown", dir)
	require.Contains(t, page.stdout, "second")
}

// TestMemoryAlarm: RabbitMQ blocks STOMP producers while a memory alarm is on, and AMQP ones continue. A threshold on their
// group ends the run.
func TestMemoryAlarm(t *testing.T) {
	t.Parallel()
	b := alone(t, &rabbitMQ, shared.RabbitMQ)
	p := start(t, "run", "--user", brokertest.User, "--password", brokertest.Password, "--set", "amqp="+b.AMQPURL(),
		"--set", "stomp="+b.STOMPURL(), scenarioFile(t, `
vars: {amqp: "", stomp: ""}
drain-timeout: 1s
brokers:
  amqp: {protocol: amqp, url: "${amqp}", site: rabbit}
  stomp: {protocol: stomp, url: "${stomp}", site: rabbit}
groups:
  amqp-senders: {role: producer, broker: amqp, destination: queue://A, rate: 100, max-pending: 5000}
  stomp-senders: {role: producer, broker: stomp, destination: queue://S, rate: 100, max-pending: 5000}
  amqp-readers: {role: consumer, broker: amqp, destination: queue://A}
  stomp-readers: {role: consumer, broker: stomp, destination: queue://S}
steps: [{name: only, duration: 1h, groups: [amqp-senders, stomp-senders, amqp-readers, stomp-readers]}]
thresholds: [{threshold: group.stomp-senders.stall.count == 0, abort: true}]
`))
	p.printed("--- ")
	_, err := b.Ctl(soon(t), "set_vm_memory_high_watermark", "0.000001")
	require.NoError(t, err)
	defer func() {
		_, err := b.Ctl(soon(t), "set_vm_memory_high_watermark", "0.4")
		require.NoError(t, err)
	}()
	r := p.wait(4 * limit)
	require.Contains(t, r.stdout, "threshold failed: group.stomp-senders.stall.count == 0")
	require.Regexp(t, "finding: broker stomp (stalled|did not answer)", r.stdout)
}
