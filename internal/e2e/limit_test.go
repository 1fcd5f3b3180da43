//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
	"github.com/perfmq/perfmq/internal/words"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

// allLimits is for an idle machine: `make limits`. Beside other tests, one load of each kind is enough, and lasts a second
// less if it needs the processors.
var allLimits = flag.Bool("limits.all", false, "each load over each protocol")

// processorSeconds is the length of such a load.
func processorSeconds() string {
	if *allLimits {
		return "4"
	}
	return "3"
}

// limitOf returns the limit of the rate, which JSON and console state alike.
func limitOf(t *testing.T, r *result) string {
	t.Helper()
	l := r.summary.Details.Limit
	require.NotEmpty(t, l.Kind, r.stdout)
	t.Logf("%s: %+v", r.args, l)
	require.Positive(t, l.Share)
	require.LessOrEqual(t, l.Share, 1.0)
	line := words.Limit(&runresult.Limit{Kind: l.Kind, Text: l.Text, Hint: l.Hint})
	require.Contains(t, r.stdout, "\n--- limit: "+line+"\n")
	return l.Kind
}

// TestLimits: a run reports the limit of its load by name. Loads that need the processors run one by one. On a machine
// that other programs keep busy the run rightly names the machine instead; the loads that need hardly any processor time
// seldom have that.
func TestLimits(t *testing.T) {
	tests := []struct {
		name string
		args string
		want string
		says string // part of the line
		busy string // if it needs the processors: the protocol over which it runs beside other tests
	}{
		{"rate reached", "client --rate 100 --max-pending 100", runresult.LimitNone, "the rate was reached", ""},
		{"max-pending", "client --rate 400000", runresult.LimitMaxPending, "producers waited for answers ", "amqp"},
		{"max-pending, at a broker that takes its time", "client --rate 50000 --embedded-faults work=50ms", runresult.LimitMaxPending, "producers waited for answers ", ""},
		// It works on all that it has read, 25 messages, and answers these together.
		// Beside other programs, "its answers took ... times the shortest" is as true.
		{"broker, answers in bursts", "producer --rate 60 --max-pending 25 --embedded-faults work=50ms", runresult.LimitBroker, "answer", ""},
		{"broker, backlog", "client --rate 400 --max-pending 100 --embedded-faults rate=200", runresult.LimitBroker, "while consumers waited", ""},
		{"broker, silent", "producer --max-pending 10 --embedded-faults withhold=1", runresult.LimitBroker, "it answered nothing", ""},
		{"consumers", "client --rate 400 --max-pending 100 --consumer-work 10ms", runresult.LimitConsumers, "their work took ", ""},
		{"consumers with a rate", "client --rate 400 --max-pending 100 --consumer-rate 100", runresult.LimitConsumers, "no more than their rate", ""},
		{"tester's processors", "client --max-pending 1000 --threads 1", runresult.LimitProcessors, "it used ", "stomp"},
	}
	for i, protocol := range []string{"amqp", "stomp"} {
		for k, tt := range tests {
			if !*allLimits && tt.busy != protocol && (tt.busy != "" || k%2 != i) {
				continue
			}
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				busy, seconds := tt.busy != "", "4"
				if !busy {
					t.Parallel()
				} else {
					seconds = processorSeconds()
				}
				args := append([]string{protocol}, strings.Fields(tt.args)...)
				args = append(args, "--embedded", "--duration", seconds, "--warmup", "1", "--drain-timeout", "1", "queue://TEST")
				r := run(t, limit, args...)
				kind := limitOf(t, &r)
				// What else runs on the machine may take a processor for a second of three, too little to be named itself.
				for again := 0; busy != (kind == runresult.LimitMachine) && kind != tt.want && again < 3; again++ {
					r = run(t, limit, args...)
					kind = limitOf(t, &r)
				}
				if kind == runresult.LimitMachine {
					require.Regexp(t, `others took \d+% of its processors`, r.summary.Details.Limit.Text)
					return
				}
				require.Equal(t, tt.want, kind, r.summary.Details.Limit)
				require.Contains(t, r.summary.Details.Limit.Text, tt.says)
			})
		}
	}
}

// TestLimitIsTheMachine: other programs use its processors.
func TestLimitIsTheMachine(t *testing.T) {
	hog(t)
	protocols := []string{"amqp"}
	if *allLimits {
		protocols = append(protocols, "stomp")
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := run(t, limit, protocol, "client", "--embedded", "--max-pending", "1000", "--duration", processorSeconds(), "--warmup", "1", "queue://TEST")
			require.Equal(t, runresult.LimitMachine, limitOf(t, &r), r.summary.Details.Limit)
			require.Regexp(t, `^others took \d+% of its processors`, r.summary.Details.Limit.Text)
		})
	}
}

// TestLimitIsTheNetwork: between the producer and its broker there is a narrow place.
func TestLimitIsTheNetwork(t *testing.T) {
	t.Parallel()
	b := serve(t)
	for _, protocol := range []string{"amqp", "stomp"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			url := protocol + "://" + narrow(t, strings.TrimPrefix(b.at(protocol), protocol+"://"), 2<<20)
			var r result
			kind := runresult.LimitMachine
			for tries := 0; kind == runresult.LimitMachine; tries++ { // other programs had the processors for most of the seconds
				if tries == 5 {
					return
				}
				r = run(t, limit, protocol, "producer", "--url", url, "--message-size", "64KiB", "--max-pending", "1000", "--duration", "5",
					"--warmup", "1", "--drain-timeout", "60", "queue://"+protocol)
				kind = limitOf(t, &r)
			}
			require.Equal(t, runresult.LimitSocket, kind, r.summary.Details.Limit)
			require.Contains(t, r.stdout, "--- socket waits: ")
		})
	}
}

// narrow returns the address of a proxy that passes no more than that many bytes per second on to a broker.
func narrow(t *testing.T, to string, perSecond int) string {
	t.Helper()
	proxy, err := tcpproxy.New(tcpproxy.Config{Target: to, Stream: func(_ int, d tcpproxy.Direction, to io.Writer, from io.Reader) {
		const piece = 32 << 10
		for tick := time.Tick(time.Second * piece / time.Duration(perSecond)); d == tcpproxy.Up; <-tick {
			if _, err := io.CopyN(to, from, piece); err != nil {
				return
			}
		}
		_, _ = io.Copy(to, from)
	}})
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	return proxy.Addr()
}

var quietRuns = flag.Int("quiet.runs", 1, "runs of each load in TestQuietRuns; with more than one, over each protocol, and on Artemis, too")

// TestQuietRuns: loads far below the capacity of broker and perfmq have no limit but their rate, consumers alone none
// but their producers, and no findings, however often they run. A run on a machine that other programs keep busy is not
// judged. `make limits` makes 20 runs of each, for docs/lab/benchmarks.md.
func TestQuietRuns(t *testing.T) {
	t.Parallel()
	b := serve(t)
	targets := [][2]string{{"amqp", b.at("amqp")}}
	if *quietRuns > 1 {
		a := shared.Artemis(t)
		targets = append(targets, [2]string{"stomp", b.at("stomp")}, [2]string{"amqp", a.AMQPURL()}, [2]string{"stomp", a.STOMPURL()})
	}
	for _, target := range targets {
		run(t, limit, target[0], "client", "--url", target[1], "--message-count", "20000", "--max-pending", "100", "queue://"+unique(t, "warm")) // Java's code
		for load, want := range map[string]string{
			"client --rate 200 --max-pending 100":                              runresult.LimitNone,
			"client --rate 1000 --max-pending 100 --producers 3 --consumers 2": runresult.LimitNone,
			"consumer": runresult.LimitProducers,
		} {
			crowded := 0
			for range *quietRuns {
				if !quietRun(t, target[0], target[1], load, want) {
					crowded++
				}
			}
			t.Logf("%s %s: %d runs, %d of them while others had the processors", target, load, *quietRuns, crowded)
		}
	}
}

// quietRun makes one run, and reports whether it could be judged.
func quietRun(t *testing.T, protocol, url, load, want string) bool {
	t.Helper()
	queue := "queue://" + unique(t, "quiet")
	if want == runresult.LimitProducers { // another process sends
		p := start(t, protocol, "producer", "--url", url, "--rate", "100", "--max-pending", "100", "--duration", "1m", queue)
		p.printed("--- warmup false")
		defer p.interrupt()
	}
	args := append([]string{protocol}, strings.Fields(load)...)
	r := run(t, limit, append(args, "--url", url, "--warmup", "1", "--duration", "4.5", queue)...)
	require.Equal(t, statusOK, r.status)
	kind := limitOf(t, &r)
	if strings.Contains(strings.Join(r.summary.Warnings, "\n"), "the machine was ") {
		return false
	}
	require.Equal(t, want, kind, r.summary.Details.Limit)
	require.Empty(t, r.summary.Findings)
	return true
}

// hog keeps all processors busy until the test ends.
func hog(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done") //nolint:noctx // ends with the test
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// TestOthersAreToBlame: a tester that gets no processor because other programs use them all does not blame itself.
func TestOthersAreToBlame(t *testing.T) {
	hog(t)
	r := run(t, limit, "amqp", "client", "--embedded", "--rate", "3000", "--max-pending", "100", "--duration", "5", "--warmup", "1", "queue://TEST")
	for _, w := range r.summary.Warnings {
		require.NotContains(t, w, "perfmq was the bottleneck")
		require.NotContains(t, w, "own fault")
	}
}

// TestPausedTester: after a pause of its own perfmq reports it, with the number of latencies that include it, instead
// of charging it to the broker.
func TestPausedTester(t *testing.T) {
	t.Parallel()
	pause := func(load ...string) result {
		p := start(t, append([]string{"amqp", "client", "--embedded", "--duration", "6", "--threshold", "stall.count == 0", "queue://TEST"}, load...)...)
		p.printed("--- warmup false")
		p.signal(syscall.SIGSTOP)
		<-time.After(1500 * time.Millisecond)
		p.signal(syscall.SIGCONT)
		r := p.wait(limit)
		require.Equal(t, statusOK, r.status, "the broker did not stall: %s", r.stdout)
		require.NotContains(t, r.stdout, "--- finding: the broker")
		require.Regexp(t, `\n--- tester paused: +[1-9]\d{6}\.\d\d us \(longest of \d+; latencies of \d+ sends and receipts include that\)\n`, r.stdout)
		require.Contains(t, fmt.Sprint(r.summary.Warnings), "perfmq was paused")
		for _, w := range r.summary.Warnings {
			require.NotContains(t, w, "own fault", "it is known what it was")
		}
		return r
	}
	rated := pause("--rate", "500", "--max-pending", "100")
	require.Greater(t, rated.summary.Paused, uint64(600), "so many were due meanwhile, though few were in flight")
	// A closed loop has messages in flight at almost any moment: not while its producer waits for a processor.
	for range 5 {
		r := pause("--max-pending", "4")
		if max(r.summary.TotalSend.Max, r.summary.TotalTransfer.Max) >= 1_400_000 {
			require.Positive(t, r.summary.Paused)
			return
		}
		require.Zero(t, r.summary.Paused)
	}
	require.Fail(t, "no message was in flight in any of five pauses")
}

// testFrozenBrokerHasNotLost: messages that a stopped broker still holds are left, not lost; after it resumes, all are
// there.
func testFrozenBrokerHasNotLost(t *testing.T, a *brokertest.Artemis) {
	t.Helper()
	queue := newQueue(t, a)
	p := start(t, "amqp", "client", "--url", a.AMQPURL(), "--verify", "--producers", "4", "--credit", "10", "--max-pending", "50",
		"--drain-timeout", "4s", "--connect-timeout", "10s", "--duration", "60", "queue://"+queue)
	p.printed("--- warmup false")
	eventually(t, "a backlog", func() bool { return counters(t, a, queue).MessageCount > 500 })
	require.NoError(t, a.Pause())
	defer func() { require.NoError(t, a.Resume()) }()
	p.signal(syscall.SIGINT)
	r := p.wait(limit)
	require.Equal(t, statusFailed, r.status)
	v := r.verification(t)
	require.Zero(t, v.Total.Lost, r.stdout)
	require.Positive(t, v.Total.Left)
	require.Contains(t, r.stdout, "the broker gave no answer before the consumers ended")

	require.NoError(t, a.Resume())
	inDoubt := r.summary.TotalUnconfirmed
	c := run(t, limit, "amqp", "consumer", "--url", a.AMQPURL(), "--message-count", strconv.FormatUint(v.Total.Left, 10), "queue://"+queue)
	require.Equal(t, v.Total.Left, c.summary.TotalReceived, "all that was left was there")
	require.LessOrEqual(t, counters(t, a, queue).MessageCount, int64(inDoubt)+10, "and what was in doubt, or not acknowledged in time")
}
