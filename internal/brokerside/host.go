package brokerside

import (
	"context"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/net"
)

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
