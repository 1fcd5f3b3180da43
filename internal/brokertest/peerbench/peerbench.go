//go:build unix

// Package peerbench is shared by the benchmarks against other tools: it measures
// tools as whole processes, reads the JSON files of perfmq and `artemis perf`,
// and prints tables of medians with ratios.
//
// # The model
//
// A tool is run to its end as a process of its own. The operating system's
// account of it gives processor time and peak memory, start-up included ([Usage]);
// rates come from the tool's file, of the seconds after the warm-up ([Outcome]),
// or from a broker's own counter. Tools run in turn, several times; a [Table]
// shows the median of each.
package peerbench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Perfmq returns our own binary, ready to run. At the end of the context it gets
// SIGTERM, and is killed five seconds later.
func Perfmq(ctx context.Context, binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the user names the binary
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Usage is the operating system's account of a process that has ended.
type Usage struct {
	CPU    time.Duration // user and system, of all threads, from start to end
	Memory float64       // peak resident, in bytes; not below that of the process which started it
}

// UsageOf returns the account of an ended process.
func UsageOf(state *os.ProcessState) Usage {
	u := Usage{CPU: state.UserTime() + state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.Memory = float64(r.Maxrss)
		if runtime.GOOS == "linux" {
			u.Memory *= 1024 // getrusage(2): kilobytes, where other systems count bytes
		}
	}
	return u
}

// Median returns the middle of the values, the upper one of two; not a number for
// an empty list or if any value is none.
func Median[T any](list []T, value func(T) float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	values := make([]float64, len(list))
	for i, o := range list {
		if values[i] = value(o); math.IsNaN(values[i]) {
			return math.NaN()
		}
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}

// Column is a tool and the results of its runs.
type Column[T any] struct {
	Name string
	Runs []T
}

// Table prints rows of medians: a column per tool, then the ratio of the first to
// each other one.
type Table[T any] struct {
	W       io.Writer
	Columns []Column[T]
}

// Head prints the title and the names of the columns.
func (t Table[T]) Head(title string) {
	var line strings.Builder
	fmt.Fprintf(&line, "\n%s\n  %-26s", title, "")
	for _, c := range t.Columns {
		fmt.Fprintf(&line, " %13s", c.Name)
	}
	for _, c := range t.Columns[1:] {
		name := "ratio"
		if len(t.Columns) > 2 {
			name = "/ " + c.Name
		}
		fmt.Fprintf(&line, " %13s", name)
	}
	_, _ = fmt.Fprintln(t.W, line.String())
}

// Row prints the medians of a value, with "-" for NaN and infinities.
func (t Table[T]) Row(name string, value func(T) float64) {
	var line strings.Builder
	fmt.Fprintf(&line, "  %-26s", name)
	first := Median(t.Columns[0].Runs, value)
	for _, c := range t.Columns {
		line.WriteString(" " + cell(Median(c.Runs, value), 1))
	}
	for _, c := range t.Columns[1:] {
		line.WriteString(" " + cell(first/Median(c.Runs, value), 2))
	}
	_, _ = fmt.Fprintln(t.W, line.String())
}

func cell(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%13s", "-")
	}
	return fmt.Sprintf("%13.*f", decimals, v)
}
