package brokerside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// ErrNoProcess is in the error of [Open] for an unknown pid.
var ErrNoProcess = errors.New("there is no such process")

// watched is the broker's process.
type watched struct {
	process *process.Process
	name    string
	ended   bool
}

func watchProcess(ctx context.Context, pid int32) (*watched, error) {
	p, err := process.NewProcessWithContext(ctx, pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %d", ErrNoProcess, pid)
	}
	w := &watched{process: p}
	w.name, _ = p.NameWithContext(ctx)
	if _, err = p.TimesWithContext(ctx); err != nil {
		return nil, fmt.Errorf("the system does not report the processor time of process %d: %w", pid, err)
	}
	return w, nil
}

// sample fills in the use of the process. It returns an event when the process has ended.
func (w *watched) sample(ctx context.Context, s *sample) (event string) {
	if w.ended {
		return ""
	}
	times, err := w.process.TimesWithContext(ctx)
	status, _ := w.process.StatusWithContext(ctx) // not every system knows it
	if err != nil || slices.Contains(status, process.Zombie) {
		w.ended = true
		return fmt.Sprintf("the broker's process %d (%s) has ended", w.process.Pid, w.name)
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
	return ""
}

// host takes the counters of this host. Values that the system does not report stay nil.
func (s *sample) host(ctx context.Context) {
	if avg, err := load.AvgWithContext(ctx); err == nil {
		s.Load = &avg.Load1
	}
	if disks, err := disk.IOCountersWithContext(ctx); err == nil {
		read, written, busy := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for name, d := range disks {
			read[name], written[name], busy[name] = float64(d.ReadBytes), float64(d.WriteBytes), float64(d.IoTime)
		}
		s.disks(read, written, busy)
	}
	if nics, err := net.IOCountersWithContext(ctx, true); err == nil {
		in, out := map[string]float64{}, map[string]float64{}
		for _, n := range nics {
			in[n.Name], out[n.Name] = float64(n.BytesRecv), float64(n.BytesSent)
		}
		s.networks(in, out)
	}
}
