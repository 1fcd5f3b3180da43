package brokerside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/perfmq/perfmq/pkg/result"
)

// sample is the state of all counters at a moment. Its counters are totals; unknown values are nil.
type sample struct {
	result.BrokerUse
	at, cpuAt, diskAt time.Time
	diskTime          map[string]uint64 // milliseconds in which each disk was busy
}

// counters returns the fields that grow: their values add up over intervals.
func counters(u *result.BrokerUse) []**uint64 {
	return []**uint64{
		&u.CPU, &u.CollectionTime, &u.Collections, &u.DiskTime, &u.DiskRead, &u.DiskWritten, &u.NetIn, &u.NetOut,
		&u.Loopback, &u.Errors, &u.Warnings,
	}
}

// levels returns the fields for which the highest value of several intervals counts.
func levels(u *result.BrokerUse) []**uint64 {
	return []**uint64{&u.Memory, &u.Threads, &u.Files, &u.Heap}
}

// keep takes the counters that s lacks from the sample before: a question without an answer loses nothing.
func (s *sample) keep(before *sample) {
	if s.CPU == nil {
		s.cpuAt = before.cpuAt
	}
	if s.diskTime == nil {
		s.diskTime, s.diskAt = before.diskTime, before.diskAt
	}
	old := counters(&before.BrokerUse)
	for i, n := range counters(&s.BrokerUse) {
		if *n == nil {
			*n = *old[i]
		}
	}
}

// between returns the use from one sample to the next.
func between(from, to *sample) result.BrokerUse {
	u := to.BrokerUse
	u.Span = to.at.Sub(from.at).Microseconds()
	before := counters(&from.BrokerUse)
	for i, n := range counters(&u) {
		*n = grown(*before[i], *n)
	}
	if u.CPUSpan = to.cpuAt.Sub(from.cpuAt).Microseconds(); u.CPU == nil || u.CPUSpan <= 0 {
		u.CPU, u.CPUSpan = nil, 0
	}
	span := to.diskAt.Sub(from.diskAt).Microseconds()
	for name, busy := range to.diskTime {
		before, ok := from.diskTime[name]
		if !ok || busy < before || span <= 0 {
			continue
		}
		share := min(1, float64(busy-before)*1000/float64(span))
		highest(&u.DiskBusy, &share)
		highest(&u.DiskTime, new((busy-before)*1000))
	}
	return u
}

// grown returns the growth of a counter; nil if it is unknown, or if the counter has begun again.
func grown(from, to *uint64) *uint64 {
	if from == nil || to == nil || *to < *from {
		return nil
	}
	return new(*to - *from)
}

// highest keeps the higher value.
func highest[N uint64 | float64](to **N, n *N) {
	if n != nil && (*to == nil || *n > **to) {
		*to = new(*n)
	}
}

// Join returns two successive intervals as one; either may be nil.
func Join(a, b *result.BrokerUse) *result.BrokerUse {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	u := *a
	u.Span, u.CPUSpan = u.Span+b.Span, u.CPUSpan+b.CPUSpan
	more := counters(b)
	for i, to := range counters(&u) {
		switch n := *more[i]; {
		case n == nil:
		case *to == nil:
			*to = n
		default:
			*to = new(**to + *n)
		}
	}
	other := levels(b)
	for i, to := range levels(&u) {
		highest(to, *other[i])
	}
	highest(&u.Load, b.Load)
	highest(&u.DiskBusy, b.DiskBusy)
	return &u
}

// maxCount is the highest count that is believed: a page may contain any value.
const maxCount = 1 << 53

// whole returns a count; nil if no broker can have it.
func whole(v float64) *uint64 {
	if !(v >= 0 && v <= maxCount) { // nor is it NaN
		return nil
	}
	return new(uint64(v))
}

// sum returns the sum of counts; nil if there are none.
func sum(counts map[string]float64) *uint64 {
	if len(counts) == 0 {
		return nil
	}
	n := 0.0
	for _, v := range counts {
		n += v
	}
	return whole(n)
}

// disks takes the counters of disks by their names: bytes and milliseconds.
func (s *sample) disks(read, written, busy map[string]float64) {
	for _, counts := range []map[string]float64{read, written, busy} {
		names := maps.Clone(counts)
		maps.DeleteFunc(counts, func(name string, _ float64) bool { return !isDisk(name, names) })
	}
	s.DiskRead, s.DiskWritten = sum(read), sum(written)
	for name, v := range busy {
		if n := whole(v); n != nil {
			if s.diskTime == nil {
				s.diskTime = map[string]uint64{}
			}
			s.diskTime[name] = *n
		}
	}
}

// isDisk reports whether a name is of a disk. A partition, and a device made of files, memory or other disks, is none:
// its bytes would count twice.
func isDisk(name string, all map[string]float64) bool {
	if slices.ContainsFunc([]string{"loop", "ram", "zram", "dm-", "md", "sr", "fd"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return false
	}
	disk := strings.TrimRight(name, "0123456789") // sda1 is a part of sda, nvme0n1p2 of nvme0n1, nvme0n10 is another disk
	if before, ok := strings.CutSuffix(disk, "p"); ok && before != strings.TrimRight(before, "0123456789") {
		disk = before
	}
	_, there := all[disk]
	return disk == name || !there
}

// networks takes the bytes of network interfaces by their names; loopback is apart.
func (s *sample) networks(in, out map[string]float64) {
	loopback := 0.0
	for name, n := range in {
		if name == "lo" || strings.HasPrefix(name, "lo0") || strings.HasPrefix(name, "Loopback") {
			loopback += n
			in[name] = 0
			if _, ok := out[name]; ok {
				out[name] = 0
			}
		}
	}
	s.NetIn, s.NetOut = sum(in), sum(out)
	if len(in) > 0 {
		s.Loopback = whole(loopback)
	}
}

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
