//go:build unix

package peerbench

import (
	"encoding/json"
	"fmt"
	"os"
)

// Outcome is the result of one run of perfmq or `artemis perf`.
type Outcome struct {
	Usage
	Completed, Received   float64 // msg/s after the warm-up
	Sent                  float64 // in all
	Messages              float64 // in all; completed and received together, halved if there were both
	Send, Transfer, Delay Latency // after the warm-up
	Response              Latency // the same; ours alone, with a rate
}

// CPUPerMessage returns the microseconds of processor time per message, of the
// whole process.
func (o Outcome) CPUPerMessage() float64 { return o.CPU.Seconds() * 1e6 / o.Messages }

// MiB returns the peak memory.
func (o Outcome) MiB() float64 { return o.Memory / (1 << 20) }

// OutcomeRows prints the main figures of an all-out run.
func OutcomeRows(t Table[Outcome]) {
	t.Row("completed msg/s", func(o Outcome) float64 { return o.Completed })
	t.Row("received msg/s", func(o Outcome) float64 { return o.Received })
	t.Row("cpu us/message", Outcome.CPUPerMessage)
	t.Row("peak memory MiB", Outcome.MiB)
	t.Row("send ack p50 us", func(o Outcome) float64 { return o.Send.P50 })
	t.Row("send ack p99 us", func(o Outcome) float64 { return o.Send.P99 })
	t.Row("transfer p50 us", func(o Outcome) float64 { return o.Transfer.P50 })
	t.Row("transfer p99 us", func(o Outcome) float64 { return o.Transfer.P99 })
}

// Latency has microseconds.
type Latency struct {
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
	TotalSendTime       Latency
	TotalTransferTime   Latency
	TotalDelaySendTime  Latency
	TotalResponseTime   Latency
}

// ReadOutcome reads the file that a tool wrote with --json. A file without a
// measured second is an error.
func ReadOutcome(file string, state *os.ProcessState) (Outcome, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the caller's own
	if err != nil {
		return Outcome{}, fmt.Errorf("read the figures of the tool: %w", err)
	}
	var records []record
	if err := json.Unmarshal(data, &records); err != nil {
		return Outcome{}, fmt.Errorf("parse %s: %w", file, err)
	}
	o := Outcome{Usage: UsageOf(state)}
	var seconds float64
	for _, r := range records {
		switch {
		case r.SampleType == "summary":
			o.Sent, o.Messages = r.TotalSent, r.TotalCompleted+r.TotalReceived
			if r.TotalCompleted > 0 && r.TotalReceived > 0 {
				o.Messages /= 2
			}
			o.Send, o.Transfer, o.Delay = r.TotalSendTime, r.TotalTransferTime, r.TotalDelaySendTime
			o.Response = r.TotalResponseTime
		case !r.Warmup && r.Phase != "drain":
			seconds++
			o.Completed += r.Completed
			o.Received += r.Received
		}
	}
	if seconds == 0 || o.Messages == 0 {
		return Outcome{}, fmt.Errorf("%s holds no measured second", file)
	}
	o.Completed /= seconds
	o.Received /= seconds
	return o, nil
}
