//go:build unix

// Command broker starts a real message broker for benchmarks and manual checks. It prints lines that a shell can
// evaluate: export PERFMQ_URL=..., the other URLs as KEY=value, and at the end READY=1. The broker listens on the
// default ports of its kind where these are free, on others otherwise.
//
//	go run ./internal/brokertest/cmd/broker artemis
//
// It ends the broker on SIGINT or SIGTERM, when its stdin is a pipe that closes, or when its parent process is
// gone. With -detach it returns once the broker is ready, and the broker runs until -stop, for a day at most. Meanwhile
// -kill ends it as a crash would, and -restart starts it again with its ports and its data:
//
//	eval "$(go run ./internal/brokertest/cmd/broker artemis -detach)"
//	perfmq amqp client --reconnect --duration 60 &
//	go run ./internal/brokertest/cmd/broker artemis -kill
//	go run ./internal/brokertest/cmd/broker artemis -restart
//	go run ./internal/brokertest/cmd/broker artemis -stop
//
// With several brokers of a kind the HARNESS_PID of one follows: -kill 4711.
//
// The brokers are artemis, activemq (Classic), rabbitmq, rocketmq and qpid (Broker-J); older and newer versions of
// them are flags: artemis --2.19, activemq --5.16, rabbitmq --4, rocketmq --4.9. With rocketmq --proxy,
// PERFMQ_URL is that of RocketMQ 5's proxy for gRPC clients.
// KIND --help lists the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin *os.File, stdout io.Writer) error {
	if len(args) > 0 && strings.TrimLeft(args[0], "-") == stop { // of any kind
		return command(ctx, "", stop, args[1:], stdout)
	}
	set, err := parse(args)
	switch {
	case err != nil:
		return err
	case set.verb != "":
		return command(ctx, args[0], set.verb, set.pids, stdout)
	case set.detach:
		return detach(ctx, args, stdout)
	}
	// Before the start: a parent that ends meanwhile must be noticed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !set.outlive {
		go watchParent(ctx, cancel)
	}
	go watchStdin(stdin, cancel)

	b, err := set.launch(ctx)
	if err != nil {
		return err
	}
	var requests <-chan request
	if set.outlive {
		requests, err = listen(ctx, b.Dir())
	}
	if err == nil {
		err = show(stdout, b)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if set.lifetime > 0 {
		timer := time.AfterFunc(set.lifetime, cancel)
		defer timer.Stop()
	}
	last, died := serve(ctx, b, requests)
	tail := b.LogTail()
	err = errors.Join(b.Stop(), b.Close())
	if last != nil {
		last.answer(err)
	}
	if died {
		return fmt.Errorf("the broker ended by itself; the end of its log:\n%s", tail)
	}
	return err
}

// show prints the broker's URLs, login and folder as lines that a shell can evaluate. Empty values have no line.
func show(w io.Writer, b running) error {
	lines := b.urls()
	if len(lines) > 0 {
		export := [][2]string{{"export PERFMQ_URL", lines[0][1]}}
		if b.login {
			export = append(export,
				[2]string{"export PERFMQ_USER", value(lines, "BROKER_USER")},
				[2]string{"export PERFMQ_PASSWORD", value(lines, "BROKER_PASSWORD")})
		}
		lines = append(export, lines...)
	}
	lines = append(lines,
		[2]string{"BROKER_PID", strconv.Itoa(b.PID())},
		[2]string{"BROKER_DIR", b.Dir()},
		[2]string{"BROKER_LOG", b.LogFile()},
		[2]string{"READY", "1"})
	var text strings.Builder
	for _, l := range lines {
		if l[1] != "" {
			text.WriteString(l[0] + "=" + quote(l[1]) + "\n")
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print where the broker listens: %w", err)
	}
	return nil
}

// value returns the value of a key; empty without that key.
func value(lines [][2]string, key string) string {
	for _, l := range lines {
		if l[0] == key {
			return l[1]
		}
	}
	return ""
}

// quote puts single quotes around a text that a shell would not read as one word.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@,%="
	if strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// watchParent cancels when this process is handed to another parent: `go run`
// dies of SIGTERM without telling its child.
func watchParent(ctx context.Context, cancel func()) {
	parent := os.Getppid()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
	cancel()
}

// watchStdin cancels at the end of stdin if that is a pipe. The stdin of a background job of a shell is /dev/null,
// and its end means nothing.
func watchStdin(stdin *os.File, cancel func()) {
	info, err := stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	_, _ = io.Copy(io.Discard, stdin)
	cancel()
}
