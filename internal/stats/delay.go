package stats

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

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
