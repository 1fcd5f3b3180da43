//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/perfmq/perfmq/internal/stats"
)

// measured is one run of a tool, as a process of its own.
type measured struct {
	cpu    time.Duration // user and system, of all threads, from start to end
	memory float64       // peak resident bytes
	broker time.Duration // the broker's processor time meanwhile
	health stats.Health  // the tool and the broker are "perfmq", all other programs "others"

	completed, received           float64 // msg/s in the measured part
	sent, messages                float64 // in all; completed and received together, halved if there were both
	ack, transfer, wait, response latency // in the measured part
}

// latency has microseconds.
type latency struct {
	P50 float64 `json:"50"`
	P99 float64 `json:"99"`
}

// perMessage returns the microseconds of a message's share.
func (m *measured) perMessage(d time.Duration) float64 { return d.Seconds() * 1e6 / m.messages }

// clock is how much processor time was used up to a moment.
type clock struct{ busy, all, broker time.Duration }

// readClock reads the processor times of the machine and of a process; pid 0 is none.
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

// account calls f, which runs a tool to its end, and adds the processor times to its result.
func account(
	ctx context.Context, s *server, f func() (measured, []*os.ProcessState, error),
) (measured, error) {
	before, err := readClock(ctx, s.pid)
	if err != nil {
		return measured{}, err
	}
	m, ended, err := f()
	if err != nil {
		return m, err
	}
	after, err := readClock(ctx, s.pid)
	if err != nil {
		return m, err
	}
	for _, state := range ended {
		m.cpu += state.UserTime() + state.SystemTime()
		if r, ok := state.SysUsage().(*syscall.Rusage); ok {
			unit := 1.0
			if runtime.GOOS == "linux" {
				unit = 1024 // getrusage(2): kilobytes, where other systems count bytes
			}
			m.memory += float64(r.Maxrss) * unit
		}
	}
	m.broker = after.broker - before.broker
	m.health = stats.Health{CPU: m.cpu + m.broker, Machine: after.busy - before.busy, MachineAll: after.all - before.all}
	return m, nil
}

// jsonRecord is an element of the JSON file of perfmq or `artemis perf`.
type jsonRecord struct {
	SampleType          string
	Warmup              bool
	Phase               string // perfmq's only
	Completed, Received float64
	TotalSent           float64
	TotalCompleted      float64
	TotalReceived       float64
	TotalSendTime       latency
	TotalTransferTime   latency
	TotalDelaySendTime  latency
	TotalResponseTime   latency
}

// readMeasured reads the file that a tool wrote with --json. A file without a measured second is an error.
func readMeasured(file string) (m measured, err error) {
	data, err := os.ReadFile(file) //nolint:gosec // the harness named it
	if err != nil {
		return m, fmt.Errorf("read the metrics of the tool: %w", err)
	}
	var records []jsonRecord
	if err := json.Unmarshal(data, &records); err != nil {
		return m, fmt.Errorf("parse %s: %w", file, err)
	}
	var seconds float64
	for i := range records {
		switch r := &records[i]; {
		case r.SampleType == "summary":
			m.sent, m.messages = r.TotalSent, r.TotalCompleted+r.TotalReceived
			if r.TotalCompleted > 0 && r.TotalReceived > 0 {
				m.messages /= 2
			}
			m.ack, m.transfer = r.TotalSendTime, r.TotalTransferTime
			m.wait, m.response = r.TotalDelaySendTime, r.TotalResponseTime
		case !r.Warmup && r.Phase != "drain":
			seconds++
			m.completed += r.Completed
			m.received += r.Received
		}
	}
	if seconds == 0 || m.messages == 0 {
		return m, fmt.Errorf("%s holds no measured second", file)
	}
	m.completed /= seconds
	m.received /= seconds
	return m, nil
}

// window is the measured part of a run by a broker's counter. It begins when the time since the first message and the
// count are reached, and ends with the time or the count.
type window struct {
	after, until time.Duration
	least, most  int64
}

const (
	firstMessage = 30 * time.Second // longest time from a tool's start to its first message
	countPause   = 50 * time.Millisecond
)

// countedRun runs a tool without a useful rate of its own, and ends it after the window. The rate is the growth of the
// broker's counter.
func countedRun(
	ctx context.Context, command func(context.Context) *exec.Cmd, count func(context.Context) (int64, error), w window,
) (m measured, states []*os.ProcessState, err error) {
	base, err := count(ctx)
	if err != nil {
		return m, nil, err
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	var out bytes.Buffer
	cmd := command(own)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return m, nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the counter shows whether it worked
	}()
	rate, err := w.rate(ctx, count, base, ended)
	cancel()
	<-ended
	if err != nil {
		return m, nil, fmt.Errorf("%w; the end of its output:\n%s", err, tail(out.String()))
	}
	for last := int64(-1); last != int64(m.messages); { // it may have messages on the way
		last = int64(m.messages)
		if err := wait(ctx, 4*countPause); err != nil {
			return m, nil, err
		}
		n, err := count(ctx)
		if err != nil {
			return m, nil, err
		}
		m.messages = float64(n - base)
	}
	m.received = rate
	return m, []*os.ProcessState{cmd.ProcessState}, nil
}

// rate follows a counter from base on, and returns its growth a second within the window.
func (w window) rate(
	ctx context.Context, count func(context.Context) (int64, error), base int64, ended <-chan struct{},
) (float64, error) {
	var first, begin time.Time
	var from int64
	started, last := time.Now(), false
	for {
		select {
		case <-ended: // it may have reached the count since the last question
			last = true
		default:
		}
		before := time.Now()
		n, err := count(ctx)
		if err != nil {
			return 0, err
		}
		n -= base
		now := before.Add(time.Since(before) / 2)
		if n > 0 && first.IsZero() {
			first = now
		}
		age := now.Sub(first)
		switch {
		case n == 0 && now.Sub(started) > firstMessage:
			return 0, fmt.Errorf("not one message reached the broker's counter within %v", firstMessage)
		case n > 0 && begin.IsZero() && age >= w.after && n >= w.least:
			begin, from = now, n
		case !begin.IsZero() && n > from && (age >= w.until || w.most > 0 && n >= w.most):
			return float64(n-from) / now.Sub(begin).Seconds(), nil
		}
		if last {
			return 0, errors.New("the tool ended before the measured part did")
		}
		if err := wait(ctx, countPause); err != nil {
			return 0, fmt.Errorf("the run was cut short: %w", err)
		}
	}
}
