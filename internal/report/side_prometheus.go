package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/internal/safetext"
)

// collectSide emits the known figures of the broker and its host. Sums count from the start of the load.
func (c *collector) collectSide(emit emitter) {
	if c.side == nil || c.sideNow == nil {
		return
	}
	gauge := func(name, help string, v *float64) {
		if v != nil {
			emit.gauge(prometheus.NewDesc("perfmq_broker_"+name, help, nil, nil), *v)
		}
	}
	level := func(name, help string, v *uint64) {
		if v != nil {
			gauge(name, help, new(float64(*v)))
		}
	}
	total := func(name, help string, v *uint64, unit float64, labels ...string) {
		if v == nil {
			return
		}
		var keys, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			keys, values = append(keys, labels[i]), append(values, labels[i+1])
		}
		emit <- prometheus.MustNewConstMetric(prometheus.NewDesc("perfmq_broker_"+name, help, keys, nil),
			prometheus.CounterValue, float64(*v)/unit, values...)
	}
	u, now := c.side, c.sideNow
	total("cpu_seconds_total", "Processor time of the broker's process.", u.CPU, 1e6)
	level("memory_bytes", "Resident memory of the broker's process.", now.Memory)
	level("threads", "Threads of the broker's process.", now.Threads)
	level("open_files", "Open files of the broker's process, sockets included.", now.Files)
	level("heap_bytes", "Used heap of the broker's JVM.", now.Heap)
	total("collections_total", "Garbage collections of the broker's JVM.", u.Collections, 1)
	total("collection_seconds_total", "Time of garbage collections of the broker's JVM.", u.CollectionTime, 1e6)
	gauge("host_load1", "Load average of the last minute of the broker's host.", now.Load)
	gauge("host_disk_busy_ratio", "Share of the time in which the busiest disk was.", now.DiskBusy)
	const diskHelp = "Bytes of all disks of the broker's host."
	total("host_disk_bytes_total", diskHelp, u.DiskRead, 1, "direction", "read")
	total("host_disk_bytes_total", diskHelp, u.DiskWritten, 1, "direction", "written")
	const netHelp = "Bytes of the network interfaces of the broker's host; loopback apart."
	total("host_network_bytes_total", netHelp, u.NetIn, 1, "direction", "in")
	total("host_network_bytes_total", netHelp, u.NetOut, 1, "direction", "out")
	total("host_network_bytes_total", netHelp, u.Loopback, 1, "direction", "loopback")
	const logHelp = "Lines of the broker's log, by level."
	total("log_lines_total", logHelp, u.Errors, 1, "level", "error")
	total("log_lines_total", logHelp, u.Warnings, 1, "level", "warning")
	for text, v := range now.Series {
		emit.gauge(prometheus.NewDesc("perfmq_broker_series", "Chosen series of the broker's own metrics.",
			[]string{"series"}, nil), v, safetext.Line(text))
	}
}
