package stats

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// machineCPU returns the processor time that all programs of this machine have used so far, and the time available; 0
// where unknown. The kernel samples at each tick, so it may miss short bursts of work: trust the value only when there
// is little idle time. Time that a hypervisor took away counts as used.
func machineCPU() (busy, all time.Duration) {
	list, err := cpu.Times(false)
	if err != nil || len(list) == 0 {
		return 0, 0
	}
	t := &list[0]
	used := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	busy = seconds(used)
	return busy, busy + seconds(t.Idle+t.Iowait) // rounded alike: busy never exceeds all
}

// processMemory returns the resident bytes of this process.
func processMemory() uint64 {
	m, err := (&process.Process{Pid: int32(os.Getpid())}).MemoryInfo() //nolint:gosec // process IDs are of 32 bits
	if err != nil {
		return 0
	}
	return m.RSS
}

// peakMemory returns the largest number of resident bytes that this process ever had: VmHWM of /proc/self/status, in
// KiB (proc_pid_status(5)); 0 where the system does not report it.
func peakMemory() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	kib, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	n, err := strconv.ParseUint(string(kib), 10, 48)
	if err != nil {
		return 0
	}
	return n << 10
}

// MachineMemory returns the memory of the machine in bytes; 0 where the system does not report it.
func MachineMemory() uint64 {
	m, err := mem.VirtualMemory()
	if err != nil {
		return 0
	}
	return m.Total
}

// processDelay returns the time, added up, for which runnable threads of this process have waited for a processor;
// ended threads do not count. Only Linux reports it.
func processDelay() (sum time.Duration, known bool) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0, false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if d, ok := parseDelay(text); ok {
			sum, known = sum+d, true
		}
	}
	return sum, known
}

// parseDelay reads /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst of Linux): nanoseconds spent on a
// processor, nanoseconds spent waiting for one, and the number of time slices. All are zero if the kernel does not
// count.
func parseDelay(text []byte) (d time.Duration, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) < 3 || string(fields[0]) == "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(n), err == nil && n >= 0
}
