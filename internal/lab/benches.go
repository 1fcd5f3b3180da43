//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// inFlight is the credit of the receivers and the number of messages in flight of a load without a rate.
const inFlight = 1000

// benchmarks are all of them, in the order of the page.
func benchmarks() []benchmark {
	artemis := []string{"artemis"}
	credit := []string{"--credit", strconv.Itoa(inFlight)}
	return append([]benchmark{
		{
			name: "artemis", title: "perfmq and `artemis perf` over AMQP", kinds: artemis,
			sides: []side{
				{name: "perfmq", kind: "artemis", protocol: "amqp"}, {name: "artemis AMQP", kind: "artemis", peer: "AMQP"},
			},
			loads: []traffic{
				{1, 0, false},
				{1, 1000, false},
				{1, 0, true},
				{1, 1000, true},
				{100, 0, false},
				{100, 5000, false},
				{100, 0, true},
				{100, 5000, true},
			},
		},
		{name: "amqp", title: "perfmq over AMQP and a C program on Qpid Proton", kinds: artemis, contests: arrowContests},
		{
			name: "library", title: "perfmq over AMQP and `--client library` (go-amqp)", kinds: artemis,
			sides: []side{
				{name: "perfmq", kind: "artemis", protocol: "amqp", args: credit},
				{name: "go-amqp", kind: "artemis", protocol: "amqp", args: append(credit, "--client", "library")},
			},
			loads: []traffic{{inFlight, 0, false}, {inFlight, 0, true}, {100, 10_000, false}},
		},
		{
			name: "library-one", title: "The same, one message in flight", kinds: artemis,
			sides: []side{
				{name: "perfmq", kind: "artemis", protocol: "amqp", args: credit},
				{name: "go-amqp", kind: "artemis", protocol: "amqp", args: append(credit, "--client", "library")},
			},
			loads: []traffic{{1, 0, false}},
			aims: []aim{
				ratioAim(receivedRate, "perfmq", "go-amqp", 1.5, true), ratioAim(toolCPU, "perfmq", "go-amqp", 0.5, false),
			},
		},
		{
			name: "connections", title: "Thousands of connections to the embedded broker", kinds: []string{"embedded"},
			contests: connectionContests,
		},
		{
			name: "rocketmq", title: "perfmq and RocketMQ's Java clients", kinds: []string{"rocketmq"},
			contests: rocketContests,
		},
		{
			name: "stomp", title: "perfmq over STOMP and `artemis perf` over AMQP and CORE", kinds: artemis,
			sides: []side{
				{name: "perfmq", kind: "artemis", protocol: "stomp"},
				{name: "artemis AMQP", kind: "artemis", peer: "AMQP"},
				{name: "artemis CORE", kind: "artemis", peer: "CORE"},
			},
			loads: []traffic{{1, 0, false}, {1, 0, true}, {100, 0, false}, {100, 0, true}},
		},
	}, ownBenchmarks()...)
}

// ownBenchmarks compare the embedded broker with Artemis, and perfmq with itself.
func ownBenchmarks() (list []benchmark) {
	for _, protocol := range []string{"amqp", "stomp"} {
		list = append(list, benchmark{
			name: "broker-" + protocol, title: "The embedded broker and Artemis over " + protocol,
			kinds: []string{"embedded", "artemis"}, warm: true,
			sides: []side{
				{name: "embedded", kind: "embedded", protocol: protocol}, {name: "Artemis", kind: "artemis", protocol: protocol},
			},
			loads: []traffic{{inFlight, 0, false}, {100, 10_000, false}},
		})
	}
	for _, on := range []struct{ kind, protocol string }{
		{"artemis", "amqp"},
		{"artemis", "stomp"},
		{"rocketmq", "rocketmq"},
		{"embedded", "amqp"},
		{"embedded", "stomp"},
		{"embedded", "rocketmq"},
		{"", "mem"},
	} {
		m := benchmark{
			name: "verify-" + on.kind + "-" + on.protocol, title: "perfmq with and without `--verify` over " + on.protocol,
			warm: true, pairs: true, loads: []traffic{{100, 0, false}},
			sides: []side{
				{name: "with --verify", kind: on.kind, protocol: on.protocol, args: []string{"--verify"}},
				{name: "without", kind: on.kind, protocol: on.protocol},
			},
		}
		if on.kind != "" {
			m.kinds = []string{on.kind}
		}
		list = append(list, m)
	}
	return list
}

// connectionContests put an equal load on the embedded broker, over more and more connections.
func connectionContests(_ context.Context, b *bench, on map[string]*server) (list []contest, _ error) {
	const (
		rate = 10_000
		// members are the consumers of one destination over RocketMQ, at most: the embedded broker's topics have up to 1024
		// queues, and a consumer needs one.
		members = 1000
	)
	s := on["embedded"]
	for _, protocol := range []string{"amqp", "stomp", "rocketmq"} {
		c := contest{
			title: fmt.Sprintf("%s, %d msg/s in all, N producers and N consumers with a connection each", protocol, rate),
			aims: []aim{
				{"memory per connection, KiB", func(median func(column, of string) float64) float64 {
					return (median("N=5000", memory) - median("N=1000", memory)) * 1024 / 8000
				}, 32, false},
				ratioAim(toolCPU, "N=1000", "N=1", 1.5, false), ratioAim(receivedRate, "N=1000", "N=1", 0.99, true),
			},
		}
		for _, n := range []int{1, 10, 100, 1000, 5000} {
			each := n
			d := side{protocol: protocol, args: []string{"--connect-timeout", "60s"}}
			if protocol == "rocketmq" {
				each = min(n, members)
				d.args = append(d.args, "-o", "queues="+strconv.Itoa(max(each, 8)))
			}
			d.args = append(d.args, "--producers", strconv.Itoa(each), "--consumers", strconv.Itoa(each))
			c.columns = append(c.columns, column{name: fmt.Sprintf("N=%d", n), run: func(ctx context.Context) (measured, error) {
				b.runs++
				var queues []string
				for i := range n / each {
					queues = append(queues, fmt.Sprintf("queue://CONNECTIONS-%d-%d", b.runs, i))
				}
				return b.once(ctx, s, traffic{pending: 100, rate: rate}, d, queues...)
			}})
		}
		list = append(list, c)
	}
	return list, nil
}

// asyncProducer is a program with the Java client. The asynchronous mode of its benchmark (-y true) fills the client's
// queue of 10,000 sends, and all of them time out on a small machine.
//
//go:embed peers/AsyncProducer.java
var asyncProducer []byte

// rocketContest compares perfmq with a Java client, by the broker's counters: RocketMQ's benchmark reports a rate only
// after ten seconds, and most of it never ends.
type rocketContest struct {
	title   string
	role    string // of perfmq
	options []string
	class   string // of Java, in its benchmark
	java    []string
	part    window
}

func rocketContests(ctx context.Context, b *bench, on map[string]*server) (list []contest, err error) {
	const backlogTopic = "bench-backlog"
	broker, backlog := on["rocketmq"].rocketmq, 40_000*b.duration
	limit := time.Duration(b.duration)*time.Second + hangLimit
	if err := broker.Compile(ctx, "AsyncProducer.java", asyncProducer); err != nil {
		return nil, err
	}
	if err := broker.CreateTopic(ctx, backlogTopic, rocketQueues); err != nil {
		return nil, err
	}
	fill := b.command(ctx, "rocketmq", "producer", "--url", broker.URL(), "--silent", "--message-count",
		strconv.Itoa(backlog), "-o", "send=batch", "--max-pending", "1024", "queue://"+backlogTopic)
	if out, err := fill.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("fill a topic for the consumers: %w\n%s", err, tail(string(out)))
	}
	size := []string{"-s", "1024", "-ri", "1000", "-w", "64"}
	timed := window{after: time.Duration(b.warmup) * time.Second, until: time.Duration(b.duration) * time.Second}
	for _, r := range []rocketContest{
		{
			fmt.Sprintf("consumer of a backlog of %d, from 20%% to 95%% of it", backlog), "consumer", nil,
			"Consumer",
			[]string{"-t", backlogTopic, "-p", "false", "-ri", "1000"},
			window{least: int64(backlog) / 5, most: int64(backlog) / 20 * 19, until: limit},
		},
		{
			"producer, 64 in flight, Java 64 threads", "producer",
			[]string{"-o", "send=async", "--max-pending", "64"},
			"Producer", size, timed,
		},
		{
			"producer, asynchronous, 1000 in flight each", "producer",
			[]string{"-o", "send=async", "--max-pending", "1000"},
			"", nil, timed,
		},
		{
			"producer, 64 batches of 16 in flight, Java 64 threads", "producer",
			[]string{"-o", "send=batch", "-o", "batch-size=16", "--max-pending", "1024"},
			"BatchProducer", append(size, "-b", "16"), timed,
		},
	} {
		ours := func(ctx context.Context, own string) *exec.Cmd {
			args := append([]string{
				"rocketmq", r.role, "--url", broker.URL(), "--silent", "--duration", limit.String(),
			}, r.options...)
			if r.role == "consumer" {
				return b.command(ctx, append(args, "-o", "group="+own, "queue://"+backlogTopic)...)
			}
			return b.command(ctx, append(args, "queue://"+own)...)
		}
		theirs := func(ctx context.Context, own string) *exec.Cmd {
			if r.class == "" {
				return broker.Command(ctx, "AsyncProducer", broker.NameServer(), own, "1024", "1000")
			}
			of := map[string]string{"consumer": "-g", "producer": "-t"}[r.role]
			return broker.Command(ctx, "org.apache.rocketmq.example.benchmark."+r.class,
				append([]string{"-n", broker.NameServer(), of, own}, r.java...)...)
		}
		list = append(list, contest{
			title: r.title,
			columns: []column{
				b.countedSide("perfmq", on["rocketmq"], r.part, ours), b.countedSide("Java", on["rocketmq"], r.part, theirs),
			},
			aims: []aim{ratioAim(receivedRate, "perfmq", "Java", 1, true), ratioAim(toolCPU, "perfmq", "Java", 0.5, false)},
		})
	}
	return list, nil
}

// rocketQueues is the number of queues of a topic. The benchmark's own topic has 1024, and is slow.
const rocketQueues = 8

// countedSide returns runs that RocketMQ counts, each with a topic or group of its own.
func (b *bench) countedSide(
	name string, s *server, part window, command func(ctx context.Context, own string) *exec.Cmd,
) column {
	return column{name: name, run: func(ctx context.Context) (measured, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration)*time.Second+hangLimit)
		defer cancel()
		b.runs++
		own, count := fmt.Sprintf("bench-%d", b.runs), s.rocketmq.Delivered
		if part.most == 0 {
			if err := s.rocketmq.CreateTopic(ctx, own, rocketQueues); err != nil {
				return measured{}, err
			}
			count = func(ctx context.Context) (int64, error) { return s.rocketmq.TopicMessages(ctx, own) }
		}
		return account(ctx, s, func() (measured, []*os.ProcessState, error) {
			return countedRun(ctx, func(ctx context.Context) *exec.Cmd { return command(ctx, own) }, count, part)
		})
	}}
}
