// Package brokerside measures a broker and its host while a run goes on: its process by pid (processor, memory,
// threads, open files), this host (load, disks, network), series of a Prometheus endpoint, and the lines of a log.
//
//	sources, each in a goroutine of its own -> the latest sample -> [Watch.Take] by the collector, each second
//
// Nothing of it is on the path of a message. A source that does not answer leaves gaps, and a note says why.
package brokerside
