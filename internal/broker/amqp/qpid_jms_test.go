//go:build unix

package amqp_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/brokertest"
)

// jms runs testdata/QpidClient.java with these scenarios, NAME:NUMBERS, and returns what each counted.
func (r *rig) jms(t *testing.T, query string, scenarios ...string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*timeout) // a compiler and a Java process on a busy machine
	defer cancel()
	args := append([]string{"amqp://" + r.addr + query}, scenarios...)
	cmd, err := brokertest.ArtemisJava(ctx, t.TempDir(), filepath.Join("testdata", "QpidClient.java"), args...)
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\nthe broker's counts: %+v", out, r.store.Stats())
	require.Eventually(t, r.idle, timeout, time.Millisecond, "its connections have ended")
	said := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[name] = counts
	}
	return said
}

// TestQpidJMSApplication has Qpid JMS do what JMS applications do, and compares its counts with those of the broker.
func TestQpidJMSApplication(t *testing.T) {
	const n, k, rolledBackEvery = 1000, 30, 4
	var committed, back int // as QpidClient.java deals them out
	for i := 0; i < n; i += k {
		if size := min(k, n-i); (i/k+1)%rolledBackEvery == 0 {
			back += size
		} else {
			committed += size
		}
	}
	again := 0
	for i := 0; i < committed; i += k {
		if (i/k+1)%rolledBackEvery == 0 {
			again += min(k, committed-i)
		}
	}
	const size = 5 << 20
	r := start(t, store.Config{}, amqp.Options{})
	said := r.jms(t, "?jms.prefetchPolicy.all=100",
		fmt.Sprintf("send:%d,%d,%d", n, k, rolledBackEvery), fmt.Sprintf("receive:%d,%d,%d", committed, k, rolledBackEvery),
		"unfinished:20", "recover:50,20", "durable:25", "selector:90,5", "ttl:10,300", "priority:5", "browse", "reply:40",
		fmt.Sprintf("large:3,%d", size))
	for _, c := range []struct {
		name, said string
		address    store.Address
		want       store.QueueCounts // without what the client's prefetching decides
	}{
		{"send", fmt.Sprintf("committed=%d back=%d", committed, back), queue("tx"), store.QueueCounts{Stored: uint64(committed), Settled: uint64(committed)}},
		{
			"receive", fmt.Sprintf("committed=%d back=%d redelivered=%d disorder=0 wrong=0 more=false", committed, again, again), queue("tx"),
			store.QueueCounts{Stored: uint64(committed), Settled: uint64(committed)},
		},
		{"unfinished", "received=20", queue("unfinished"), store.QueueCounts{Stored: 20, Depth: 20}},
		{"recover", "acknowledged=20 again=30 same=true more=false", queue("recover"), store.QueueCounts{Stored: 50, Settled: 50}},
		{"durable", "received=25 more=false", topic("durable"), store.QueueCounts{}},
		{"selector", "matching=5 wrong=0 rest=85", queue("selector"), store.QueueCounts{Stored: 90, Settled: 90}},
		{"ttl", "long=10 short=0 unmarked=0", queue("ttl"), store.QueueCounts{Stored: 20, Settled: 10, Expired: 10}},
		{"priority", "received=50 disorder=0", queue("priority"), store.QueueCounts{Stored: 50, Settled: 50}},
		{"browse", "said=queues_cannot_be_browsed_[condition_=_amqp:not-implemented] received=1", queue("browse"), store.QueueCounts{Stored: 1, Settled: 1}},
		{"reply", "right=40", queue("questions"), store.QueueCounts{Stored: 40, Settled: 40}},
		{"large", "right=3", queue("large"), store.QueueCounts{Stored: 3, Settled: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.said, said[c.name])
			d := r.store.Find(c.address)
			require.NotNil(t, d)
			got := d.Stats()
			t.Logf("%+v", got)
			if c.address.Kind == store.KindTopic {
				assert.Empty(t, got.Queues, "the subscription is gone")
				assert.EqualValues(t, 50, got.Sent)
				return
			}
			require.Len(t, got.Queues, 1)
			q := got.Queues[0]
			assert.Equal(t, c.want, store.QueueCounts{Stored: q.Stored, Settled: q.Settled, Depth: q.Depth, Expired: q.Expired, Rejected: q.Rejected})
			assert.Zero(t, q.Consumers)
			assert.Equal(t, q.Stored, got.Sent)
			assert.Equal(t, q.Delivered, q.Settled+q.Returned, "each delivery was settled or given back")
		})
	}
	assert.GreaterOrEqual(t, r.store.Queue("tx").Stats().Redelivered, uint64(again))
	for _, d := range r.store.Stats() {
		assert.NotContains(t, d.Address, "temporary", "deleted by the client")
	}
}
