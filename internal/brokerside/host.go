package brokerside

import (
	"context"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/net"
)

// host takes the counters of this host. Values that the system does not tell stay nil.
func (s *sample) host(ctx context.Context) {
	if avg, err := load.AvgWithContext(ctx); err == nil {
		s.load = &avg.Load1
	}
	if disks, err := disk.IOCountersWithContext(ctx); err == nil && len(disks) > 0 {
		var read, written uint64
		s.diskTime = map[string]uint64{}
		for name, d := range disks {
			if !whole(name, disks) {
				continue
			}
			read, written = read+d.ReadBytes, written+d.WriteBytes
			s.diskTime[name] = d.IoTime
		}
		s.diskRead, s.diskWritten = &read, &written
	}
	if nics, err := net.IOCountersWithContext(ctx, true); err == nil && len(nics) > 0 {
		var in, out, loopback uint64
		for _, n := range nics {
			if n.Name == "lo" || strings.HasPrefix(n.Name, "lo0") || strings.HasPrefix(n.Name, "Loopback") {
				loopback += n.BytesSent
				continue
			}
			in, out = in+n.BytesRecv, out+n.BytesSent
		}
		s.netIn, s.netOut, s.loopback = &in, &out, &loopback
	}
}

// whole tells whether a disk is one of its own: no partition of another one, and not made of files, memory or other
// disks, whose bytes would count twice.
func whole[T any](name string, all map[string]T) bool {
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
