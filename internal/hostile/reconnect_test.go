//go:build unix

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/pkg/result"
)

// reconnecting is a load with --reconnect and --verify on the embedded broker, through a proxy that delays bytes and
// ends connections, or also changes bytes. Seed and number of the case determine its actions.
type reconnecting struct {
	protocol   string
	seed, load uint64
	changes    bool // of bytes, both ways
}

const (
	reconnectMessages = 4000
	reconnectRate     = 2000
	// reconnectLimit is the time limit of a load: much longer than its schedule, its reconnects and its drain.
	reconnectLimit = 8 * patience
)

// TestReconnects: over any number of broken connections, each message has one end and one place, and the broker agrees.
func TestReconnects(t *testing.T) {
	t.Parallel()
	binary := program.get(t)
	seed := *sessionSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // not secret
	}
	for _, protocol := range []string{broker.AMQP, broker.STOMP, broker.RocketMQ} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			outages, doubtful, n := 0, uint64(0), uint64(0)
			defer func() {
				t.Logf("seed %d: %d loads, %d outages, %d messages in doubt", seed, n, outages, doubtful)
			}()
			for ; n < 2 || outages == 0 && n < 20 || time.Since(began) < *sessionTime; n++ {
				s := &reconnecting{protocol: protocol, seed: seed, load: n, changes: n%2 == 1}
				r := s.run(t, binary)
				if r != nil && !s.changes {
					outages += len(r.Outages)
					doubtful += r.Total.Producers.Unconfirmed
				}
			}
			require.Positive(t, outages)
		})
	}
}

// run carries the load out and checks what perfmq reports. It returns nil if no load came about.
func (s *reconnecting) run(t *testing.T, binary string) *result.Result {
	b, err := broker.Start(broker.Config{
		Listen: map[string]string{s.protocol: "127.0.0.1:0"}, MaxMessage: 1 << 20,
		Limits: store.Config{Limit: 100_000, LimitBytes: 128 << 20},
	})
	require.NoError(t, err)
	defer b.Close()
	stop := make(chan struct{})
	proxy := musttest.Get(tcpproxy.New(tcpproxy.Config{Target: b.Addr(s.protocol), Stream: s.mutants(stop)}))(t)
	defer proxy.Close()
	defer close(stop)

	dir := filepath.Join(t.TempDir(), "result")
	var output bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), reconnectLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, s.arguments(proxy.Addr(), dir)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	text := output.String()
	require.NoError(t, ctx.Err(), "it hangs: %v\n%s", err, text)
	require.True(t, cmd.ProcessState.Exited(), "%s", text)
	require.NotContains(t, text, "goroutine ")
	r, err := result.Read(dir)
	if err != nil { // it could not begin: only a load that is under way connects again
		require.NotZero(t, cmd.ProcessState.ExitCode())
		require.Contains(t, text, "error: ")
		return nil
	}
	s.check(t, r, text)
	if !s.changes {
		require.Zero(t, cmd.ProcessState.ExitCode(), "%s", text)
		s.compare(t, r, b, text)
	}
	return r
}

// arguments returns the command line of a load that notices silent connections.
func (s *reconnecting) arguments(addr, dir string) []string {
	args := []string{
		s.protocol, "client", "queue://q", "--rate", strconv.Itoa(reconnectRate),
		"--message-count", strconv.Itoa(reconnectMessages), "--message-size", "200", "--producers", "2", "--consumers", "2",
		"--max-pending", "50", "--reconnect", "--verify", "--silent", "--connect-timeout", "2s",
		"--result", dir, "--url", s.protocol + "://" + addr,
	}
	if s.changes { // what the broker did not understand does not come, and has no answer
		args = append(args, "--drain-timeout", "1s", "--send-timeout", "2s")
	} else { // each message has an answer, or its connection ends; on a busy machine either may take seconds
		args = append(args, "--drain-timeout", "20s", "--send-timeout", "1m")
	}
	// The workers of an unchanged load must not lose a connection at its very end because the machine is busy.
	heartBeat, idle := "heart-beat=2s", "idle-timeout=4s"
	if s.changes {
		heartBeat, idle = "heart-beat=500ms", "idle-timeout=1s"
	}
	switch s.protocol {
	case broker.STOMP:
		return append(args, "-o", heartBeat)
	case broker.RocketMQ:
		return append(args, "-o", "broker-address="+addr)
	default:
		return append(args, "-o", idle)
	}
}

// mutants is the proxy's stream. Frozen connections are left out: a consumer of RocketMQ cannot tell one from an empty
// queue for half a minute. Connections that begin after the load are only slow, so that all can be received.
func (s *reconnecting) mutants(stop <-chan struct{}) tcpproxy.Stream {
	began := time.Now()
	return func(number int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		kinds := kindsOf(s.changes, true, false)
		if time.Since(began) < reconnectMessages*time.Second/reconnectRate {
			kinds = append(kinds, truncate, reset)
		}
		m := mutator{
			//nolint:gosec // repeatable, not secret
			rng:  rand.New(rand.NewPCG(s.seed^s.load<<32, uint64(number)<<1|uint64(d))),
			mean: 30_000, kinds: kinds, stop: stop,
		}
		m.pass(to, from)
	}
}

// check checks that the result adds up.
func (s *reconnecting) check(t *testing.T, r *result.Result, text string) {
	require.NotNil(t, r.Total.Producers, "%s", text)
	require.NotNil(t, r.Verification, "%s", text)
	p, v := r.Total.Producers, &r.Verification.Total
	text = fmt.Sprintf("left behind: %q\n%s", r.Outcome.LeftBehind, text)
	require.Equal(t, p.Sent, p.Completed+p.Unconfirmed+p.Rejected+p.Released+p.Modified+p.Failed, "%s", text)
	require.Equal(t, v.Expected, p.Completed, "%s", text)
	require.Equal(t, p.Unconfirmed, v.UnconfirmedArrived+v.UnconfirmedMissing, "%s", text)
	require.Equal(t, v.Received+v.Lost+v.Left, v.Expected+v.UnconfirmedArrived+v.RefusedArrived, "%s", text)
	var classified uint64
	for _, classes := range p.Failures {
		for class, n := range classes {
			require.NotEmpty(t, class, "%s", text)
			classified += n
		}
	}
	require.Equal(t, p.Sent-p.Completed, classified, "%s", text)
	for i := range r.Outages {
		require.NotEmpty(t, r.Outages[i].Class, "%s", text)
	}
}

// compare compares the result with the broker's counts.
func (s *reconnecting) compare(t *testing.T, r *result.Result, b *broker.Broker, text string) {
	var taken uint64
	for _, d := range b.Stats().Destinations {
		taken += d.Sent
	}
	p, v := r.Total.Producers, &r.Verification.Total
	about := fmt.Sprintf("the broker took %d\n%s", taken, text)
	require.EqualValues(t, reconnectMessages, p.Sent, about)
	require.Equal(t, taken, p.Completed+v.UnconfirmedArrived, about)
	require.Equal(t, taken, v.Received, about)
	require.Zero(t, v.Lost+v.Left+v.Damaged+v.Foreign, about)
	require.Equal(t, v.Duplicates, v.AfterOutage, about)
}
