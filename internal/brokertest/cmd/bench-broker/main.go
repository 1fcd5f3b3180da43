//go:build unix

// Command bench-broker puts the same load on the embedded broker, as a process of its own, and on a real Artemis, in
// turn, and prints the medians and their ratios.
//
//	go run ./internal/brokertest/cmd/bench-broker -perfmq bin/perfmq -repeat 3
//
// # Loads
//
// "raw client" is package rawamqp, in this process, which costs a tenth of a full client: the run measures the broker.
// "1 in flight" is a message at a time: its rate is that of a broker that answers at once.
//
// "amqp" and "stomp" are perfmq, as its users run it. On one machine its own work bounds the throughput as soon as the
// broker is faster, so there the processor time per message shows the speed of a broker.
//
// All messages have bodies of 1024 bytes, are not persistent, and are confirmed and accepted one by one or in ranges,
// as the client goes: none is settled in advance. There is one producer, one consumer, and a queue per run (one for
// all runs of perfmq).
//
// # Rows
//
//	received msg/s            messages that the consumer received, after the warm-up of 2 s
//	broker cpu us/message     processor time of the broker's process, Java's compiler and collector included
//	client cpu us/message     processor time of the raw client, sender and receiver
//	tester cpu us/message     processor time of perfmq
//	processors, broker        how many of the machine's processors the broker kept busy: if it had all that the
//	                          client left, the limit was the machine's, else one of its own
//	send ack, transfer        latencies, as perfmq reports them
//
// After each run of the raw client the broker's own counters must equal the client's, else the command fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

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
	perfmq, dir      string
	duration, repeat int
	runs             int // of the raw client so far
}

// warmup is the part of each run that is not measured.
const warmup = 2 * time.Second

// target is a broker under load.
type target struct {
	name  string
	pid   int
	urls  map[string]string // by protocol
	count counter
}

// outcome is one run and its cost at the broker.
type outcome struct {
	peerbench.Outcome
	broker time.Duration // processor time
}

func (o outcome) brokerPerMessage() float64 { return o.broker.Seconds() * 1e6 / o.Messages }

func run(ctx context.Context) error {
	var b bench
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.IntVar(&b.duration, "duration", 8, "seconds per run, the first two of which are warm-up; 4 or more")
	flag.IntVar(&b.repeat, "repeat", 3, "runs on each broker per setting, in turn; medians are printed")
	only := flag.String("only", "", "raw, amqp or stomp; empty: all")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *only != "" && *only != "raw" && *only != "amqp" && *only != "stomp":
		return fmt.Errorf("-only %s: raw, amqp or stomp", *only)
	case b.duration < 4 || b.repeat < 1:
		return fmt.Errorf("-duration must be 4 or more, -repeat 1 or more")
	}
	var err error
	if b.perfmq, err = filepath.Abs(b.perfmq); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench-broker-*"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // a scratch folder

	a, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G"))
	if err != nil {
		return err
	}
	defer a.Close() //nolint:errcheck // it is ending anyway
	theirs := target{"Artemis", a.PID(), map[string]string{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()}, countArtemis(a)}
	ours, end, err := b.embedded(ctx)
	if err != nil {
		return err
	}
	defer end()

	fmt.Printf("1024-byte messages, not persistent, 1 producer, 1 consumer, 1 queue; %d runs of %d s each, medians\n",
		b.repeat, b.duration)
	if *only == "" || *only == "raw" {
		for _, pending := range []int{1000, 1} {
			if err := b.raw(ctx, pending, ours, theirs); err != nil {
				return err
			}
		}
	}
	for _, protocol := range []string{"amqp", "stomp"} {
		if *only != "" && *only != protocol {
			continue
		}
		for _, load := range [][]string{{"--max-pending", "1000"}, {"--max-pending", "100", "--rate", "10000"}} {
			if err := b.compare(ctx, protocol, load, ours, theirs); err != nil {
				return err
			}
		}
	}
	return nil
}

// embedded starts perfmq broker.
func (b *bench) embedded(ctx context.Context) (t target, end func(), err error) {
	e, err := peerbench.StartEmbedded(ctx, b.perfmq)
	if err != nil {
		return t, nil, err
	}
	return target{name: "embedded", pid: e.PID, urls: e.URLs, count: countEmbedded(e.URLs["control"])}, e.Close, nil
}

func (b *bench) compare(ctx context.Context, protocol string, load []string, targets ...target) error {
	columns := make([]peerbench.Column[outcome], len(targets))
	for i, t := range targets {
		columns[i].Name = t.name
		if _, err := b.once(ctx, protocol, load, t); err != nil { // Java compiles as it goes
			return fmt.Errorf("%s on %s: %w", protocol, t.name, err)
		}
	}
	for range b.repeat {
		for i, t := range targets {
			o, err := b.once(ctx, protocol, load, t)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", protocol, t.name, err)
			}
			columns[i].Runs = append(columns[i].Runs, o)
		}
	}
	t := peerbench.Table[outcome]{W: os.Stdout, Columns: columns}
	t.Head(protocol + " " + strings.Join(load, " "))
	t.Row("received msg/s", func(o outcome) float64 { return o.Received })
	t.Row("broker cpu us/message", outcome.brokerPerMessage)
	t.Row("tester cpu us/message", func(o outcome) float64 { return o.CPUPerMessage() })
	t.Row("send ack p99 us", func(o outcome) float64 { return o.Send.P99 })
	t.Row("transfer p99 us", func(o outcome) float64 { return o.Transfer.P99 })
	return nil
}

func (b *bench) once(ctx context.Context, protocol string, load []string, t target) (outcome, error) {
	file := filepath.Join(b.dir, "run.json")
	args := append([]string{
		protocol, "client", "--url", t.urls[protocol], "--json", file,
		"--duration", fmt.Sprint(b.duration), "--warmup", fmt.Sprint(warmup.Seconds()), "queue://BENCH",
	}, load...)
	before, _ := peerbench.ProcessCPU(t.pid)
	cmd := peerbench.Perfmq(ctx, b.perfmq, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return outcome{}, fmt.Errorf("%w\n%s", err, out)
	}
	after, known := peerbench.ProcessCPU(t.pid)
	if !known {
		return outcome{}, fmt.Errorf("the broker has ended")
	}
	o, err := peerbench.ReadOutcome(file, cmd.ProcessState)
	return outcome{o, after - before}, err
}
