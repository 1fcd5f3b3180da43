//go:build unix

// Command broker starts a real message broker for benchmarks and manual checks,
// prints where it listens as KEY=value lines, the last of them READY=1, and ends
// it on SIGINT or SIGTERM, when the pipe that is its stdin closes, or when the
// process that started it is gone.
//
//	go run ./internal/brokertest/cmd/broker artemis --amqp-port 5672
//
// The brokers are artemis, activemq (Classic), rabbitmq, rocketmq and qpid (Broker-J); older and newer versions of them are
// flags: artemis --2.19, activemq --5.16, rabbitmq --4, rocketmq --4.9.
//
// Other settings of the broker are -set KEY=VALUE, those of its JVM -java-opts; KIND --help lists the keys:
//
//	go run ./internal/brokertest/cmd/broker activemq -set storeUsage=64mb -set producerFlowControl=false -set jolokia=true
//	go run ./internal/brokertest/cmd/broker artemis -set max-size-bytes=100M -set address-full-policy=FAIL -java-opts "-Xmx2G"
//	go run ./internal/brokertest/cmd/broker rocketmq -set flushDiskType=SYNC_FLUSH
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
	set, err := parse(args)
	if err != nil {
		return err
	}
	// Before the start: a parent that goes meanwhile must be noticed.
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
	if err := show(stdout, b); err != nil {
		return errors.Join(fmt.Errorf("print where the broker listens: %w", err), b.Close())
	}
	if set.lifetime > 0 {
		timer := time.AfterFunc(set.lifetime, cancel)
		defer timer.Stop()
	}
	select {
	case <-ctx.Done():
	case <-b.Done():
	}
	died := !b.Alive()
	tail := b.LogTail()
	err = errors.Join(b.Stop(), b.Close())
	if died {
		return fmt.Errorf("the broker ended by itself; the end of its log:\n%s", tail)
	}
	return err
}

// show prints what a script or a person needs, in a form that a shell can read
// line by line. What there is not, has no line.
func show(w io.Writer, b running) error {
	lines := append(b.urls(),
		[2]string{"BROKER_PID", strconv.Itoa(b.PID())},
		[2]string{"BROKER_DIR", b.Dir()},
		[2]string{"BROKER_LOG", b.LogFile()},
		[2]string{"READY", "1"})
	var text strings.Builder
	for _, l := range lines {
		if l[1] != "" {
			text.WriteString(l[0] + "=" + l[1] + "\n")
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
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

// watchStdin cancels at the end of stdin if that is a pipe. A background job of
// a shell has /dev/null, whose end means nothing.
func watchStdin(stdin *os.File, cancel func()) {
	info, err := stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	_, _ = io.Copy(io.Discard, stdin)
	cancel()
}
