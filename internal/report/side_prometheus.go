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
	gauge := func(name string, v *float64) {
		if v != nil {
			emit.gauge(name, *v)
		}
	}
	level := func(name string, v *uint64) {
		if v != nil {
			emit.gauge(name, float64(*v))
		}
	}
	total := func(name string, v *uint64, unit float64, labels ...string) {
		if v != nil {
			emit.to <- prometheus.MustNewConstMetric(emit.d[name], prometheus.CounterValue, float64(*v)/unit, labels...)
		}
	}
	u, now := c.side, c.sideNow
	total("broker_cpu_seconds_total", u.CPU, 1e6)
	level("broker_memory_bytes", now.Memory)
	level("broker_threads", now.Threads)
	level("broker_open_files", now.Files)
	level("broker_heap_bytes", now.Heap)
	total("broker_collections_total", u.Collections, 1)
	total("broker_collection_seconds_total", u.CollectionTime, 1e6)
	gauge("broker_host_load1", now.Load)
	gauge("broker_host_disk_busy_ratio", now.DiskBusy)
	total("broker_host_disk_bytes_total", u.DiskRead, 1, "read")
	total("broker_host_disk_bytes_total", u.DiskWritten, 1, "written")
	total("broker_host_network_bytes_total", u.NetIn, 1, "in")
	total("broker_host_network_bytes_total", u.NetOut, 1, "out")
	total("broker_host_network_bytes_total", u.Loopback, 1, "loopback")
	total("broker_log_lines_total", u.Errors, 1, "error")
	total("broker_log_lines_total", u.Warnings, 1, "warning")
	for text, v := range now.Series {
		emit.gauge("broker_series", v, safetext.Line(text))
	}
}
