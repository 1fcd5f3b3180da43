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
	gauge := func(name, help string, v *uint64) {
		if v != nil {
			emit.gauge(prometheus.NewDesc("perfmq_broker_"+name, help, nil, nil), float64(*v))
		}
	}
	sum := func(name, help string, v float64, known bool, labels ...string) {
		if !known {
			return
		}
		var keys, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			keys, values = append(keys, labels[i]), append(values, labels[i+1])
		}
		emit <- prometheus.MustNewConstMetric(prometheus.NewDesc("perfmq_broker_"+name, help, keys, nil),
			prometheus.CounterValue, v, values...)
	}
	bytes := func(v *uint64) float64 {
		if v == nil {
			return 0
		}
		return float64(*v)
	}
	seconds := func(v *int64) float64 {
		if v == nil {
			return 0
		}
		return float64(*v) / 1e6
	}
	u, now := c.side, c.sideNow
	sum("cpu_seconds_total", "Processor time of the broker's process.", seconds(u.CPU), u.CPU != nil)
	gauge("memory_bytes", "Resident memory of the broker's process.", now.Memory)
	gauge("threads", "Threads of the broker's process.", now.Threads)
	gauge("open_files", "Open files of the broker's process, sockets included.", now.Files)
	gauge("heap_bytes", "Used heap of the broker's JVM.", now.Heap)
	sum("collections_total", "Garbage collections of the broker's JVM.", bytes(u.Collections), u.Collections != nil)
	sum("collection_seconds_total", "Time of garbage collections of the broker's JVM.", seconds(u.CollectionTime),
		u.CollectionTime != nil)
	if now.Load != nil {
		emit.gauge(prometheus.NewDesc("perfmq_broker_host_load1", "Load average of the last minute of the broker's host.",
			nil, nil), *now.Load)
	}
	if now.DiskBusy != nil {
		emit.gauge(prometheus.NewDesc("perfmq_broker_host_disk_busy_ratio",
			"Share of the time in which the busiest disk was.", nil, nil), *now.DiskBusy)
	}
	const diskHelp = "Bytes of all disks of the broker's host."
	sum("host_disk_bytes_total", diskHelp, bytes(u.DiskRead), u.DiskRead != nil, "direction", "read")
	sum("host_disk_bytes_total", diskHelp, bytes(u.DiskWritten), u.DiskWritten != nil, "direction", "written")
	const netHelp = "Bytes of the network interfaces of the broker's host; loopback apart."
	sum("host_network_bytes_total", netHelp, bytes(u.NetIn), u.NetIn != nil, "direction", "in")
	sum("host_network_bytes_total", netHelp, bytes(u.NetOut), u.NetOut != nil, "direction", "out")
	sum("host_network_bytes_total", netHelp, bytes(u.Loopback), u.Loopback != nil, "direction", "loopback")
	const logHelp = "Lines of the broker's log, by level."
	sum("log_lines_total", logHelp, bytes(u.Errors), u.Errors != nil, "level", "error")
	sum("log_lines_total", logHelp, bytes(u.Warnings), u.Warnings != nil, "level", "warning")
	for text, v := range now.Series {
		emit.gauge(prometheus.NewDesc("perfmq_broker_series", "Chosen series of the broker's own metrics.",
			[]string{"series"}, nil), v, safetext.Line(text))
	}
}
