//go:build unix

// Command bench-artemis runs perfmq and `artemis perf client --protocol AMQP` in turn on one real Artemis with the same
// settings, and prints the ratios of throughput, processor time per message, memory and, at an equal rate, latency.
//
//	go run ./internal/brokertest/cmd/bench-artemis -perfmq bin/perfmq -repeat 3
//
// Both tools run as whole processes: the operating system's account of a finished process gives its processor time
// and peak memory, start-up included. Rates are of the measured part, after the warm-up. After each run the
// totals are held against the broker's own counters; a difference is printed, not hidden.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/perfmq/perfmq/internal/brokertest"
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
	perfmq string
	repeat int
	peerbench.OnArtemis
}

func run(ctx context.Context) error {
	b := bench{OnArtemis: peerbench.OnArtemis{Notes: os.Stdout}}
	slow := flag.Int("slow-rate", 1000, "msg/s of the fixed-rate runs with max-pending 1")
	fast := flag.Int("fast-rate", 5000, "msg/s of the fixed-rate runs with max-pending 100")
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.IntVar(&b.Duration, "duration", 15, "seconds per run, warm-up included")
	flag.IntVar(&b.Warmup, "warmup", 5, "seconds of warm-up per run, not measured")
	flag.IntVar(&b.repeat, "repeat", 3, "runs of each tool per setting, in turn; medians are printed")
	flag.Parse()

	var err error
	if b.perfmq, err = filepath.Abs(b.perfmq); err != nil {
		return err
	}
	if b.Dir, err = os.MkdirTemp("", "bench-artemis-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.Dir) //nolint:errcheck // a scratch folder
	if b.Broker, err = brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G")); err != nil {
		return err
	}
	defer b.Broker.Close() //nolint:errcheck // it is ending anyway

	fmt.Printf("1024-byte messages, 1 producer, 1 consumer, 1 queue; %d runs of %d s each (%d s warm-up), medians\n",
		b.repeat, b.Duration, b.Warmup)
	for _, pending := range []int{1, 100} {
		rate := *slow
		if pending > 1 {
			rate = *fast
		}
		for _, persistent := range []bool{false, true} {
			for _, r := range []int{0, rate} {
				if err := b.compare(ctx, peerbench.Setting{Pending: pending, Persistent: persistent, Rate: r}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare runs both tools in turn with one setting and prints a block.
func (b *bench) compare(ctx context.Context, s peerbench.Setting) error {
	var ours, theirs []peerbench.Outcome
	for range b.repeat {
		o, err := b.Once(ctx, s, b.ours)
		if err != nil {
			return fmt.Errorf("%s: perfmq: %w", s, err)
		}
		t, err := b.Once(ctx, s, b.theirs)
		if err != nil {
			return fmt.Errorf("%s: artemis perf: %w", s, err)
		}
		ours, theirs = append(ours, o), append(theirs, t)
	}
	t := peerbench.Table[peerbench.Outcome]{W: os.Stdout, Columns: []peerbench.Column[peerbench.Outcome]{
		{Name: "perfmq", Runs: ours}, {Name: "artemis", Runs: theirs},
	}}
	t.Head(s.String())
	peerbench.OutcomeRows(t)
	if s.Rate > 0 {
		t.Row("send delay p50 us", func(o peerbench.Outcome) float64 { return o.Delay.P50 })
		t.Row("send delay p99 us", func(o peerbench.Outcome) float64 { return o.Delay.P99 })
	}
	return nil
}

// ours and theirs get the broker's AMQP port and the same arguments.
func (b *bench) ours(ctx context.Context, args []string) *exec.Cmd {
	return peerbench.Perfmq(ctx, b.perfmq, append([]string{"amqp", "client", "--url", b.Broker.AMQPURL()}, args...)...)
}

func (b *bench) theirs(ctx context.Context, args []string) *exec.Cmd {
	return b.Broker.PerfCommand(ctx, "client", append([]string{"--protocol", "AMQP"}, args...)...)
}
