package brokerside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/shirou/gopsutil/v4/process"
)

// began returns when a process began, in clock ticks since the system's start (proc_pid_stat(5), starttime). That never
// changes while the process lives. gopsutil tells a wall clock's time instead, which is a second off now and then, as
// it takes the uptime from the clock anew each time, and by more when the clock is set.
func began(_ context.Context, p *process.Process) (ticks int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return 0, err
	}
	const field, afterName = 22, 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name in brackets may hold anything
	if len(fields) <= field-afterName {
		return 0, errors.New("unknown format of /proc/PID/stat")
	}
	return strconv.ParseInt(string(fields[field-afterName]), 10, 64)
}
