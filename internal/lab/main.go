//go:build unix

// Command lab runs perfmq on real brokers, and writes the pages of docs/lab.
//
//	go run ./internal/lab failures -out docs/lab/failures.md
//	go run ./internal/lab failures -only '^artemis/kill$'
//
// Everything listens on loopback, and is stopped in any case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// command is a command of the lab.
type command struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"failures", "brokers fail under load; judge what perfmq reports", failuresCommand},
		{"starts", "brokers start with up to 2,000,000 stored messages", startsCommand},
		{"bench", "perfmq and its peers in turn, on real brokers", benchCommand},
		{"acceptance", "the shipped scenarios at full size, on real brokers", acceptanceCommand},
		{"features", "the table of features from the results of the conformance suite", featuresCommand},
		{"soak", "one load for an hour on a broker that is killed and stopped", soakCommand},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var usage strings.Builder
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:])
		}
		fmt.Fprintf(&usage, "\n  %-10s %s", c.name, c.help)
	}
	return fmt.Errorf("usage: lab COMMAND [FLAG]...%s", usage.String())
}
