//go:build unix

package peerbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Counter is a broker's own count of messages, growing.
type Counter func(context.Context) (int64, error)

// firstMessage is how long a tool may take, from its start, to its first message.
const firstMessage = 30 * time.Second

// Window says which part of a run is measured. Time counts from the first message,
// so that the start-up of a Java process is no part of it. It begins when both
// After and AfterCount are reached, and ends with either Until or UntilCount.
type Window struct {
	After, Until           time.Duration
	AfterCount, UntilCount int64 // 0: none
}

// Counted is a run as the broker's counter saw it.
type Counted struct {
	Usage
	Rate     float64 // msg/s within the window
	Steady   float64 // microseconds of processor time per message within the window; not a number where /proc has none
	Messages float64 // of the whole run
	Output   string
	State    *os.ProcessState
	Own      float64 // msg/s as the tool says; for the caller to fill in
}

// CPUPerMessage returns the microseconds of processor time per message, of the
// whole process, start-up included.
func (c Counted) CPUPerMessage() float64 { return c.CPU.Seconds() * 1e6 / c.Messages }

// MiB returns the peak memory.
func (c Counted) MiB() float64 { return c.Memory / (1 << 20) }

// sample is the state of a run at one moment.
type sample struct {
	at    time.Time
	count int64
	cpu   time.Duration
	known bool // cpu
}

// RunCounted runs a tool that neither reports its rate in a useful form nor ends
// by itself. With stop, the tool's context is ended at the end of the window;
// without, the tool is to end by itself. A tool that ends before the window does
// is an error, as is the end of ctx.
func RunCounted(
	ctx context.Context, command func(context.Context) *exec.Cmd, count Counter, w Window, stop bool,
) (Counted, error) {
	base, err := count(ctx)
	if err != nil {
		return Counted{}, err
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	var out bytes.Buffer
	cmd := command(own)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return Counted{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	begin, end, err := watch(ctx, cmd.Process.Pid, count, base, w, ended)
	if err != nil {
		cancel()
		if how := <-ended; how != nil {
			err = fmt.Errorf("%w (%w)", err, how)
		}
		return Counted{}, fmt.Errorf("%w; the end of its output:\n%s", err, lastBytes(out.String(), 600))
	}
	if stop {
		cancel()
	}
	if err := <-ended; err != nil && !stop {
		return Counted{}, fmt.Errorf("%w\n%s", err, lastBytes(out.String(), 600))
	}
	total, err := settled(ctx, count)
	if err != nil {
		return Counted{}, err
	}
	n := float64(end.count - begin.count)
	c := Counted{
		Usage: UsageOf(cmd.ProcessState), Rate: n / end.at.Sub(begin.at).Seconds(), Messages: float64(total - base),
		Steady: math.NaN(), Own: math.NaN(), Output: out.String(), State: cmd.ProcessState,
	}
	if begin.known && end.known {
		c.Steady = (end.cpu - begin.cpu).Seconds() * 1e6 / n
	}
	return c, nil
}

// watch follows the counter and returns the edges of the window. If the tool has
// ended, how is put back for the caller.
func watch(
	ctx context.Context, pid int, count Counter, base int64, w Window, ended chan error,
) (begin, end sample, err error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var first time.Time
	limit := time.Now().Add(firstMessage)
	for {
		select {
		case <-ctx.Done():
			return begin, end, fmt.Errorf("the run was cut short: %w", ctx.Err())
		case how := <-ended:
			ended <- how
			if how == nil {
				how = errors.New("exit status 0")
			}
			return begin, end, fmt.Errorf("the tool ended (%w) before the measured part did", how)
		case <-ticker.C:
		}
		s, err := take(ctx, pid, count)
		if err != nil {
			return begin, end, err
		}
		if s.count -= base; s.count == 0 {
			if s.at.After(limit) {
				return begin, end, fmt.Errorf("not one message reached the broker's counter within %v", firstMessage)
			}
			continue
		}
		if first.IsZero() {
			first = s.at
		}
		age := s.at.Sub(first)
		if begin.at.IsZero() && age >= w.After && s.count >= w.AfterCount {
			begin = s
		} else if age >= w.Until || w.UntilCount > 0 && s.count >= w.UntilCount {
			if begin.at.IsZero() || s.count == begin.count {
				return begin, end, fmt.Errorf("%d messages within %v: no measured part", s.count, age.Round(time.Millisecond))
			}
			return begin, s, nil
		}
	}
}

// take reads counter and processor time as nearly at once as it goes.
func take(ctx context.Context, pid int, count Counter) (sample, error) {
	before := time.Now()
	n, err := count(ctx)
	if err != nil {
		return sample{}, err
	}
	s := sample{at: before.Add(time.Since(before) / 2), count: n}
	s.cpu, s.known = ProcessCPU(pid)
	return s, nil
}

// ProcessCPU returns the processor time that a running process has used, to 10 ms;
// false if it cannot be told. proc(5): after the name in
// parentheses, utime and stime are the 12th and 13th field, in ticks of 10 ms.
func ProcessCPU(pid int) (time.Duration, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err1 == nil && err2 == nil
}

// settled returns the counter when it has stopped growing.
func settled(ctx context.Context, count Counter) (int64, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for last := int64(-1); ; {
		n, err := count(ctx)
		if err != nil || n == last {
			return n, err
		}
		last = n
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-ticker.C:
		}
	}
}

func lastBytes(s string, n int) string { return s[max(0, len(s)-n):] }
