package result

import (
	"slices"
	"strings"
)

// BrokerUse is the use of resources by a broker and its host, and the messages in the broker's log. Unknown values are
// missing.
type BrokerUse struct {
	// Span is the time between the two samples of the interval.
	Span int64 `json:"span"`
	// CPU is the processor time that the broker's process used in CPUSpan.
	CPU     *uint64 `json:"cpu,omitempty" metric:"broker_cpu_seconds_total" help:"Processor time used by the broker since the load began."`
	CPUSpan int64   `json:"cpuSpan,omitempty"`
	// Memory is its resident memory in bytes: at the end of an interval, or the maximum of a whole run. The same holds for
	// Threads, Files and Heap.
	Memory *uint64 `json:"memory,omitempty" metric:"broker_memory_bytes" help:"Resident memory of the broker."`
	// Threads is the number of its threads.
	Threads *uint64 `json:"threads,omitempty" metric:"broker_threads" help:"Threads of the broker."`
	// Files is the number of its open files, sockets included.
	Files *uint64 `json:"files,omitempty" metric:"broker_open_files" help:"Open files of the broker, sockets included."`
	// Heap is the used heap of the JVM in bytes.
	Heap *uint64 `json:"heap,omitempty" metric:"broker_heap_bytes" help:"Used heap of the broker's JVM."`
	// Collections are garbage collections of the JVM, CollectionTime is the time that they took.
	Collections    *uint64 `json:"collections,omitempty" metric:"broker_collections_total" help:"Garbage collections of the broker's JVM."`
	CollectionTime *uint64 `json:"collectionTime,omitempty" metric:"broker_collection_seconds_total" help:"Time of these collections."`
	// Load is the load average of the last minute of the broker's host: at the end of an interval, or the maximum of a
	// whole run.
	Load *float64 `json:"load,omitempty" metric:"broker_host_load1" help:"Load average of the last minute of the broker's host."`
	// DiskBusy is the share of the time in which the busiest disk was busy, from 0 to 1; of a whole run, the value of the
	// busiest interval.
	DiskBusy *float64 `json:"diskBusy,omitempty" metric:"broker_host_disk_busy_ratio" help:"Share of the time in which its busiest disk worked."`
	// DiskTime is the time in which the busiest disk of each interval was busy.
	DiskTime *uint64 `json:"diskTime,omitempty"`
	// DiskRead and DiskWritten are bytes of all disks.
	DiskRead    *uint64 `json:"diskRead,omitempty" metric:"broker_host_disk_bytes_total" label:"direction=read" help:"Bytes of all disks of the broker's host."`
	DiskWritten *uint64 `json:"diskWritten,omitempty" metric:"broker_host_disk_bytes_total" label:"direction=written" help:"Bytes of all disks of the broker's host."`
	// NetIn and NetOut are bytes of all network interfaces except the loopback, Loopback the bytes of the loopback.
	NetIn    *uint64 `json:"netIn,omitempty" metric:"broker_host_network_bytes_total" label:"direction=in" help:"Bytes of all networks of the broker's host."`
	NetOut   *uint64 `json:"netOut,omitempty" metric:"broker_host_network_bytes_total" label:"direction=out" help:"Bytes of all networks of the broker's host."`
	Loopback *uint64 `json:"loopback,omitempty" metric:"broker_host_network_bytes_total" label:"direction=loopback" help:"Bytes of all networks of the broker's host."`
	// Errors and Warnings are lines of the broker's log.
	Errors   *uint64 `json:"errors,omitempty" metric:"broker_log_lines_total" label:"level=error" help:"Errors and warnings in the broker's log."`
	Warnings *uint64 `json:"warnings,omitempty" metric:"broker_log_lines_total" label:"level=warning" help:"Errors and warnings in the broker's log."`
}

// BrokerSide is the use of resources by a broker and its host while perfmq watched them: from the start of the load
// to the end of the run.
type BrokerSide struct {
	// Host is the host of perfmq that watched; only of a merged result.
	Host string `json:"host,omitempty"`
	// Sources are the watched sources: a process, an endpoint, a log.
	Sources []string `json:"sources"`
	// Whole is the sum, or the maximum, over the whole time.
	Whole BrokerUse `json:"whole"`
	// CPUMost is the highest processor use of the process in an interval, in processors; missing if it is not known.
	CPUMost *float64 `json:"cpuMost,omitempty"`
	// FirstError and FirstWarning are the first such lines of the log.
	FirstError   string `json:"firstError,omitempty"`
	FirstWarning string `json:"firstWarning,omitempty"`
	// Events are the ends of the process: it is not looked for again.
	Events []BrokerEvent `json:"events,omitempty"`
	// Notes are the reasons why values are missing.
	Notes []string `json:"notes,omitempty"`
}

// BrokerEvent is an event at the broker.
type BrokerEvent struct {
	// Time is when perfmq noticed it, by perfmq's wall clock.
	Time int64 `json:"time"`
	// Text describes the event.
	Text string `json:"text"`
}

// metrics adds the averages over the time, and of memory and load the maximum.
func (u *BrokerUse) metrics(f map[string]float64) {
	put := func(name string, times float64, span int64, amounts ...*uint64) {
		sum := 0.0
		for _, n := range amounts {
			if n == nil || span <= 0 {
				return
			}
			sum += float64(*n)
		}
		f["broker."+name] = times * sum / float64(span)
	}
	put("cpu", 1, u.CPUSpan, u.CPU)
	put("memory", 1, 1, u.Memory)
	put("disk", 100, u.Span, u.DiskTime)
	put("network", 1e6, u.Span, u.NetIn, u.NetOut)
	put("loopback", 1e6, u.Span, u.Loopback)
	if u.Load != nil {
		f["broker.load"] = *u.Load
	}
}

// Differs returns the distance of the count from its range, above or below; 0 if it is within the range, or unknown.
func (c *Compared) Differs() int64 {
	switch {
	case c == nil:
		return 0
	case c.Count > c.Most:
		return int64(c.Count - c.Most) //nolint:gosec // far below
	case c.Count < c.Least:
		return -int64(c.Least - c.Count) //nolint:gosec // far below
	default:
		return 0
	}
}

// Unknown returns the reasons why values are unknown, each once.
func (c *BrokerCount) Unknown() (list []string) {
	add := func(text string) {
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, note := range c.Notes {
		add(note)
	}
	for _, d := range c.Destinations {
		if !slices.ContainsFunc(c.Notes, func(note string) bool { return strings.HasSuffix(note, d.Why) }) {
			add(d.Why)
		}
	}
	return list
}
