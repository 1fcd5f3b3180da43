//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// inFlight is the credit of the receivers and the number of messages in flight of a load without a rate.
const inFlight = 1000

// bench is one call of the command bench.
type bench struct{ duration, warmup, repeat int } // seconds, seconds, runs of each side

// tool is a side of a benchmark: perfmq, or a peer in its place, on a kind of broker.
type tool struct {
	name, kind string
	protocol   string   // of perfmq; scheme of the URL
	peer       string   // the protocol of artemis perf, or the class of RocketMQ's benchmark; empty: perfmq
	counted    bool     // by RocketMQ's counter
	args       []string // further arguments
	number     int      // of producers, and of consumers; 0: one
}

// traffic is the part of a load that is the same for both sides.
type traffic struct {
	pending, rate int // rate 0: as fast as possible
	persistent    bool
}

func (l traffic) String() string {
	mode, speed := "non-persistent", "as fast as possible"
	if l.persistent {
		mode = "persistent"
	}
	if l.rate > 0 {
		speed = strconv.Itoa(l.rate) + " msg/s"
	}
	return fmt.Sprintf("max-pending %d, %s, %s", l.pending, mode, speed)
}

// benchmark compares two tools under some loads.
type benchmark struct {
	name         string
	ours, theirs tool
	loads        []traffic
	aims         []aim
}

// aim is a limit of a value of both sides' medians.
type aim struct {
	name    string
	value   func(ours, theirs *measured) float64
	limit   float64
	atLeast bool
}

// ratioAim limits the ratio of a metric.
func ratioAim(m metric, limit float64, atLeast bool) aim {
	return aim{metricNames()[m], func(a, b *measured) float64 { return a.values[m] / b.values[m] }, limit, atLeast}
}

// benchmarks are all of them, in the order of the record.
func benchmarks() []benchmark {
	credit := []string{"--credit", strconv.Itoa(inFlight)}
	onArtemis := func(protocol string, args ...string) tool {
		return tool{name: "perfmq", kind: "artemis", protocol: protocol, args: args}
	}
	perf := func(protocol string) tool {
		return tool{name: "artemis perf " + protocol, kind: "artemis", peer: protocol}
	}
	library := onArtemis("amqp", append(credit, "--client", "library")...)
	library.name = "go-amqp"
	rocket := func(args ...string) tool {
		return tool{name: "perfmq", kind: "rocketmq", counted: true, args: args}
	}
	java := func(class string, args ...string) tool {
		args = append([]string{"-s", "1024", "-ri", "1000", "-w", "64"}, args...)
		return tool{name: "Java " + class, kind: "rocketmq", peer: class, counted: true, args: args}
	}
	proxy := func(scheme string, args ...string) tool {
		return tool{name: "perfmq " + scheme, kind: "rocketmq-proxy", protocol: scheme, args: args}
	}
	official := proxy("rocketmq+grpc", "--client", "rocketmq-clients")
	official.name = "rocketmq-clients"
	// Without a rate each side is as fast as the proxy lets it.
	paced := []traffic{{pending: 64, rate: 1000}, {pending: 64}, {pending: 1}}
	allOut := []traffic{{1, 0, false}, {1, 0, true}, {100, 0, false}, {100, 0, true}}
	faster := []aim{ratioAim(receivedRate, 1, true), ratioAim(toolCPU, 0.5, false)}
	list := []benchmark{
		{"artemis", onArtemis("amqp"), perf("AMQP"), append(allOut,
			traffic{1, 1000, false}, traffic{1, 1000, true}, traffic{100, 5000, false}, traffic{100, 5000, true}), nil},
		{"library", onArtemis("amqp", credit...), library, []traffic{{inFlight, 0, false}, {inFlight, 0, true}}, nil},
		{"library-one", onArtemis("amqp", credit...), library, []traffic{{1, 0, false}}, []aim{
			ratioAim(receivedRate, 1.5, true), ratioAim(toolCPU, 0.5, false),
		}},
		{"rocketmq", rocket("-o", "send=async"), java("Producer"), []traffic{{pending: 64}}, faster},
		{
			"rocketmq-batch", rocket("-o", "send=batch", "-o", "batch-size=16"), java("BatchProducer", "-b", "16"),
			[]traffic{{pending: 1024}},
			faster,
		},
		{"proxy-remoting", proxy("rocketmq+grpc"), proxy("rocketmq"), paced, []aim{ratioAim(toolCPU, 4, false)}},
		{"proxy-library", proxy("rocketmq+grpc"), official, paced, []aim{ratioAim(toolCPU, 0.25, false)}},
		{"stomp-amqp", onArtemis("stomp"), perf("AMQP"), allOut, nil},
		{"stomp-core", onArtemis("stomp"), perf("CORE"), allOut, nil},
	}
	for _, protocol := range []string{"amqp", "stomp"} {
		embedded := tool{name: "embedded", kind: "embedded", protocol: protocol}
		artemis := tool{name: "Artemis", kind: "artemis", protocol: protocol}
		list = append(list, benchmark{"broker-" + protocol, embedded, artemis, []traffic{{inFlight, 0, false}}, nil})
	}
	for _, on := range []string{
		"artemis-amqp", "artemis-stomp", "rocketmq-rocketmq",
		"embedded-amqp", "embedded-stomp", "embedded-rocketmq", "-mem",
	} {
		kind, protocol, _ := strings.Cut(on, "-")
		verify := tool{name: "with --verify", kind: kind, protocol: protocol, args: []string{"--verify"}}
		without := tool{name: "without", kind: kind, protocol: protocol}
		list = append(list, benchmark{"verify-" + on, verify, without, []traffic{{100, 0, false}}, nil})
	}
	for _, protocol := range []string{"amqp", "stomp", "rocketmq"} {
		for _, n := range []int{10, 100, 1000, 5000} {
			list = append(list, connections(protocol, n))
		}
	}
	return list
}

// connections puts a load on the embedded broker over 2n connections, and over two.
func connections(protocol string, n int) benchmark {
	of := func(n int) tool {
		args := []string{"--connect-timeout", "60s"}
		return tool{name: fmt.Sprintf("N=%d", n), kind: "embedded", protocol: protocol, args: args, number: n}
	}
	aims := []aim{ratioAim(receivedRate, 0.99, true), {"KiB per connection", func(a, b *measured) float64 {
		return (a.values[memory] - b.values[memory]) * 1024 / float64(2*n-2)
	}, 32, false}}
	return benchmark{
		fmt.Sprintf("connections-%s-%d", protocol, n), of(n), of(1), []traffic{{100, 10_000, false}}, aims,
	}
}

func benchCommand() command {
	b := new(bench)
	return command{
		name: "bench", help: "perfmq and its peers in turn, on real brokers",
		columns: append([]string{"ours / theirs (ratio)", "load", "broker"}, metricNames()...),
		flags: func(fs *flag.FlagSet) {
			fs.IntVar(&b.duration, "duration", 15, "seconds per run, warm-up included")
			fs.IntVar(&b.warmup, "warmup", 5, "seconds of warm-up per run, not measured")
			fs.IntVar(&b.repeat, "repeat", 3, "measured runs of each side, in turn; medians are printed")
		},
		trials: b.trials,
	}
}

func (b *bench) trials(*session) (list []trial, err error) {
	if b.warmup < 0 || b.duration <= b.warmup || b.repeat < 1 {
		return nil, errors.New("-duration must exceed -warmup, and -repeat be 1 or more")
	}
	for _, m := range benchmarks() {
		for _, l := range m.loads {
			run := func(ctx context.Context, s *session) ([]row, error) {
				r, err := b.compare(ctx, s, &m, l)
				return []row{r}, err
			}
			list = append(list, trial{name: m.name + "/" + l.String(), run: run})
		}
	}
	return list, nil
}

// compare runs both tools in turn, forwards and backwards, after a run of each that is not measured: Java compiles
// meanwhile.
func (b *bench) compare(ctx context.Context, s *session, m *benchmark, l traffic) (r row, err error) {
	on := map[string]*cluster{"": {}} // "" is no broker, for the driver mem
	title := ""
	for _, kind := range []string{m.ours.kind, m.theirs.kind} {
		if on[kind] != nil {
			continue
		}
		if on[kind], err = s.launch(ctx, kind); err != nil {
			return r, fmt.Errorf("start the broker: %w", err)
		}
		defer func() { err = errors.Join(err, on[kind].close()) }()
		title = strings.TrimPrefix(title+", "+on[kind].title, ", ")
	}
	sides, runs := []*tool{&m.ours, &m.theirs}, make([][]measured, 2)
	for round := range b.repeat + 1 {
		for i := range sides {
			i = (i + round) % 2
			got, err := b.once(ctx, s, on[sides[i].kind], l, sides[i], fmt.Sprintf("BENCH-%d-%d", round, i))
			if err != nil {
				return r, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			if round > 0 {
				runs[i] = append(runs[i], got)
			}
		}
	}
	r = m.row(runs)
	r.Cells = append([]string{m.ours.name + " / " + m.theirs.name, l.String(), title}, r.Cells...)
	return r, nil
}

// launch starts a broker for a benchmark or a scenario.
func (s *session) launch(ctx context.Context, kind string) (*cluster, error) {
	switch kind {
	case "embedded":
		return s.launchEmbedded(ctx)
	case "rocketmq-proxy":
		return launchRocketMQ(ctx, use{heavy: true, proxy: true})
	}
	all := deployments()
	i := slices.IndexFunc(all, func(d deployment) bool { return d.name == kind })
	return all[i].launch(ctx, use{heavy: true})
}

// row compares the medians of both sides, and judges the aims unless other programs disturbed a run.
func (m *benchmark) row(runs [][]measured) (r row) {
	ours, theirs := medians(runs[0]), medians(runs[1])
	for i := range ours.values {
		cell := ""
		if a, b := ours.values[i], theirs.values[i]; a > 0 || b > 0 {
			cell = fmt.Sprintf("%s / %s (%s)", number(a, 1), number(b, 1), number(a/b, 2))
		}
		r.Cells = append(r.Cells, cell)
	}
	r.State = promiseKept
	var verdicts []string
	for _, a := range m.aims {
		v := a.value(&ours, &theirs)
		sign, word := "at most", "met"
		if a.atLeast {
			sign = "at least"
		}
		if a.atLeast == (v < a.limit) && v != a.limit || math.IsNaN(v) {
			word, r.State = "MISSED", promiseBroken
		}
		verdicts = append(verdicts, fmt.Sprintf("%s %s, %s %g: %s", a.name, number(v, 2), sign, a.limit, word))
	}
	r.Verdict = strings.Join(verdicts, "; ")
	for _, run := range slices.Concat(runs...) {
		if run.health.Crowded() {
			r.State, r.Verdict = notJudged, "not judged: "+busyText(&run.health)
		}
	}
	return r
}

func number(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// once runs a tool to its end, with a queue of its own. Opening thousands of connections takes a while.
func (b *bench) once(ctx context.Context, s *session, c *cluster, l traffic, t *tool, queue string) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration)*time.Second+hangLimit)
	defer cancel()
	if t.counted {
		return b.counted(ctx, s, c, l, t, queue)
	}
	if artemis, ok := c.primary.(*brokertest.Artemis); ok {
		defer artemis.DeleteQueue(ctx, queue) //nolint:errcheck // it may be gone
	}
	file := filepath.Join(s.dir, "run.json")
	if broker, ok := c.primary.(*brokertest.RocketMQ); ok { // the proxy creates no topics and no groups
		err := errors.Join(broker.CreateTopic(ctx, queue, rocketQueues),
			broker.CreateGroup(ctx, "perfmq-queue-"+queue, false))
		if err != nil {
			return measured{}, err
		}
	}
	args := []string{
		"--duration", strconv.Itoa(b.duration), "--warmup", strconv.Itoa(b.warmup), "--max-pending", strconv.Itoa(l.pending),
		"--json", file, "--silent",
	}
	if l.persistent {
		args = append(args, "--persistent")
	}
	if l.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(l.rate))
	}
	return account(ctx, c, func() (m measured, ended *os.ProcessState, err error) {
		cmd := t.command(ctx, s, c, args, queue)
		if out, err := cmd.CombinedOutput(); err != nil {
			return m, nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(string(out)))
		}
		return m, cmd.ProcessState, m.read(file)
	})
}

// command returns a tool as client.
func (t *tool) command(ctx context.Context, s *session, c *cluster, args []string, queue string) *exec.Cmd {
	const members = 1000 // consumers of a topic at most: the embedded broker's topics have up to 1024 queues
	artemis, _ := c.primary.(*brokertest.Artemis)
	switch {
	case t.peer == "CORE": // without the window, each send waits for a reply of its own
		args = append([]string{"--url", artemis.CoreURL() + "?confirmationWindowSize=1048576"}, args...)
		return artemis.PerfCommand(ctx, "client", append(args, "queue://"+queue)...)
	case t.peer != "":
		args = append([]string{"--protocol", t.peer}, args...)
		return artemis.PerfCommand(ctx, "client", append(args, "queue://"+queue)...)
	}
	url := "mem://local"
	if len(c.endpoints) > 0 {
		url = c.endpoint(t.protocol).url()
	}
	command, _, _ := strings.Cut(t.protocol, "+")
	args = slices.Concat([]string{command, "client", "--url", url}, t.args, args)
	if t.number > 0 {
		each := t.number
		if t.protocol == "rocketmq" {
			each = min(each, members)
			args = append(args, "-o", "queues="+strconv.Itoa(max(each, rocketQueues)))
		}
		args = append(args, "--producers", strconv.Itoa(each), "--consumers", strconv.Itoa(each))
		for i := range t.number/each - 1 {
			args = append(args, fmt.Sprintf("queue://%s-%d", queue, i))
		}
	}
	return s.command(ctx, append(args, "queue://"+queue)...)
}

// counted runs a producer of RocketMQ, and counts by the broker: RocketMQ's benchmark reports a rate only after ten
// seconds, and does not end by itself.
func (b *bench) counted(
	ctx context.Context, s *session, c *cluster, l traffic, t *tool, topic string,
) (measured, error) {
	broker, ok := c.primary.(*brokertest.RocketMQ)
	if !ok {
		return measured{}, errors.New("only RocketMQ counts the messages of a producer")
	}
	if err := broker.CreateTopic(ctx, topic, rocketQueues); err != nil {
		return measured{}, err
	}
	return account(ctx, c, func() (m measured, ended *os.ProcessState, err error) {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		cmd := broker.Command(own, "org.apache.rocketmq.example.benchmark."+t.peer,
			append([]string{"-n", broker.NameServer(), "-t", topic}, t.args...)...)
		if t.peer == "" {
			args := append([]string{"rocketmq", "producer", "--url", broker.URL(), "--silent"}, t.args...)
			cmd = s.command(own, append(args, "--max-pending", strconv.Itoa(l.pending), "queue://"+topic)...)
		}
		if err := cmd.Start(); err != nil {
			return m, nil, fmt.Errorf("start %s: %w", cmd.Path, err)
		}
		count := func(ctx context.Context) (int64, error) { return broker.TopicMessages(ctx, topic) }
		err = m.count(ctx, time.Duration(b.warmup)*time.Second, time.Duration(b.duration-b.warmup)*time.Second, count)
		cancel()
		_ = cmd.Wait() // it was ended; the counter shows whether it worked
		if err != nil {
			return m, nil, err
		}
		for last := -1.0; last != m.messages && err == nil; { // it may have messages on the way
			last = m.messages
			if err = wait(ctx, 4*countPause); err == nil {
				var n int64
				n, err = count(ctx)
				m.messages = float64(n)
			}
		}
		return m, cmd.ProcessState, err
	})
}
