//go:build unix

// Command bench-artemis runs perfmq and `artemis perf client --protocol AMQP` in turn on one real Artemis with the same
// settings, and prints the ratios of throughput, processor time per message, memory and, at an equal rate, latency.
//
//	go run ./internal/brokertest/cmd/bench-artemis -perfmq bin/perfmq -repeat 3
//
// Both tools run as whole processes: the operating system's account of a finished process gives its processor time and
// peak memory, start-up included. Rates are those of the measured part, after the warm-up. After each run the totals are
// held against the broker's own counters; a difference is printed, not hidden.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
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
	duration, warmup int
	repeat           int
	broker           *brokertest.Artemis
	dir              string
	runs             int
}

// setting is one row of the table.
type setting struct {
	pending    int
	persistent bool
	rate       int // 0: as fast as possible
}

func (s setting) String() string {
	mode, load := "non-persistent", "all-out"
	if s.persistent {
		mode = "persistent"
	}
	if s.rate > 0 {
		load = strconv.Itoa(s.rate) + " msg/s"
	}
	return fmt.Sprintf("max-pending %d, %s, %s", s.pending, mode, load)
}

func run(ctx context.Context) error {
	var b bench
	slow := flag.Int("slow-rate", 1000, "msg/s of the fixed-rate runs with max-pending 1")
	fast := flag.Int("fast-rate", 5000, "msg/s of the fixed-rate runs with max-pending 100")
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.IntVar(&b.duration, "duration", 15, "seconds per run, warm-up included")
	flag.IntVar(&b.warmup, "warmup", 5, "seconds of warm-up per run, not measured")
	flag.IntVar(&b.repeat, "repeat", 3, "runs of each tool per setting, in turn; medians are printed")
	flag.Parse()

	var err error
	if b.perfmq, err = filepath.Abs(b.perfmq); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench-artemis-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a scratch folder
	if b.broker, err = brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G")); err != nil {
		return err
	}
	defer b.broker.Close() //nolint:errcheck // it is ending anyway

	fmt.Printf("1024-byte messages, 1 producer, 1 consumer, 1 queue; %d runs of %d s each (%d s warm-up), medians\n",
		b.repeat, b.duration, b.warmup)
	for _, pending := range []int{1, 100} {
		rate := *slow
		if pending > 1 {
			rate = *fast
		}
		for _, persistent := range []bool{false, true} {
			for _, r := range []int{0, rate} {
				if err := b.compare(ctx, setting{pending, persistent, r}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare runs both tools in turn with one setting and prints a block.
func (b *bench) compare(ctx context.Context, s setting) error {
	var ours, theirs []outcome
	for range b.repeat {
		o, err := b.once(ctx, s, true)
		if err != nil {
			return fmt.Errorf("%s: perfmq: %w", s, err)
		}
		t, err := b.once(ctx, s, false)
		if err != nil {
			return fmt.Errorf("%s: artemis perf: %w", s, err)
		}
		ours, theirs = append(ours, o), append(theirs, t)
	}
	fmt.Printf("\n%s\n  %-26s %12s %12s %8s\n", s, "", "perfmq", "artemis", "ratio")
	row := func(name string, value func(outcome) float64) {
		o, t := median(ours, value), median(theirs, value)
		fmt.Printf("  %-26s %12.1f %12.1f %8.2f\n", name, o, t, o/t)
	}
	row("completed msg/s", func(o outcome) float64 { return o.completed })
	row("received msg/s", func(o outcome) float64 { return o.received })
	row("cpu us/message", func(o outcome) float64 { return o.cpu.Seconds() * 1e6 / o.messages })
	row("peak memory MiB", func(o outcome) float64 { return o.memory / (1 << 20) })
	row("send ack p50 us", func(o outcome) float64 { return o.send.P50 })
	row("send ack p99 us", func(o outcome) float64 { return o.send.P99 })
	row("transfer p50 us", func(o outcome) float64 { return o.transfer.P50 })
	row("transfer p99 us", func(o outcome) float64 { return o.transfer.P99 })
	if s.rate > 0 {
		row("send delay p50 us", func(o outcome) float64 { return o.delay.P50 })
		row("send delay p99 us", func(o outcome) float64 { return o.delay.P99 })
	}
	return nil
}

func (b *bench) once(ctx context.Context, s setting, ours bool) (outcome, error) {
	b.runs++
	queue := fmt.Sprintf("BENCH.%d", b.runs)
	file := filepath.Join(b.dir, queue+".json")
	args := []string{
		"--duration", strconv.Itoa(b.duration), "--warmup", strconv.Itoa(b.warmup),
		"--max-pending", strconv.Itoa(s.pending), "--json", file, "--silent",
	}
	if s.persistent {
		args = append(args, "--persistent")
	}
	if s.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(s.rate))
	}
	args = append(args, "queue://"+queue)

	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.duration+60)*time.Second)
	defer cancel()
	cmd := b.command(ctx, ours, args)
	if out, err := cmd.CombinedOutput(); err != nil {
		return outcome{}, fmt.Errorf("%w\n%s", err, out)
	}
	o, err := readOutcome(file, cmd.ProcessState)
	if err != nil {
		return outcome{}, err
	}
	q, err := b.broker.Queue(ctx, queue)
	if err == nil && float64(q.MessagesAdded) != o.sent {
		fmt.Printf("  note: %s counted %.0f sent, the broker %d\n", queue, o.sent, q.MessagesAdded)
	}
	_ = b.broker.DeleteQueue(ctx, queue) // auto-deleted already, or in nobody's way
	return o, nil
}

func median(list []outcome, value func(outcome) float64) float64 {
	values := make([]float64, len(list))
	for i, o := range list {
		values[i] = value(o)
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
