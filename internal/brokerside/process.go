package brokerside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// ErrNoProcess is in the error of [Open] for an unknown pid.
var ErrNoProcess = errors.New("there is no such process")

// watched is the broker's process. When it has ended, one that is started by the same command line replaces it: the
// broker was restarted.
type watched struct {
	process *process.Process
	began   int64    // as [began] returns it: distinguishes it from a later one with the same pid
	command []string // its command line
	name    string
	ended   bool
	newest  int64 // of the processes with its command line: a successor begins later
}

func watchProcess(ctx context.Context, pid int32) (*watched, error) {
	p, err := process.NewProcessWithContext(ctx, pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	w := &watched{process: p}
	if w.began, err = began(ctx, p); err != nil {
		return nil, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	w.name, _ = p.NameWithContext(ctx)
	w.command, _ = p.CmdlineSliceWithContext(ctx)
	if _, err = p.TimesWithContext(ctx); err != nil {
		return nil, fmt.Errorf("the system does not report the processor time of process %d: %w", pid, err)
	}
	_, w.newest = w.alike(ctx)
	return w, nil
}

// sample fills in the use of the process. It returns an event if the process has ended or was restarted.
func (w *watched) sample(ctx context.Context, s *sample) (event string) {
	if w.ended {
		if event = w.restarted(ctx); event == "" {
			return ""
		}
	}
	times, err := w.process.TimesWithContext(ctx)
	if err != nil || !w.alive(ctx) {
		w.ended = true
		return event + fmt.Sprintf("the broker's process %d (%s) has ended", w.process.Pid, w.name)
	}
	s.cpuAt = time.Now() // before the other questions, which take their time
	s.CPU = whole((times.User + times.System) * 1e6)
	if m, err := w.process.MemoryInfoWithContext(ctx); err == nil {
		s.Memory = &m.RSS
	}
	if n, err := w.process.NumThreadsWithContext(ctx); err == nil {
		s.Threads = whole(float64(n))
	}
	if n, err := w.process.NumFDsWithContext(ctx); err == nil {
		s.Files = whole(float64(n))
	}
	return event
}

// alive reports whether the process is there, and no other one under its pid.
func (w *watched) alive(ctx context.Context) bool {
	now, err := process.NewProcessWithContext(ctx, w.process.Pid)
	if err != nil {
		return false
	}
	if at, err := began(ctx, now); err != nil || at != w.began {
		return false
	}
	status, err := now.StatusWithContext(ctx)
	return err != nil || !slices.Contains(status, process.Zombie)
}

// alike returns the process with the same command line that began last.
func (w *watched) alike(ctx context.Context) (newest *process.Process, start int64) {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil || len(w.command) == 0 {
		return nil, 0
	}
	for _, p := range all {
		if command, err := p.CmdlineSliceWithContext(ctx); err != nil || !slices.Equal(command, w.command) {
			continue
		}
		if at, err := began(ctx, p); err == nil && at >= start {
			newest, start = p, at
		}
	}
	return newest, start
}

// restarted watches a process that was started by the same command line since, and returns the event; "" if there is
// none.
func (w *watched) restarted(ctx context.Context) string {
	p, start := w.alike(ctx)
	if p == nil || start <= w.newest {
		return ""
	}
	w.process, w.began, w.newest, w.ended = p, start, start, false
	return fmt.Sprintf("the broker was started again, as process %d", p.Pid)
}
