//go:build unix

package e2e

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/musttest"
	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	runresult "github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
	"github.com/perfmq/perfmq/scenarios"
)

// allScenarios is for `make acceptance`. Otherwise some represent the others; on the embedded broker only smoke runs.
var allScenarios = flag.Bool("scenarios.all", false, "all shipped scenarios, also on the embedded broker")

var representatives = regexp.MustCompile(`^(smoke/.*|cross/amqp-stomp|artemis/(durable-topics|paging)|activemq/(restart|correctness)|` +
	`rocketmq/(matrix|tags|delay|transactions))$`)

// shippedScenarios returns the scenarios inside the program for a kind of broker; for the embedded one of all kinds.
func shippedScenarios(t *testing.T, broker string) (list []string) {
	t.Helper()
	all := musttest.Get(config.Shipped(scenarios.FS()))(t)
	for _, info := range all {
		if *allScenarios && broker == "embedded" || (*allScenarios || representatives.MatchString(info.Name)) &&
			(brokerOf(info.Name) == broker || broker == "embedded" && strings.HasPrefix(info.Name, "smoke/")) {
			list = append(list, info.Name)
		}
	}
	require.NotEmpty(t, list)
	return list
}

// brokerOf returns the kind of broker that a shipped scenario is for.
func brokerOf(name string) string {
	switch dir, _, _ := strings.Cut(name, "/"); {
	case name == "smoke/find-max": // TestFindMax
		return "embedded"
	case dir == "rocketmq" || name == "smoke/rocketmq" || name == "soak/rocketmq":
		return "rocketmq"
	case dir == "activemq" || dir == "cluster":
		return "activemq"
	default:
		return "artemis"
	}
}

var destinationText = regexp.MustCompile(`(?:queue|topic)://[A-Za-z0-9._-]+`)

// destinationsOf returns the queues and topics that a scenario names.
func destinationsOf(t *testing.T, name string) []string {
	t.Helper()
	text := musttest.Get(scenarios.FS().ReadFile(name + ".yaml"))(t)
	return destinationText.FindAllString(string(text), -1)
}

// runScenario carries a scenario out and returns its result, after the checks of every result: it is a success, its
// schema describes it, all messages have an end, and all thresholds were judged. Counts of messages that failed or were
// lost must be as demanded at any scale. Rates and times need not be, in a run of seconds on a machine with much else
// to do; the lowest rate of a second is known only of a run with three of them.
//
// Of a sweep it checks each run so, and returns one result with the workers and totals of all.
func runScenario(t *testing.T, args ...string) *runresult.Result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "result")
	r := run(t, 4*limit, append([]string{"run", "--result", dir}, args...)...)
	if !sweeps.IsSweep(dir) {
		return checkResult(t, dir, r.status)
	}
	s := musttest.Get(sweeps.ReadSweep(dir))(t)
	require.NotEmpty(t, s.Rows())
	sum := new(runresult.Result)
	worst := statusOK
	for i := range s.Runs {
		run := &s.Runs[i]
		require.Equal(t, sweeps.Done, run.State)
		worst = max(worst, run.Status)
		addResult(sum, checkResult(t, filepath.Join(dir, run.Folder), run.Status))
	}
	require.Equal(t, worst, r.status)
	return sum
}

// runSearch carries out the search of a scenario, which ends with an outcome, and a result of each rate that it tried.
func runSearch(t *testing.T, args []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "result")
	r := run(t, 4*limit, append([]string{"run", "--result", dir}, args...)...)
	require.Contains(t, []int{statusOK, statusThreshold, statusUndecided}, r.status, r.stderr) // as busy as the machine is
	found := musttest.Get(sweeps.ReadSearch(dir))(t)
	require.True(t, found.Complete)
	require.Equal(t, r.status == statusUndecided, found.Kind() == sweeps.Undecided)
	for i, p := range found.Points {
		_, err := runresult.Read(filepath.Join(dir, sweeps.PointFolder(i+1, p.Rate)))
		require.NoError(t, err)
	}
}

// addResult adds the totals and the workers of a run.
func addResult(sum, one *runresult.Result) {
	sum.Workers = append(sum.Workers, one.Workers...)
	sum.Total = one.Total
	sum.Protocol = one.Protocol
}

func checkResult(t *testing.T, dir string, status int) *runresult.Result {
	t.Helper()
	require.Contains(t, []int{statusOK, statusThreshold}, status)
	resulttest.Compile(t, runresult.Schema(), runresult.SchemaID).Validate(t, dir)
	got := musttest.Get(runresult.Read(dir))(t)
	require.True(t, got.Complete)
	require.True(t, got.Outcome.Success, "%q", got.Outcome.Problems)
	require.Equal(t, status, got.Outcome.Status)
	require.NotEmpty(t, got.Thresholds)
	kept := true
	for _, d := range got.Thresholds {
		kept = kept && d.Kept
		if d.Measured == nil {
			require.Regexp(t, `\.min$`, d.Metric, "%s: %s: nothing was measured", d.Step, d.Threshold)
			continue
		}
		if d.Unit == "messages" {
			require.True(t, d.Kept, "%s: %s: %g", d.Step, d.Threshold, *d.Measured)
		}
	}
	require.Equal(t, kept, status == statusOK)
	total := got.Total.Producers
	if total == nil {
		require.NotZero(t, got.Total.Consumers.Received)
		return got
	}
	require.NotZero(t, total.Sent)
	require.Equal(t, total.Sent, total.Completed)
	var steps uint64
	for i := range got.Steps {
		if p := got.Steps[i].Counts.Producers; p != nil {
			steps += p.Completed
		}
	}
	require.Equal(t, total.Completed, steps)
	if v := got.Verification; v != nil {
		require.Equal(t, v.Total.Expected, v.Total.Once)
		require.Equal(t, got.Total.Consumers.Received+total.Replies, v.Total.Once, "replies are verified, too")
	}
	return got
}

// totals are messages accepted and received.
type totals struct{ completed, received uint64 }

func (s *totals) add(c *runresult.Counts) {
	if c.Producers != nil {
		s.completed += c.Producers.Completed
	}
	if c.Consumers != nil {
		s.received += c.Consumers.Received
	}
}

// byDestination adds up the workers of a result.
func byDestination(r *runresult.Result) map[string]totals {
	sums := map[string]totals{}
	for i := range r.Workers {
		w := &r.Workers[i]
		sum := sums[w.Destination]
		sum.add(&w.Counts)
		sums[w.Destination] = sum
	}
	return sums
}

// scaleOf returns the scale of a shipped scenario, which shortens it to seconds.
func scaleOf(name string) string {
	if name == "activemq/overnight" {
		return "0.0001"
	}
	return "0.001"
}

// TestShippedScenariosEmbedded: the scenarios inside the program need no broker to be tried.
func TestShippedScenariosEmbedded(t *testing.T) {
	t.Parallel()
	for _, name := range shippedScenarios(t, "embedded") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--embedded", "--scale", scaleOf(name), "@" + name}
			switch name {
			case "activemq/restart":
				args = append(args, "--set", "restart=true") // there is nothing to restart
			case "smoke/find-max":
				runSearch(t, append(args, "--set", "from=5000", "--set", "time=1.2s", "--set", "warmup=0.2s", "--embedded-faults", "rate=8000"))
				return
			}
			if brokerOf(name) == "rocketmq" {
				args = append(args, "--send-timeout", "1m") // a busy machine needs more than 3 s for an answer
			}
			runScenario(t, args...)
		})
	}
}

// TestShippedScenariosOnArtemis: the totals equal the counts of the broker's queues.
func TestShippedScenariosOnArtemis(t *testing.T) {
	t.Parallel()
	a := brokertest.StartArtemis(t) // its own: the commands of the documentation use the same queues
	for _, name := range shippedScenarios(t, "artemis") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--scale", scaleOf(name), "@" + name, "--url", a.AMQPURL()}
			switch {
			case name == "smoke/cross" || strings.HasPrefix(name, "cross/"):
				args = append(args[:3], "--set", "amqp="+a.AMQPURL(), "--set", "stomp="+a.STOMPURL())
			case name == "smoke/stomp" || name == "soak/stomp":
				args[4] = a.STOMPURL()
			case name == "artemis/durable-topics":
				args = append(args, "--keep-subscription")
			}
			// A queue of ours is not deleted with its counters; on a topic it counts the messages that the broker took in.
			watched := map[string]string{} // queues by destinations
			watch := func(destination, address string) {
				queue, routing := address, "ANYCAST"
				if strings.HasPrefix(destination, "topic://") {
					queue, routing = address+".watch", "MULTICAST"
				}
				if watched[destination] == "" {
					require.NoError(t, a.CreateQueue(soon(t), address, queue, routing))
				}
				watched[destination] = queue
			}
			for _, destination := range destinationsOf(t, name) {
				_, address, _ := strings.Cut(destination, "://")
				if name != "artemis/durable-topics" && name != "artemis/skew" {
					watch(destination, address)
					continue
				}
				for _, digit := range "0123456789" {
					watch(destination+string(digit), address+string(digit))
				}
			}
			got := byDestination(runScenario(t, args...))
			require.Len(t, got, len(watched))
			for destination, queue := range watched {
				sum := got[destination]
				kind, address, _ := strings.Cut(destination, "://")
				if kind == "queue" {
					q := settled(t, a, queue)
					require.Equal(t, totals{uint64(q.MessagesAdded), uint64(q.MessagesAcked)}, sum, destination)
					continue
				}
				requireCount(t, a, queue, sum.completed, messagesAdded)
				acked := int64(0)
				for _, q := range settledSubscriptions(t, a, address, queue) {
					if q.Name != queue {
						require.Zero(t, q.MessageCount)
						acked += q.MessagesAcked
					}
				}
				require.EqualValues(t, acked, sum.received, destination)
			}
		})
	}
}

// TestScenariosOnActiveMQ: the totals equal the counts of the broker's queues and topics.
func TestScenariosOnActiveMQ(t *testing.T) {
	t.Parallel()
	a := shared.ActiveMQ(t)
	read := func(t *testing.T, destination string) (sum totals) {
		t.Helper()
		kind, name, _ := strings.Cut(destination, "://")
		query := a.Queue
		if kind == "topic" {
			query = a.Topic
		}
		s := musttest.Get(query(soon(t), name))(t)
		return totals{uint64(s.EnqueueCount), uint64(s.DequeueCount)}
	}
	for _, name := range shippedScenarios(t, "activemq") {
		t.Run(name, func(t *testing.T) {
			alone(t, &activeMQ, shared.ActiveMQ)
			destination := destinationsOf(t, name)[0]
			var before totals // its counts before the restart, which resets them
			args := []string{"--scale", scaleOf(name), "@" + name, "--url", a.STOMPURL()}
			if name == "activemq/restart" {
				command := restarts(t, func(ctx context.Context) error {
					sum := read(t, destination)
					before.completed += sum.completed
					before.received += sum.received
					if err := a.Stop(); err != nil {
						return err
					}
					return a.Start(ctx)
				})
				args = append(args, "--set", "restart="+command)
			}
			r := runScenario(t, args...)
			got := byDestination(r)
			require.Len(t, got, 1)
			var sum totals
			eventually(t, "all messages are acknowledged", func() bool {
				sum = read(t, destination)
				sum.completed += before.completed
				sum.received += before.received
				return sum.received >= got[destination].received
			})
			require.Equal(t, sum, got[destination])
		})
	}
	t.Run("a durable group that is away for a step", func(t *testing.T) {
		alone(t, &activeMQ, shared.ActiveMQ)
		topic := strings.NewReplacer(".", "-", ",", "").Replace(unique(t, "topic"))
		got := testAway(t, "{protocol: stomp, url: "+a.STOMPURL()+"}", topic)
		want := totals{got.Total.Producers.Completed, got.Total.Consumers.Received}
		eventually(t, "all messages are acknowledged", func() bool { return read(t, "topic://"+topic) == want })
	})
}

// restarts returns a command for the shell that calls f and ends when it has returned.
func restarts(t *testing.T, f func(context.Context) error) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := f(t.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	return "curl -fsS " + server.URL
}

// TestScenariosOnRocketMQ: the totals are the number of messages in the broker's topics, plus those rolled back, and
// the number of messages that it delivered to consumers.
func TestScenariosOnRocketMQ(t *testing.T) {
	t.Parallel()
	b := shared.RocketMQ(t)
	for _, name := range shippedScenarios(t, "rocketmq") {
		t.Run(name, func(t *testing.T) {
			alone(t, &rocketMQ, shared.RocketMQ)
			delivered := musttest.Get(b.Delivered(soon(t)))(t)
			got := runScenario(t, "--scale", scaleOf(name), "--send-timeout", "1m", "--url", b.URL(), "@"+name)
			rolledBack := got.Protocol["tx-rolled-back"]
			require.Equal(t, name == "rocketmq/transactions", rolledBack > 0)
			if sums := byDestination(got); strings.HasPrefix(name, "rocketmq/matrix") {
				require.Greater(t, len(sums), 1, "topics of the cells")
			} else {
				require.Len(t, sums, 1)
			}
			for destination, sum := range byDestination(got) {
				kind, topic, _ := strings.Cut(destination, "://")
				stored := musttest.Get(b.TopicMessages(soon(t), topic))(t)
				require.EqualValues(t, stored, sum.completed-rolledBack)
				switch {
				case got.Total.Consumers == nil:
				case kind == "queue":
					require.EqualValues(t, stored, sum.received)
					consumed(t, b, topic, sum.received)
				default: // the groups of a topic are gone, but each had one consumer, to which the broker sent each message once
					now := musttest.Get(b.Delivered(soon(t)))(t)
					require.EqualValues(t, now-delivered, sum.received)
				}
			}
		})
	}
	t.Run("four groups", func(t *testing.T) { testFourGroups(t, alone(t, &rocketMQ, shared.RocketMQ)) })
}

// consumed waits until the consumers of a queue:// have committed as many messages as they received.
func consumed(t *testing.T, b *brokertest.RocketMQ, queue string, received uint64) {
	t.Helper()
	n := int64(0)
	eventually(t, "the consumers have committed", func() bool {
		var err error
		n, err = b.Consumed(soon(t), "perfmq-queue-"+queue, queue)
		return err == nil && n >= int64(received)
	})
	require.EqualValues(t, n, received)
}
