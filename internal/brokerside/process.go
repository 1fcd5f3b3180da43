package brokerside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// ErrNoProcess is in the error of [Open] for a pid that there is not.
var ErrNoProcess = errors.New("there is no such process")

// identity tells a process from a later one with the same pid.
type identity struct {
	pid   int32
	began int64 // as [began] tells
}

// watched is the broker's process. When it has ended, one that is started by the same command line takes its place: a
// broker that was restarted.
type watched struct {
	process *process.Process
	identity
	command []string // its command line
	name    string
	used    time.Duration // processor time of the processes before it, as far as it was seen
	last    time.Duration // its own, as of the last look
	ended   bool
	others  []identity // with the same command line, when the watch began: none of them is its successor
}

func watchProcess(ctx context.Context, pid int32) (*watched, error) {
	p, err := process.NewProcessWithContext(ctx, pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	w := &watched{process: p, identity: identity{pid: pid}}
	if w.began, err = began(ctx, p); err != nil {
		return nil, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	w.name, _ = p.NameWithContext(ctx)
	w.command, _ = p.CmdlineSliceWithContext(ctx)
	if _, err = p.TimesWithContext(ctx); err != nil {
		return nil, fmt.Errorf("the system does not tell the processor time of process %d: %w", pid, err)
	}
	w.others = w.alike(ctx)
	return w, nil
}

// look fills in the usage of the process. It returns an event if the process has ended, or if there is another one.
func (w *watched) look(ctx context.Context, s *sample) (event string) {
	if w.ended {
		if event = w.successor(ctx); event == "" {
			return ""
		}
	}
	times, err := w.process.TimesWithContext(ctx)
	if err != nil || !w.alive(ctx) {
		w.ended = true
		return event + fmt.Sprintf("the broker's process %d (%s) has ended", w.pid, w.name)
	}
	s.cpuAt = time.Now() // before the other questions, which take their time
	w.last = time.Duration((times.User + times.System) * float64(time.Second))
	cpu := (w.used + w.last).Microseconds()
	s.cpu = &cpu
	if m, err := w.process.MemoryInfoWithContext(ctx); err == nil {
		s.memory = &m.RSS
	}
	if n, err := w.process.NumThreadsWithContext(ctx); err == nil && n >= 0 {
		threads := uint64(n)
		s.threads = &threads
	}
	if n, err := w.process.NumFDsWithContext(ctx); err == nil && n >= 0 {
		files := uint64(n)
		s.files = &files
	}
	return event
}

// alive tells whether the process is there, and no other one under its pid.
func (w *watched) alive(ctx context.Context) bool {
	now, err := process.NewProcessWithContext(ctx, w.pid)
	if err != nil {
		return false
	}
	if at, err := began(ctx, now); err != nil || at != w.began {
		return false
	}
	status, err := now.StatusWithContext(ctx)
	return err != nil || !slices.Contains(status, process.Zombie)
}

// alike returns the processes with the same command line.
func (w *watched) alike(ctx context.Context) (list []identity) {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil || len(w.command) == 0 {
		return nil
	}
	for _, p := range all {
		command, err := p.CmdlineSliceWithContext(ctx)
		if err != nil || !slices.Equal(command, w.command) {
			continue
		}
		if at, err := began(ctx, p); err == nil {
			list = append(list, identity{p.Pid, at})
		}
	}
	return list
}

// successor goes over to a process that was started by the same command line since, and says so; it says nothing if
// there is none.
func (w *watched) successor(ctx context.Context) string {
	for _, id := range w.alike(ctx) {
		if id == w.identity || slices.Contains(w.others, id) {
			continue
		}
		p, err := process.NewProcessWithContext(ctx, id.pid)
		if err != nil {
			continue
		}
		w.others = append(w.others, w.identity)
		w.used, w.last, w.ended = w.used+w.last, 0, false
		w.process, w.identity = p, id
		return fmt.Sprintf("the broker was started again, as process %d", id.pid)
	}
	return ""
}
