//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// command returns one of the tools. Both get the broker's AMQP port and the same arguments.
func (b *bench) command(ctx context.Context, ours bool, args []string) *exec.Cmd {
	if !ours {
		return b.broker.PerfCommand(ctx, "client", append([]string{"--protocol", "AMQP"}, args...)...)
	}
	full := append([]string{"amqp", "client", "--url", b.broker.AMQPURL()}, args...)
	cmd := exec.CommandContext(ctx, b.perfmq, full...) //nolint:gosec // the user names the binary
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// outcome is what one run of a tool came to.
type outcome struct {
	completed, received   float64 // msg/s after the warm-up
	sent, messages        float64 // sent; completed and received together, halved
	send, transfer, delay latency
	cpu                   time.Duration
	memory                float64 // bytes
}

type latency struct {
	P50   float64 `json:"50"`
	P99   float64 `json:"99"`
	Count float64 `json:"count"`
}

// record is an element of the JSON file of either tool.
type record struct {
	SampleType          string
	Warmup              bool
	Phase               string // ours only
	Completed, Received float64
	TotalSent           float64
	TotalCompleted      float64
	TotalReceived       float64
	TotalSendTime       latency
	TotalTransferTime   latency
	TotalDelaySendTime  latency
}

func readOutcome(file string, state *os.ProcessState) (outcome, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return outcome{}, err
	}
	var records []record
	if err := json.Unmarshal(data, &records); err != nil {
		return outcome{}, fmt.Errorf("parse %s: %w", file, err)
	}
	o := outcome{cpu: state.UserTime() + state.SystemTime()}
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		o.memory = float64(u.Maxrss)
		if runtime.GOOS == "linux" {
			o.memory *= 1024 // getrusage(2): kilobytes, where other systems count bytes
		}
	}
	var seconds float64
	for _, r := range records {
		switch {
		case r.SampleType == "summary":
			o.sent, o.messages = r.TotalSent, (r.TotalCompleted+r.TotalReceived)/2
			o.send, o.transfer, o.delay = r.TotalSendTime, r.TotalTransferTime, r.TotalDelaySendTime
		case !r.Warmup && r.Phase != "drain":
			seconds++
			o.completed += r.Completed
			o.received += r.Received
		}
	}
	if seconds == 0 || o.messages == 0 {
		return outcome{}, fmt.Errorf("%s holds no measured second", file)
	}
	o.completed /= seconds
	o.received /= seconds
	return o, nil
}
