//go:build unix

package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/result"
)

// mortalVariable tells a process that executes the test binary to be a broker: "PROTOCOL ADDRESS".
const mortalVariable = "PERFMQ_HOSTILE_BROKER"

// leastRestarts is how many restarts TestRestarts makes at least.
const leastRestarts = 6

// serveBroker is the process of a broker that ends with its stdin, and then prints its counts.
func serveBroker(protocol, address string) error {
	b, err := broker.Start(broker.Config{
		Listen: map[string]string{protocol: address}, MaxMessage: 1 << 20,
		Limits: store.Config{Limit: 100_000, LimitBytes: 128 << 20},
	})
	if err != nil {
		return err
	}
	fmt.Println(b.Addr(protocol))
	_, _ = io.Copy(io.Discard, os.Stdin) // an end is an end
	b.Close()
	n := b.Stats()
	if n.RocketMQ != nil { // a log keeps messages that were delivered, and only clients know which were settled
		n.Total.Stored, n.Total.Delivered = n.Total.Sent, n.RocketMQ.Delivered
		n.Total.Depth, n.Total.Returned = int64(n.Total.Sent), n.Total.Sent //nolint:gosec // small
	}
	return json.NewEncoder(os.Stdout).Encode(n.Total)
}

// mortal is a broker in a process of its own.
type mortal struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	addr   string
}

func startMortal(t *testing.T, protocol, address string) *mortal {
	t.Helper()
	m := &mortal{cmd: exec.CommandContext(t.Context(), os.Args[0])} //nolint:gosec // ourselves
	m.cmd.Env = append(os.Environ(), mortalVariable+"="+protocol+" "+address)
	m.cmd.Stderr = os.Stderr
	var err error
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := m.cmd.StdoutPipe()
	require.NoError(t, err)
	m.stdout = bufio.NewReader(out)
	require.NoError(t, m.cmd.Start())
	line, err := m.stdout.ReadString('\n')
	require.NoError(t, err, "the broker did not start")
	m.addr = strings.TrimSpace(line)
	return m
}

// end ends the broker while it works, and returns its counts.
func (m *mortal) end(t *testing.T) (n store.Totals) {
	t.Helper()
	require.NoError(t, m.stdin.Close())
	require.NoError(t, json.NewDecoder(m.stdout).Decode(&n))
	require.NoError(t, m.cmd.Wait())
	return n
}

// TestRestarts: a load outlives a broker that is restarted again and again. The messages that a broker still has when it
// ends are gone: perfmq says so of as many as the brokers say. Nothing is left of the connections that were lost.
func TestRestarts(t *testing.T) {
	t.Parallel()
	binary := program.get(t)
	for _, protocol := range []string{broker.AMQP, broker.STOMP, broker.RocketMQ} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			restarts(t, binary, protocol)
		})
	}
}

func restarts(t *testing.T, binary, protocol string) {
	b := startMortal(t, protocol, freeAddress(t))
	dir, metrics := filepath.Join(t.TempDir(), "result"), freeAddress(t)
	args := []string{
		protocol, "client", "queue://q", "--rate", "1000", "--message-size", "200", "--producers", "2", "--consumers", "2",
		"--max-pending", "50", "--reconnect", "--verify", "--silent", "--send-timeout", "5s", "--drain-timeout", "3s",
		"--metrics", metrics, "--result", dir, "--url", protocol + "://" + b.addr,
	}
	if protocol == broker.RocketMQ {
		args = append(args, "-o", "broker-address="+b.addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *sessionTime+10*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	var sum store.Totals
	add := func(n store.Totals) {
		sum.Stored += n.Stored
		sum.Settled += n.Settled
		sum.Delivered += n.Delivered
		sum.Returned += n.Returned
		sum.Depth += n.Depth
	}
	var first, last usage
	began, n := time.Now(), 0
	for ; n < leastRestarts || time.Since(began) < *sessionTime; n++ {
		last = awaitLoad(t, ended, metrics, n, last.received)
		if n == 1 { // all that connecting again needs is there
			first = last
		}
		add(b.end(t))
		<-time.After(time.Duration(rand.Int64N(int64(200 * time.Millisecond)))) //nolint:gosec // the outage is noticed, or is not
		b = startMortal(t, protocol, b.addr)
	}
	last = awaitLoad(t, ended, metrics, n, last.received)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	<-ended
	text := output.String()
	require.NoError(t, ctx.Err(), "it hangs\n%s", text)
	add(b.end(t))

	r, err := result.Read(dir)
	require.NoError(t, err, "%s", text)
	(&reconnecting{}).check(t, r, text)
	p, v := r.Total.Producers, &r.Verification.Total
	about := fmt.Sprintf("%d restarts, the brokers counted %+v; at first %+v, at last %+v\n%s", n, sum, first, last, text)
	require.GreaterOrEqual(t, sum.Stored, p.Completed+v.UnconfirmedArrived, about)
	require.LessOrEqual(t, sum.Stored, p.Completed+p.Unconfirmed, about)
	require.Equal(t, r.Total.Consumers.Received, v.Received+v.Duplicates, about)
	require.GreaterOrEqual(t, r.Total.Consumers.Received, sum.Settled, about)
	require.LessOrEqual(t, r.Total.Consumers.Received, sum.Delivered, about)
	died := uint64(sum.Depth) //nolint:gosec // a sum of depths
	require.LessOrEqual(t, v.Lost, died, about)
	require.GreaterOrEqual(t, v.Lost+v.UnconfirmedMissing+sum.Returned, died, "only messages that had been delivered may have arrived\n%s", about)
	require.Zero(t, v.Left+v.Damaged+v.Foreign, about)
	require.Equal(t, v.Duplicates, v.AfterOutage, about)
	require.LessOrEqual(t, last.goroutines, first.goroutines+5, about)
	require.LessOrEqual(t, last.files, first.files+5, about)
	t.Logf("%d restarts: %d sent, %d in doubt, %d lost with their broker; goroutines %d and %d, files %d and %d, memory %d and %d KiB",
		n, p.Sent, p.Unconfirmed, v.Lost, first.goroutines, last.goroutines, first.files, last.files, first.memory>>10, last.memory>>10)
}

// usage is what a load has received, and what its process has.
type usage struct {
	received          float64
	goroutines, files int
	memory            int
}

// workersOfLoad is how many workers connect again after each restart.
const workersOfLoad = 4

// awaitLoad waits until all workers are back after n restarts and have received more, and returns what the process has
// then. It fails when the load has ended.
func awaitLoad(t *testing.T, ended <-chan error, metrics string, n int, received float64) usage {
	t.Helper()
	text := ""
	for deadline := time.Now().Add(10 * patience); time.Now().Before(deadline); {
		select {
		case err := <-ended:
			t.Fatalf("the load ended after %d restarts: %v\n%s", n, err, text)
		case <-time.After(50 * time.Millisecond):
		}
		text = page(t, "http://"+metrics+"/metrics")
		u := usage{
			received: valueOf(text, "perfmq_messages_received_total"), goroutines: int(valueOf(text, "go_goroutines")),
			files: int(valueOf(text, "process_open_fds")), memory: int(valueOf(text, "process_resident_memory_bytes")),
		}
		if valueOf(text, "perfmq_reconnects_total") >= float64(workersOfLoad*n) && u.received > received {
			return u
		}
	}
	t.Fatalf("%d restarts, %.0f received, and not all workers are back\n%s", n, received, text)
	return usage{}
}

// page returns the text at a URL, or why there is none.
func page(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// valueOf returns the sum of a metric's series.
func valueOf(text, name string) (sum float64) {
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		sum += v
	}
	return sum
}

// freeAddress returns an address on loopback that nobody has. Its port is below those that most systems give to
// connections. On Linux a socket stays bound to it: nobody gets the port while a broker is away but who listens on this
// very one with SO_REUSEADDR, as Go does.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		port := 10_000 + rand.IntN(10_000) //nolint:gosec // any
		syscall.ForkLock.RLock()
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		require.NoError(t, err)
		syscall.CloseOnExec(fd)
		syscall.ForkLock.RUnlock()
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		if err == nil && runtime.GOOS == "linux" {
			require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
			t.Cleanup(func() { require.NoError(t, syscall.Close(fd)) })
		} else {
			require.NoError(t, syscall.Close(fd))
		}
		if err == nil {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}
