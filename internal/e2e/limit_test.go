//go:build unix

package e2e

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
