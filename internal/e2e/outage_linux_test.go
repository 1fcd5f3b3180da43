package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// TestLengthOfOutages: an outage is reported as long as the way to the broker was cut, over each protocol and client.
// perfmq may notice it later, and connect later, only by the time in which the machine gave a thread no processor.
func TestLengthOfOutages(t *testing.T) {
	t.Parallel()
	const (
		probing = 600 * time.Millisecond // from one probe to the next, and the opening of a connection
		at      = 100 * time.Millisecond // to notice the end of a connection
	)
	for _, tt := range []struct {
		protocol, client string
		cut              time.Duration
	}{
		{broker.AMQP, "native", 2 * time.Second},
		{broker.AMQP, "library", time.Second / 2},
		{broker.STOMP, "native", time.Second / 2},
		{broker.STOMP, "library", time.Second / 2},
		{broker.RocketMQ, "native", 2 * time.Second},
	} {
		t.Run(tt.protocol+" "+tt.client, func(t *testing.T) {
			t.Parallel()
			b, err := broker.Start(broker.Config{
				Listen: map[string]string{tt.protocol: "127.0.0.1:0"}, MaxMessage: 1 << 20,
				Limits: store.Config{Limit: 100_000, LimitBytes: 128 << 20},
			})
			require.NoError(t, err)
			defer b.Close()
			proxy := musttest.Get(tcpproxy.New(tcpproxy.Config{Target: b.Addr(tt.protocol)}))(t)
			defer proxy.Close()
			args := []string{
				tt.protocol, "client", "--url", tt.protocol + "://" + proxy.Addr(), "--client", tt.client, "--reconnect", "--producers", "2",
				"--consumers", "2", "--rate", "200", "--max-pending", "20", "--message-count", "1000", "--drain-timeout", "1m", "queue://TEST",
			}
			if tt.protocol == broker.RocketMQ {
				args = append(args, "-o", "broker-address="+proxy.Addr())
			}
			p := start(t, args...)
			disturbed := p.disturbed()
			p.printed("--- warmup false")
			var moments [4]time.Time // around the cut and the restoring
			moments[0] = time.Now()
			proxy.Cut()
			moments[1] = time.Now()
			<-time.After(tt.cut)
			moments[2] = time.Now()
			require.NoError(t, proxy.Restore())
			moments[3] = time.Now()
			r := p.wait(limit)
			require.Equal(t, statusOK, r.status, r.stderr)
			require.Len(t, r.summary.Details.Outages, 1)
			o := r.summary.Details.Outages[0]
			by := disturbed()
			after := func(us int64, m time.Time) time.Duration { return time.UnixMicro(us).Sub(m) }
			require.GreaterOrEqual(t, after(o.Time+1, moments[0]), time.Duration(0), "it begins with the cut")
			require.Less(t, after(o.Time, moments[1]), at+by, "it begins with the cut")
			for _, us := range []int64{o.Back, o.Length, o.Reconnected} {
				require.GreaterOrEqual(t, after(o.Time+us+1, moments[2]), time.Duration(0), "nothing comes through before")
				require.Less(t, after(o.Time+us, moments[3]), probing+by, "disturbed by %v", by)
			}
			require.LessOrEqual(t, after(o.Time+o.Tried-1, moments[3]), time.Duration(0), "no attempt fails later")
		})
	}
}

// disturbed measures the time in which threads of the run and of this process were ready and had no processor. The
// function that it returns gives the time when the run has ended.
func (p *process) disturbed() func() time.Duration {
	files := []string{fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid), "/proc/self/task/*/schedstat"}
	waited := func() (sum time.Duration) {
		for _, pattern := range files {
			list, _ := filepath.Glob(pattern) // the pattern is valid
			for _, file := range list {
				var run, ready time.Duration
				if text, err := os.ReadFile(file); err == nil { //nolint:gosec // of the system
					_, _ = fmt.Sscan(string(text), &run, &ready)
				}
				sum += ready
			}
		}
		return sum
	}
	before, last, done := waited(), time.Duration(0), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
				last = max(last, waited()-before)
			}
		}
	}()
	return func() time.Duration { <-done; return last }
}
