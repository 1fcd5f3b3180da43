//go:build unix

package rocketmq_test

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// output is what a process has printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// benchmark runs a class of RocketMQ's Java benchmark until stop is called or the test ends.
func benchmark(t *testing.T, b *testBroker, class string, args ...string) (out *output, stop func()) {
	brokertest.Needs(t, "Java")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	cmd, err := brokertest.RocketMQCommand(ctx, t.TempDir(), b.addr, "org.apache.rocketmq.example.benchmark."+class,
		append([]string{"-n", b.addr}, args...)...)
	require.NoError(t, err)
	out = &output{}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s printed:\n%s", class, strings.Join(regexp.MustCompile(`(?m)^.*(?:Current Time|Complete|Exception).*$`).FindAllString(out.String(), -1), "\n"))
		}
	})
	return out, stop
}

// sum adds up a number that the lines of a benchmark have.
func sum(out *output, pattern string) (n int) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(out.String(), -1) {
		v, _ := strconv.Atoi(m[1])
		n += v
	}
	return n
}

func sent(b *testBroker, topic string) uint64 {
	if d := b.store.Find(driver.Destination{Kind: driver.Topic, Name: topic}); d != nil {
		return d.Stats().Sent
	}
	return 0
}

const soon = 3 * patience

// TestJavaProducerAndConsumer: what the Java Producer sends, sixteen at a time, the Java Consumer gets.
func TestJavaProducerAndConsumer(t *testing.T) {
	t.Parallel()
	const n = 1600
	b := start(t, store.Config{}, rocketmq.Options{Queues: 4})
	createTopic(t, b, "JAVA", 4)
	benchmark(t, b, "Consumer", "-t", "JAVA", "-g", "javagroup", "-p", "false", "-ri", "500")
	require.Eventually(t, func() bool { return b.Stats().HeldPulls >= 4 }, soon, 20*time.Millisecond, "the consumer is there")
	out, _ := benchmark(t, b, "Producer", "-t", "JAVA", "-w", "16", "-s", "1024", "-q", strconv.Itoa(n), "-ri", "500")
	// Java writes a line in pieces.
	require.Eventually(t, func() bool { return sum(out, `Send Total: (\d+) .*\n`) > 0 }, 2*soon, 20*time.Millisecond, "the producer says that it is done")
	total := sum(out, `Send Total: (\d+) `)                // less than n if a thread gave up
	failed := sum(out, `Send Total: .*Send Failed: (\d+)`) // on a busy machine: Java gives up its first requests
	require.GreaterOrEqual(t, int(sent(b, "JAVA")), total-failed)
	// Java sends a message again, twice at most, where an answer comes too late for it, and counts only the last failure.
	require.LessOrEqual(t, int(sent(b, "JAVA")), 3*n)
	require.Eventually(t, func() bool { return b.Stats().Delivered >= sent(b, "JAVA") }, soon, 20*time.Millisecond)
	require.Zero(t, b.Stats().BrokenFrames)
}
