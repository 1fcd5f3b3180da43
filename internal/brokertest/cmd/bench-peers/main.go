//go:build unix

// Command bench-peers runs perfmq and other load tools in turn on one real broker each, and prints the ratios of
// throughput, processor time per message and memory:
//
//   - on RocketMQ, against RocketMQ's own Java benchmark: 64 sends in flight, batches of 16, consumer; and against
//     its Java client sending asynchronously;
//   - on Artemis, perfmq over AMQP against a C program on Qpid Proton (proton/arrow.c) and against itself with
//     --client library;
//   - on the embedded broker, perfmq with 1 to 5000 connections a side at an equal rate;
//   - on Artemis, perfmq over STOMP against `artemis perf` over AMQP and CORE, and perfmq's rate with 100 receipts in
//     flight against that with one.
//
// For example
//
//	go run ./internal/brokertest/cmd/bench-peers -perfmq bin/perfmq -repeat 3 -only rocketmq
//
// RocketMQ's benchmark reports a rate only after ten seconds and most of it never ends. So both tools' rates there
// are the growth of the broker's own counter within the measured part, and both are measured alike; the tool's own
// figure stands beside it. Each run is bounded.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
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
	perfmq           string
	before           string // an older build, beside the arrow; or empty
	duration, warmup int    // seconds
	repeat           int
	backlog          int
	dir              string
	bareRuns         int // so far, of the bare client
}

func run(ctx context.Context) error {
	var b bench
	only := flag.String("only", "", "amqp, bare (AMQP at a fixed rate, or one by one), scale, rocketmq or stomp; "+
		"empty: all")
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.StringVar(&b.before, "before", "", "an older build of our binary, compared in the runs with the arrow")
	flag.IntVar(&b.duration, "duration", 15, "seconds per run, warm-up included; from 12 on RocketMQ's benchmark "+
		"reports a rate itself")
	flag.IntVar(&b.warmup, "warmup", 0, "seconds of warm-up per run, not measured (0: a third of the duration)")
	flag.IntVar(&b.repeat, "repeat", 3, "runs of each tool per setting, in turn; medians are printed")
	flag.IntVar(&b.backlog, "backlog", 0, "messages for the consumers of RocketMQ (0: 40000 per second of the duration)")
	flag.Parse()
	if b.warmup == 0 {
		b.warmup = max(1, b.duration/3)
	}
	if b.backlog == 0 {
		b.backlog = 40000 * b.duration
	}
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case !slices.Contains([]string{"", "amqp", "bare", "scale", "rocketmq", "stomp"}, *only):
		return fmt.Errorf("-only %s: amqp, bare, scale, rocketmq or stomp", *only)
	case b.duration <= b.warmup || b.warmup < 0 || b.repeat < 1 || b.backlog < 1000:
		return fmt.Errorf("-duration must exceed -warmup, -repeat be 1 or more, -backlog 1000 or more")
	}
	var err error
	if b.perfmq, err = filepath.Abs(b.perfmq); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench-peers-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a scratch folder

	fmt.Printf("1024-byte messages; %d runs of %d s each (%d s warm-up), in turn, medians\n", b.repeat, b.duration,
		b.warmup)
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"amqp", b.amqp}, {"bare", b.bare}, {"scale", b.scale}, {"rocketmq", b.rocketmq}, {"stomp", b.stomp}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	return nil
}
