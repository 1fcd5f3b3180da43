//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/perfmq/perfmq/pkg/result"
)

// metric is a value of a run, and a column of the record.
type metric int

// The metrics, in the order of metricNames.
const (
	completedRate metric = iota
	receivedRate
	toolCPU
	brokerCPU
	bothCPU
	memory
	ackP50
	ackP99
	transferP50
	transferP99
	delayP99
	numberOfMetrics
)

func metricNames() []string {
	return []string{
		"completed msg/s", "received msg/s", "cpu us/message", "broker's cpu us/message", "cpu with the broker's",
		"peak memory MiB", "send ack p50 us", "send ack p99 us", "transfer p50 us", "transfer p99 us",
		"send delay p99 us",
	}
}

// measured is one run of a tool, as a process of its own.
type measured struct {
	values   [numberOfMetrics]float64
	messages float64       // in all; completed and received together, halved if there were both
	health   result.Tester // the tool and the broker are "perfmq", all other programs "others"
}

// medians returns the median of each metric, the upper one of two.
func medians(runs []measured) (m measured) {
	for i := range m.values {
		values := make([]float64, len(runs))
		for j := range runs {
			values[j] = runs[j].values[i]
		}
		m.values[i] = median(values)
	}
	return m
}

// clock is the processor time used up to a moment.
type clock struct{ busy, all, broker time.Duration }

// readClock reads the processor times of the machine and of a process; pid 0: no process.
func readClock(ctx context.Context, pid int) (c clock, err error) {
	all, err := cpu.TimesWithContext(ctx, false)
	if err != nil || len(all) == 0 {
		return c, fmt.Errorf("ask the system for the machine's processor time: %w", err)
	}
	t := all[0]
	idle := t.Idle + t.Iowait
	used := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	c.busy, c.all = duration(used), duration(used+idle)
	if pid == 0 {
		return c, nil
	}
	p, err := process.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // a process has a small number
	if err != nil {
		return c, fmt.Errorf("ask the system for the broker: %w", err)
	}
	own, err := p.TimesWithContext(ctx)
	if err != nil {
		return c, fmt.Errorf("ask the system for the broker's processor time: %w", err)
	}
	c.broker = duration(own.User + own.System)
	return c, nil
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// account calls f, which runs a tool to its end, and adds the processor times and the memory to its result.
func account(
	ctx context.Context, c *cluster, f func() (measured, *os.ProcessState, error),
) (m measured, err error) {
	pid := c.pid
	if c.primary != nil {
		pid = c.primary.PID()
	}
	before, err := readClock(ctx, pid)
	if err != nil {
		return m, err
	}
	m, ended, err := f()
	if err != nil {
		return m, err
	}
	after, err := readClock(ctx, pid)
	if err != nil {
		return m, err
	}
	tool, broker := ended.UserTime()+ended.SystemTime(), after.broker-before.broker
	if r, ok := ended.SysUsage().(*syscall.Rusage); ok {
		m.values[memory] = float64(r.Maxrss) / 1024 // getrusage(2): Linux counts kilobytes
	}
	for of, d := range map[metric]time.Duration{toolCPU: tool, brokerCPU: broker, bothCPU: tool + broker} {
		m.values[of] = d.Seconds() * 1e6 / m.messages
	}
	m.health = result.Tester{
		CPU: (tool + broker).Microseconds(), MachineBusy: (after.busy - before.busy).Microseconds(),
		MachineAll: (after.all - before.all).Microseconds(),
	}
	return m, nil
}

// jsonRecord is an element of the JSON file of perfmq or `artemis perf`. Its latencies are microseconds by percentile.
type jsonRecord struct {
	SampleType          string
	Warmup              bool
	Phase               string // perfmq's only
	Completed, Received float64
	TotalCompleted      float64
	TotalReceived       float64
	TotalSendTime       map[string]any
	TotalTransferTime   map[string]any
	TotalDelaySendTime  map[string]any
}

// read reads the file that a tool wrote with --json. A file without a measured second is an error.
func (m *measured) read(file string) error {
	data, err := os.ReadFile(file) //nolint:gosec // the harness named it
	if err != nil {
		return fmt.Errorf("read the metrics of the tool: %w", err)
	}
	var records []jsonRecord
	if err := json.Unmarshal(data, &records); err != nil {
		return fmt.Errorf("parse %s: %w", file, err)
	}
	var seconds float64
	for i := range records {
		switch r := &records[i]; {
		case r.SampleType == "summary":
			m.messages = r.TotalCompleted + r.TotalReceived
			if r.TotalCompleted > 0 && r.TotalReceived > 0 {
				m.messages /= 2
			}
			percentile := func(l map[string]any, which string) float64 {
				v, _ := l[which].(float64)
				return v
			}
			m.values[ackP50], m.values[ackP99] = percentile(r.TotalSendTime, "50"), percentile(r.TotalSendTime, "99")
			m.values[transferP50] = percentile(r.TotalTransferTime, "50")
			m.values[transferP99] = percentile(r.TotalTransferTime, "99")
			m.values[delayP99] = percentile(r.TotalDelaySendTime, "99")
		case !r.Warmup && r.Phase != "drain":
			seconds++
			m.values[completedRate] += r.Completed
			m.values[receivedRate] += r.Received
		}
	}
	if seconds == 0 || m.messages == 0 {
		return fmt.Errorf("%s holds no measured second", file)
	}
	m.values[completedRate] /= seconds
	m.values[receivedRate] /= seconds
	return nil
}

const (
	firstMessage = 30 * time.Second // longest time from a tool's start to its first message
	countPause   = 50 * time.Millisecond
)

// count follows a broker's counter, which begins at 0. The rate is its growth in the time after the warm-up, which
// begins with the first message.
func (m *measured) count(
	ctx context.Context, warmup, length time.Duration, count func(context.Context) (int64, error),
) error {
	starting, cancel := context.WithTimeout(ctx, firstMessage)
	defer cancel()
	for n := int64(0); n == 0; {
		if err := wait(starting, countPause); err != nil {
			return fmt.Errorf("no message reached the broker's counter within %v: %w", firstMessage, err)
		}
		var err error
		if n, err = count(ctx); err != nil {
			return err
		}
	}
	var at [2]time.Time
	var n [2]int64
	for i, pause := range []time.Duration{warmup, length} {
		if err := wait(ctx, pause); err != nil {
			return err
		}
		before := time.Now()
		var err error
		if n[i], err = count(ctx); err != nil {
			return err
		}
		at[i] = before.Add(time.Since(before) / 2)
	}
	if n[1] == n[0] {
		return errors.New("the tool sent no message in the measured time")
	}
	m.messages = float64(n[1])
	m.values[receivedRate] = float64(n[1]-n[0]) / at[1].Sub(at[0]).Seconds()
	return nil
}

// median returns the median of a list that is not empty, the upper one of two.
func median[T int64 | float64](list []T) T { return slices.Sorted(slices.Values(list))[len(list)/2] }
