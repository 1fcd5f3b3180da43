package stats

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on all platforms of Go.
const tick = 10 * time.Millisecond

// machineCPU returns the processor time that all programs of this machine, this one included, have used so far, and the
// time available; 0 where unknown. The kernel samples at each tick which program has the processor, so it may miss
// short bursts of work on an otherwise idle machine: trust the value only when there is little idle time. Time that a
// hypervisor took away counts as used.
func machineCPU() (busy, all time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	return parseMachine(text)
}

// parseMachine reads the first line of /proc/stat (proc_stat(5) of Linux): user, nice, system, idle, iowait, irq,
// softirq and steal; the fields after these are part of the first two.
func parseMachine(text []byte) (busy, all time.Duration) {
	const fields, idle, iowait = 8, 3, 4
	line, _, _ := bytes.Cut(text, []byte("\n"))
	items := bytes.Fields(line)
	if len(items) < 1+fields || string(items[0]) != "cpu" {
		return 0, 0
	}
	for i, item := range items[1 : 1+fields] {
		n, err := strconv.ParseInt(string(item), 10, 64)
		if err != nil {
			return 0, 0
		}
		all += time.Duration(n) * tick
		if i != idle && i != iowait {
			busy += time.Duration(n) * tick
		}
	}
	return busy, all
}
