package brokerside

import (
	"time"
)

// sample is the state of all counters at a moment. Unknown values are nil.
type sample struct {
	at, cpuAt, diskAt                              time.Time
	cpu, collectionTime                            *int64
	memory, threads, files, heap, collections      *uint64
	load                                           *float64
	diskTime                                       map[string]uint64 // milliseconds
	diskRead, diskWritten, netIn, netOut, loopback *uint64
	errors, warnings                               *uint64
	series                                         map[string]float64
}

// counters returns the counts and measurements of a broker and its host, each from one source, in the same order for
// all samples; CPU, the times of disks and the load are apart.
func (s *sample) counters() []**uint64 {
	return []**uint64{
		&s.memory, &s.threads, &s.files, &s.heap, &s.collections, &s.diskRead, &s.diskWritten, &s.netIn, &s.netOut,
		&s.loopback,
	}
}

// fill takes the values that o has and s does not.
func (s *sample) fill(o *sample) {
	if s.cpu == nil {
		s.cpu, s.cpuAt = o.cpu, o.cpuAt
	}
	if s.diskTime == nil {
		s.diskTime, s.diskAt = o.diskTime, o.diskAt
	}
	if s.collectionTime == nil {
		s.collectionTime = o.collectionTime
	}
	if s.load == nil {
		s.load = o.load
	}
	if s.series == nil {
		s.series = o.series
	}
	from := o.counters()
	for i, to := range s.counters() {
		if *to == nil {
			*to = *from[i]
		}
	}
}

// without forgets the values that o has.
func (s *sample) without(o *sample) {
	if o.cpu != nil {
		s.cpu = nil
	}
	if o.diskTime != nil {
		s.diskTime = nil
	}
	if o.collectionTime != nil {
		s.collectionTime = nil
	}
	if o.load != nil {
		s.load = nil
	}
	known := o.counters()
	for i, to := range s.counters() {
		if *known[i] != nil {
			*to = nil
		}
	}
}

// keeping returns the sample with the counters of the one before that it does not know: a question without an answer
// loses nothing.
func (s *sample) keeping(before *sample) sample {
	kept, counters := *s, *before
	counters.load, counters.series = nil, nil
	counters.memory, counters.threads, counters.files, counters.heap = nil, nil, nil, nil
	kept.fill(&counters)
	return kept
}

// between returns the usage from one sample to the next.
func between(from, to *sample) Use {
	u := Use{
		Span: to.at.Sub(from.at).Microseconds(), CPU: grown(from.cpu, to.cpu), Memory: to.memory, Threads: to.threads,
		Files: to.files,
		Heap:  to.heap, Collections: grown(from.collections, to.collections), CollectionTime: grown(from.collectionTime,
			to.collectionTime),
		Load: to.load, DiskRead: grown(from.diskRead, to.diskRead), DiskWritten: grown(from.diskWritten, to.diskWritten),
		NetIn: grown(from.netIn, to.netIn), NetOut: grown(from.netOut, to.netOut), Loopback: grown(from.loopback,
			to.loopback),
		Errors: grown(from.errors, to.errors), Warnings: grown(from.warnings, to.warnings), Series: to.series,
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
	}
	return u
}
