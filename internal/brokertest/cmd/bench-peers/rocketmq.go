//go:build unix

package main

import (
	"context"
	_ "embed" // for AsyncProducer.java
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

// asyncProducer is a program with the Java client.
//
//go:embed AsyncProducer.java
var asyncProducer []byte

// javaClass is the package of RocketMQ's benchmark.
const javaClass = "org.apache.rocketmq.example.benchmark."

// queues is that of each topic. The benchmark's own default topic has 1024 and is slow.
const queues = 8

// Aims: at least its throughput, at most half its processor time per message.
const (
	rateAim = 1.0
	cpuAim  = 0.5
)

// onRocketMQ is a broker with the data of the runs on it.
type onRocketMQ struct {
	*bench
	broker *brokertest.RocketMQ
	runs   int
}

// contest is one block of the output.
type contest struct {
	title  string
	java   func(topic string) []string // class and arguments
	perfmq []string
}

func (b *bench) rocketmq(ctx context.Context) error {
	broker, err := brokertest.LaunchRocketMQ(ctx, brokertest.WithRocketMQHeap("1g"),
		// the default; the harness makes them smaller
		brokertest.WithRocketMQProperty("mappedFileSizeCommitLog", "1073741824"))
	if err != nil {
		return err
	}
	defer broker.Close() //nolint:errcheck // it is ending anyway
	r := &onRocketMQ{bench: b, broker: broker}
	fmt.Printf("\n== RocketMQ %s, topics with %d queues, against its Java benchmark (heap 512 MiB)\n"+
		"   rate: growth of the broker's counter between %d and %d s after the first message, the same for both tools\n"+
		"   cpu and memory: the whole process, start-up included; steady cpu: within the measured part\n"+
		"   own account: perfmq's completed msg/s after the warm-up; Java's last TPS (MPS) line, of 9 s, if it came to one\n",
		brokertest.RocketMQVersion, queues, b.warmup, b.duration)
	if err := r.consumers(ctx); err != nil { // first: filling the topic also warms the broker up
		return err
	}
	if err := broker.Compile(ctx, "AsyncProducer.java", asyncProducer); err != nil {
		return err
	}
	benchmark := func(class, topic string) []string {
		return []string{javaClass + class, "-n", broker.NameServer(), "-t", topic, "-s", "1024", "-ri", "1000"}
	}
	for _, c := range []contest{
		{
			title:  "producer: perfmq 64 in flight, Java 64 threads that send synchronously",
			java:   func(topic string) []string { return append(benchmark("Producer", topic), "-w", "64") },
			perfmq: []string{"-o", "send=async", "--max-pending", "64"},
		},
		{
			// Not its benchmark's own: with -y true that fills the client's queue of 10,000 sends, which then outlive
			// their time limit of 3 s on a small machine and fail all, and none of its arguments limits that.
			title: "producer, asynchronous: perfmq 1000 in flight, Java's client 1000 by its own flow control " +
				"(AsyncProducer.java)",
			java: func(topic string) []string {
				return []string{"AsyncProducer", r.broker.NameServer(), topic, "1024", "1000"}
			},
			perfmq: []string{"-o", "send=async", "--max-pending", "1000"},
		},
		{
			title:  "producer, batches of 16: perfmq 64 batches in flight, Java 64 threads",
			java:   func(topic string) []string { return append(benchmark("BatchProducer", topic), "-w", "64", "-b", "16") },
			perfmq: []string{"-o", "send=batch", "-o", "batch-size=16", "--max-pending", "1024"},
		},
	} {
		err := r.compare(ctx, c.title,
			func() (peerbench.Counted, error) { return r.ours(ctx, c) },
			func() (peerbench.Counted, error) { return r.theirs(ctx, c) })
		if err != nil {
			return err
		}
	}
	return nil
}

// compare runs both tools in turn, the one and the other first, and prints a block.
func (r *onRocketMQ) compare(ctx context.Context, title string, ours, theirs func() (peerbench.Counted, error)) error {
	t := peerbench.Table[peerbench.Counted]{W: os.Stdout, Columns: []peerbench.Column[peerbench.Counted]{
		{Name: "perfmq"}, {Name: "Java"},
	}}
	tools := []func() (peerbench.Counted, error){ours, theirs}
	for i := range 2 * r.repeat {
		which := (i + i/2) % 2
		c, err := tools[which]()
		if err != nil && (which == 0 || ctx.Err() != nil) {
			return fmt.Errorf("%s: %s: %w", title, t.Columns[which].Name, err)
		}
		if err != nil { // the other tool's failures are a result, too
			fmt.Printf("\n  note: %s: a run of Java failed: %v\n", title, err)
			continue
		}
		t.Columns[which].Runs = append(t.Columns[which].Runs, c)
	}
	t.Head(title)
	rate := func(c peerbench.Counted) float64 { return c.Rate }
	t.Row("msg/s", rate)
	t.Row("own account msg/s", func(c peerbench.Counted) float64 { return c.Own })
	t.Row("cpu us/message", peerbench.Counted.CPUPerMessage)
	t.Row("steady cpu us/message", func(c peerbench.Counted) float64 { return c.Steady })
	t.Row("peak memory MiB", peerbench.Counted.MiB)
	t.Row("messages in all", func(c peerbench.Counted) float64 { return c.Messages })
	ratio := func(value func(peerbench.Counted) float64) float64 {
		return peerbench.Median(t.Columns[0].Runs, value) / peerbench.Median(t.Columns[1].Runs, value)
	}
	fmt.Printf("  throughput %s; cpu per message %s\n",
		verdict(ratio(rate), rateAim, true), verdict(ratio(peerbench.Counted.CPUPerMessage), cpuAim, false))
	return nil
}

// window is the measured part of a producer's run.
func (r *onRocketMQ) window() peerbench.Window {
	return peerbench.Window{After: time.Duration(r.warmup) * time.Second, Until: time.Duration(r.duration) * time.Second}
}

// name returns one that is new, of a topic or a group.
func (r *onRocketMQ) name(kind string) string {
	r.runs++
	return fmt.Sprintf("bench-%s-%d", kind, r.runs)
}

// withTopic gives f a fresh topic and the broker's counter of its messages, and a time limit.
func (r *onRocketMQ) withTopic(
	ctx context.Context, f func(ctx context.Context, topic string, count peerbench.Counter) (peerbench.Counted, error),
) (peerbench.Counted, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.duration+60)*time.Second)
	defer cancel()
	topic := r.name("topic")
	if err := r.broker.CreateTopic(ctx, topic, queues); err != nil {
		return peerbench.Counted{}, err
	}
	c, err := f(ctx, topic, func(ctx context.Context) (int64, error) { return r.broker.TopicMessages(ctx, topic) })
	if err != nil {
		return c, err
	}
	return c, r.broker.DeleteTopic(ctx, topic)
}

// ours runs perfmq as a producer. It goes on for a second after the measured part and ends by itself.
func (r *onRocketMQ) ours(ctx context.Context, c contest) (peerbench.Counted, error) {
	return r.withTopic(ctx, func(ctx context.Context, topic string, count peerbench.Counter) (peerbench.Counted, error) {
		file := filepath.Join(r.dir, topic+".json")
		command := func(ctx context.Context) *exec.Cmd {
			args := append([]string{
				"rocketmq", "producer", "--url", r.broker.URL(), "--silent", "--json", file,
				"--duration", strconv.Itoa(r.duration + 1), "--warmup", strconv.Itoa(r.warmup),
			}, c.perfmq...)
			return peerbench.Perfmq(ctx, r.perfmq, append(args, "queue://"+topic)...)
		}
		got, err := peerbench.RunCounted(ctx, command, count, r.window(), false)
		if err != nil {
			return got, err
		}
		o, err := peerbench.ReadOutcome(file, got.State)
		if err != nil {
			return got, err
		}
		got.Own = o.Completed
		if o.Messages != got.Messages {
			fmt.Printf("  note: perfmq counted %.0f completed, the broker %.0f\n", o.Messages, got.Messages)
		}
		return got, nil
	})
}

// theirs runs a Java producer, which is stopped at the end of the measured part.
func (r *onRocketMQ) theirs(ctx context.Context, c contest) (peerbench.Counted, error) {
	return r.withTopic(ctx, func(ctx context.Context, topic string, count peerbench.Counter) (peerbench.Counted, error) {
		command := func(ctx context.Context) *exec.Cmd {
			java := c.java(topic)
			return r.broker.Command(ctx, java[0], java[1:]...)
		}
		got, err := peerbench.RunCounted(ctx, command, count, r.window(), true)
		got.Own = javaAccount(got.Output)
		return got, err
	})
}

// consumers lets both tools consume one backlog, each run in a group of its own.
func (r *onRocketMQ) consumers(ctx context.Context) error {
	topic := r.name("backlog")
	if err := r.broker.CreateTopic(ctx, topic, queues); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(r.backlog/2000+60)*time.Second)
	defer cancel()
	fill := peerbench.Perfmq(limited, r.perfmq, "rocketmq", "producer", "--url", r.broker.URL(), "--silent",
		"--message-count", strconv.Itoa(r.backlog), "-o", "send=batch", "--max-pending", "1024", "queue://"+topic)
	if out, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("fill a topic for the consumers: %w\n%s", err, out)
	}
	if n, err := r.broker.TopicMessages(ctx, topic); err != nil || n != int64(r.backlog) {
		return fmt.Errorf("fill a topic for the consumers: the broker has %d messages of %d: %w", n, r.backlog, err)
	}
	title := fmt.Sprintf("consumer of a backlog of %d: msg/s from 20%% to 95%% of it as handed out by the broker",
		r.backlog)
	err := r.compare(ctx, title,
		func() (peerbench.Counted, error) {
			group := r.name("group")
			return r.consume(ctx, false, func(ctx context.Context) *exec.Cmd {
				return peerbench.Perfmq(ctx, r.perfmq, "rocketmq", "consumer", "--url", r.broker.URL(), "--silent",
					"--message-count", strconv.Itoa(r.backlog), "--duration", strconv.Itoa(r.duration+60),
					"-o", "group="+group, "queue://"+topic)
			})
		},
		func() (peerbench.Counted, error) {
			group := r.name("group")
			return r.consume(ctx, true, func(ctx context.Context) *exec.Cmd {
				return r.broker.Command(ctx, javaClass+"Consumer",
					"-n", r.broker.NameServer(), "-t", topic, "-g", group, "-p", "false", "-ri", "1000")
			})
		})
	if err != nil {
		return err
	}
	return r.broker.DeleteTopic(ctx, topic)
}

// consume measures a consumer. The broker is a little ahead of it: a client fetches messages before it handles them.
func (r *onRocketMQ) consume(
	ctx context.Context, stop bool, command func(context.Context) *exec.Cmd,
) (peerbench.Counted, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.duration+90)*time.Second)
	defer cancel()
	n := int64(r.backlog)
	w := peerbench.Window{AfterCount: n / 5, UntilCount: n / 20 * 19, Until: time.Duration(r.duration+60) * time.Second}
	got, err := peerbench.RunCounted(ctx, command, r.broker.Delivered, w, stop)
	if stop {
		got.Own = javaAccount(got.Output)
	}
	return got, err
}

// javaAccount returns the rate of the last line of RocketMQ's benchmark: messages, where it has both these and
// requests. It is not a number without such a line. Failures are printed.
func javaAccount(output string) float64 {
	rates := regexp.MustCompile(`(?:Send MPS|Send TPS|Consume TPS|TPS): *(\d+)`)
	failures := regexp.MustCompile(`Fail(?:ed)?: *[1-9]\d*`)
	last := math.NaN()
	var failed string
	for line := range strings.Lines(output) {
		found := rates.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			continue
		}
		last, _ = strconv.ParseFloat(found[len(found)-1][1], 64) // MPS comes after TPS
		if failures.MatchString(line) {
			failed = strings.TrimSpace(line)
		}
	}
	if failed != "" {
		fmt.Printf("  note: Java reported failures: %s\n", failed)
	}
	return last
}
