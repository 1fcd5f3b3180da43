//go:build unix

// Command bench-verify measures the cost of --verify: perfmq with it and without it in turn (one, other, other, one,
// ...), as fast as it goes, messages of 1 KiB, on real brokers, on the embedded one and on the in-process driver.
//
//	go run ./internal/brokertest/cmd/bench-verify -perfmq bin/perfmq -only artemis-stomp
//
// Two runs one after the other are a pair. It is the ratios of the pairs that count, and how far they lie apart: a
// machine that grows slower or faster between pairs changes both runs of each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type bench struct {
	perfmq, dir              string
	duration, warmup, pairs  int
	pending, size, consumers int
	pin                      bool
	runs                     int
}

// outcome is one run and its cost at the broker.
type outcome struct {
	peerbench.Outcome
	broker time.Duration // processor time; 0 without a broker of its own
}

func (o outcome) brokerPerMessage() float64 { return o.broker.Seconds() * 1e6 / o.Messages }

// perMessage is the microseconds of tester and broker, which a busy machine changes less than the throughput.
func (o outcome) perMessage() float64 { return o.CPUPerMessage() + o.brokerPerMessage() }

// column is the runs without --verify, or those with it.
type column = peerbench.Column[outcome]

func run(ctx context.Context) error {
	var b bench
	var names []string
	for _, t := range targets() {
		names = append(names, t.name)
	}
	only := flag.String("only", strings.Join(names, ","), "what to measure on")
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.IntVar(&b.duration, "duration", 8, "seconds per run, warm-up included")
	flag.IntVar(&b.warmup, "warmup", 2, "seconds of warm-up per run, not measured")
	flag.IntVar(&b.pairs, "pairs", 5, "pairs of runs for each")
	flag.IntVar(&b.pending, "max-pending", 100, "messages in flight")
	flag.IntVar(&b.size, "message-size", 1024, "bytes")
	flag.IntVar(&b.consumers, "consumers", 1, "consumers of the queue")
	flag.BoolVar(&b.pin, "pin", false, "broker and perfmq on processors of their own, by taskset: steadier on a small "+
		"machine")
	flag.Parse()
	if flag.NArg() > 0 || b.pairs < 1 || b.warmup < 0 || b.duration <= b.warmup {
		return fmt.Errorf("no arguments; -pairs 1 or more; -duration above -warmup, which is 0 or more")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if b.perfmq, err = filepath.Abs(b.perfmq); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench-verify-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a scratch folder

	fmt.Printf("messages of %d bytes, not persistent, 1 producer with %d in flight, consumers: %d; %d pairs of runs of "+
		"%d s (%d s warm-up), medians\n",
		b.size, b.pending, b.consumers, b.pairs, b.duration, b.warmup)
	for _, t := range chosen {
		if err := b.measure(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// choose returns the targets of a comma-separated list.
func choose(list string) (chosen []target, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets(), func(t target) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no such target; --help lists them", name)
		}
		chosen = append(chosen, targets()[i])
	}
	return chosen, nil
}

// measure starts a broker, runs all pairs on it, and prints their results.
func (b *bench) measure(ctx context.Context, t target) error {
	s, err := t.start(ctx, b)
	if err != nil {
		return err
	}
	defer s.end()
	if b.pin && s.pid != 0 {
		if out, err := exec.CommandContext(ctx, "taskset", "-apc", processors(true),
			strconv.Itoa(s.pid)).CombinedOutput(); err != nil {
			return fmt.Errorf("taskset: %w\n%s", err, out)
		}
	}
	columns := []column{{Name: "with --verify"}, {Name: "without"}}
	for _, verify := range []bool{true, false} { // Java compiles as it goes
		if _, err := b.once(ctx, t, s, verify); err != nil {
			return err
		}
	}
	for i := range 2 * b.pairs {
		which := (i + i/2) % 2
		o, err := b.once(ctx, t, s, which == 0)
		if err != nil {
			return err
		}
		columns[which].Runs = append(columns[which].Runs, o)
	}
	table := peerbench.Table[outcome]{W: os.Stdout, Columns: columns}
	table.Head(t.name)
	rate := func(o outcome) float64 { return o.Received }
	table.Row("received msg/s", rate)
	table.Row("tester cpu us/message", func(o outcome) float64 { return o.CPUPerMessage() })
	if s.pid != 0 {
		table.Row("broker cpu us/message", outcome.brokerPerMessage)
		table.Row("both cpu us/message", outcome.perMessage)
	}
	table.Row("send ack p50 us", func(o outcome) float64 { return o.Send.P50 })
	table.Row("transfer p50 us", func(o outcome) float64 { return o.Transfer.P50 })
	fmt.Println("  with / without, by pair:")
	fmt.Println("    throughput      " + summary(ratios(columns, rate)))
	fmt.Println("    cpu per message " + summary(ratios(columns, outcome.perMessage)))
	return nil
}

// processors returns the broker's half of them, or perfmq's, as taskset wants them named.
func processors(broker bool) string {
	n := runtime.NumCPU()
	if broker {
		return fmt.Sprintf("0-%d", max(n/2, 1)-1)
	}
	return fmt.Sprintf("%d-%d", min(n/2, n-1), n-1)
}

// ratios returns those of the pairs, the first column's by the second's, ascending.
func ratios(columns []column, value func(outcome) float64) []float64 {
	list := make([]float64, len(columns[0].Runs))
	for i := range list {
		list[i] = value(columns[0].Runs[i]) / value(columns[1].Runs[i])
	}
	slices.Sort(list)
	return list
}

// summary returns the ratios of the pairs and their median, in one line.
func summary(ratios []float64) string {
	text := make([]string, len(ratios))
	for i, r := range ratios {
		text[i] = strconv.FormatFloat(r, 'f', 3, 64)
	}
	median := peerbench.Median(ratios, func(r float64) float64 { return r })
	return fmt.Sprintf("median %.3f, from %s to %s (%s)",
		median, text[0], text[len(text)-1], strings.Join(text, " "))
}

// once runs perfmq to its end, with a queue of its own.
func (b *bench) once(ctx context.Context, t target, s started, verify bool) (outcome, error) {
	b.runs++
	file := filepath.Join(b.dir, "run.json")
	args := []string{
		t.protocol, "client", "--url", s.url, "--json", file, "--silent",
		"--duration", strconv.Itoa(b.duration), "--warmup", strconv.Itoa(b.warmup),
		"--max-pending", strconv.Itoa(b.pending), "--message-size", strconv.Itoa(b.size), "--consumers",
		strconv.Itoa(b.consumers),
	}
	if verify {
		args = append(args, "--verify")
	}
	args = append(args, fmt.Sprintf("queue://BENCH-%d", b.runs))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration+60)*time.Second)
	defer cancel()
	before, _ := peerbench.ProcessCPU(s.pid)
	binary := b.perfmq
	if b.pin && s.pid != 0 {
		binary, args = "taskset", append([]string{"-c", processors(false), b.perfmq}, args...)
	}
	cmd := peerbench.Perfmq(ctx, binary, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return outcome{}, fmt.Errorf("perfmq %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	after, known := peerbench.ProcessCPU(s.pid)
	if !known && s.pid != 0 {
		return outcome{}, fmt.Errorf("the broker has ended")
	}
	o, err := peerbench.ReadOutcome(file, cmd.ProcessState)
	return outcome{o, after - before}, err
}

// perfmqBroker starts perfmq broker with the one listener.
func (b *bench) perfmqBroker(ctx context.Context, protocol string) (started, error) {
	args := []string{"broker", "--control", "off"}
	for _, p := range []string{"amqp", "stomp", "rocketmq"} {
		where := "off"
		if p == protocol {
			where = "127.0.0.1:0"
		}
		args = append(args, "--listen-"+p, where)
	}
	cmd := exec.CommandContext(ctx, b.perfmq, args...) //nolint:gosec // the user names the binary
	return listening(cmd)
}
