//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

// stompAim is how much faster 100 receipts in flight on one connection are to be than one.
const stompAim = 4.0

// confirm makes CORE acknowledge sends without a reply each; without it max-pending above 1 has no effect.
const confirm = "?confirmationWindowSize=1048576"

// stomp compares perfmq over STOMP with artemis perf over AMQP and CORE.
func (b *bench) stomp(ctx context.Context) error {
	broker, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G"))
	if err != nil {
		return err
	}
	defer broker.Close() //nolint:errcheck // it is ending anyway
	on := peerbench.OnArtemis{Broker: broker, Dir: b.dir, Duration: b.duration, Warmup: b.warmup, Notes: os.Stdout}
	tools := []struct {
		name    string
		command peerbench.Command
	}{
		{"perfmq STOMP", func(ctx context.Context, args []string) *exec.Cmd {
			return peerbench.Perfmq(ctx, b.perfmq, append([]string{"stomp", "client", "--url", broker.STOMPURL()}, args...)...)
		}},
		{"artemis AMQP", func(ctx context.Context, args []string) *exec.Cmd {
			return broker.PerfCommand(ctx, "client", append([]string{"--protocol", "AMQP"}, args...)...)
		}},
		{"artemis CORE", func(ctx context.Context, args []string) *exec.Cmd {
			return broker.PerfCommand(ctx, "client", append([]string{"--url", broker.CoreURL() + confirm}, args...)...)
		}},
	}
	fmt.Printf("\n== Artemis: 1 producer, 1 consumer, 1 queue, a connection each; rates are the tools' own, sends held " +
		"against the broker's counter\n")
	one := map[bool]float64{}
	for _, pending := range []int{1, 100} {
		for _, persistent := range []bool{false, true} {
			s := peerbench.Setting{Pending: pending, Persistent: persistent}
			t := peerbench.Table[peerbench.Outcome]{W: os.Stdout}
			for _, tool := range tools {
				t.Columns = append(t.Columns, peerbench.Column[peerbench.Outcome]{Name: tool.name})
			}
			for range b.repeat {
				for i, tool := range tools {
					o, err := on.Once(ctx, s, tool.command)
					if err != nil {
						return fmt.Errorf("%s: %s: %w", s, tool.name, err)
					}
					t.Columns[i].Runs = append(t.Columns[i].Runs, o)
				}
			}
			t.Head(s.String())
			peerbench.OutcomeRows(t)
			rate := peerbench.Median(t.Columns[0].Runs, func(o peerbench.Outcome) float64 { return o.Completed })
			if pending == 1 {
				one[persistent] = rate
				continue
			}
			fmt.Printf("  perfmq STOMP, one sending connection: 100 receipts in flight / 1 = %s\n",
				verdict(rate/one[persistent], stompAim, true))
		}
	}
	return nil
}

// verdict says whether a ratio meets its aim.
func verdict(ratio, aim float64, atLeast bool) string {
	if math.IsNaN(ratio) {
		return "not known, without a run of the other tool"
	}
	sign, met := "at least", ratio >= aim
	if !atLeast {
		sign, met = "at most", ratio <= aim
	}
	word := "MISSED"
	if met {
		word = "met"
	}
	return fmt.Sprintf("%.2f (aim %s %g: %s)", ratio, sign, aim, word)
}
