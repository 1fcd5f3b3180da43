package stats

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// cpuWait returns how long the threads of this process, together, had work but no processor so far; known is false where the kernel does
// not count it. It is the second field of each thread's schedstat, in nanoseconds
// (Documentation/scheduler/sched-stats.rst of Linux). The time of threads that have ended is missing; Go ends few.
func cpuWait() (wait time.Duration, known bool) {
	const tasks = "/proc/self/task/"
	dir, err := os.Open(tasks)
	if err != nil {
		return 0, false
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, false
	}
	for _, name := range names {
		text, err := os.ReadFile(tasks + name + "/schedstat")
		if err != nil {
			continue // the thread has ended
		}
		if fields := bytes.Fields(text); len(fields) == 3 {
			if n, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				wait += time.Duration(n)
				known = true
			}
		}
	}
	return wait, known
}
