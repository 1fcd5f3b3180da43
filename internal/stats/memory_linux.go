package stats

import (
	"bytes"
	"os"
	"strconv"
)

// processMemory returns the resident bytes of this process: the second number of /proc/self/statm, in pages
// (proc_pid_statm(5)).
func processMemory() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	return number(text, 1) * uint64(os.Getpagesize()) //nolint:gosec // not negative
}

// peakMemory returns the largest number of resident bytes that this process ever had: VmHWM of /proc/self/status, in
// KiB (proc_pid_status(5)); 0 where the system does not report it.
func peakMemory() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	return number(line, 0) << 10
}

// MachineMemory returns the memory of the machine in bytes: MemTotal of /proc/meminfo, in KiB (proc_meminfo(5)); 0
// where the system does not report it.
func MachineMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return number(line, 1) << 10
}

// number returns a field of a text as a number; 0 if it is not a number.
func number(text []byte, field int) uint64 {
	fields := bytes.Fields(text)
	if len(fields) <= field {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[field]), 10, 48)
	if err != nil {
		return 0
	}
	return n
}
