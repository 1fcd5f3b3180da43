//go:build unix

// Command bench-broker puts the same load on the embedded broker, as a process of its own, and on a real Artemis, in
// turn, and prints the ratios of throughput and of the processor time that the brokers use per message.
//
//	go run ./internal/brokertest/cmd/bench-broker -perfmq bin/perfmq -repeat 3
//
// The load is perfmq's. On one machine its own work bounds the throughput as soon as the broker is the faster one, so it is
// the processor time per message that says how fast a broker is.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
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
}

// target is a broker under load.
type target struct {
	name string
	pid  int
	urls map[string]string // by protocol
}

// outcome is one run and what the broker did for it.
type outcome struct {
	peerbench.Outcome
	broker time.Duration // processor time
}

func (o outcome) brokerPerMessage() float64 { return o.broker.Seconds() * 1e6 / o.Messages }

func run(ctx context.Context) error {
	var b bench
	flag.StringVar(&b.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.IntVar(&b.duration, "duration", 8, "seconds per run; the first two are warm-up")
	flag.IntVar(&b.repeat, "repeat", 3, "runs on each broker per setting, in turn; medians are printed")
	flag.Parse()
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
	theirs := target{"Artemis", a.PID(), map[string]string{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()}}
	ours, end, err := b.embedded(ctx)
	if err != nil {
		return err
	}
	defer end()

	fmt.Printf("1024-byte messages, not persistent, 1 producer, 1 consumer, 1 queue; %d runs of %d s each, medians\n", b.repeat, b.duration)
	for _, protocol := range []string{"amqp", "stomp"} {
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
	cmd := exec.CommandContext(ctx, b.perfmq, "broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0",
		"--listen-rocketmq", "off", "--control", "off")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, nil, err
	}
	if err := cmd.Start(); err != nil {
		return t, nil, err
	}
	t = target{"embedded", cmd.Process.Pid, map[string]string{}}
	lines := bufio.NewScanner(out)
	for len(t.urls) < 2 && lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 2 {
			t.urls[f[0]] = f[1]
		}
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // its status does not matter here
	}
	if len(t.urls) < 2 {
		end()
		return t, nil, fmt.Errorf("perfmq broker did not say where it listens")
	}
	return t, end, nil
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
		"--duration", fmt.Sprint(b.duration), "--warmup", "2", "queue://BENCH",
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
