package brokerside

import "maps"

// Use is the usage of a broker and its host, and the counts of its log, in an interval or over several. Unknown values
// are nil. Times are in microseconds, sizes in bytes.
type Use struct {
	Span           int64    // between the two samples of which the interval is made
	CPU            *int64   // processor time of the process
	CPUSpan        int64    // in which it was used; 0 if it is not known
	Memory         *uint64  // resident memory at the end, or the most at the end of an interval
	Threads        *uint64  // the same
	Files          *uint64  // open files, the same
	Heap           *uint64  // used heap of the JVM, the same
	Collections    *uint64  // garbage collections of the JVM
	CollectionTime *int64   // in them
	Load           *float64 // average of the last minute of processes that ran or wanted to
	DiskBusy       *float64 // share of the time in which the busiest disk was, from 0 to 1
	DiskRead       *uint64  // bytes of all disks
	DiskWritten    *uint64
	NetIn          *uint64 // bytes of all network interfaces but the loopback
	NetOut         *uint64
	Loopback       *uint64 // bytes over the loopback interface
	Errors         *uint64 // lines of the log
	Warnings       *uint64
	Series         map[string]float64 // values at the end, by the text of the series
}

// join adds an interval that follows.
func (u *Use) join(next *Use) {
	u.Span += next.Span
	u.CPUSpan += next.CPUSpan
	for _, sum := range [][2]**int64{{&u.CPU, &next.CPU}, {&u.CollectionTime, &next.CollectionTime}} {
		plus(sum[0], *sum[1])
	}
	for _, sum := range [][2]**uint64{
		{&u.Collections, &next.Collections},
		{&u.DiskRead, &next.DiskRead},
		{&u.DiskWritten, &next.DiskWritten},
		{&u.NetIn, &next.NetIn},
		{&u.NetOut, &next.NetOut},
		{&u.Loopback, &next.Loopback},
		{&u.Errors, &next.Errors},
		{&u.Warnings, &next.Warnings},
	} {
		plus(sum[0], *sum[1])
	}
	for _, most := range [][2]**uint64{
		{&u.Memory, &next.Memory},
		{&u.Threads, &next.Threads},
		{&u.Files, &next.Files},
		{&u.Heap, &next.Heap},
	} {
		highest(most[0], *most[1])
	}
	highest(&u.Load, next.Load)
	highest(&u.DiskBusy, next.DiskBusy)
	if len(next.Series) > 0 {
		if u.Series = maps.Clone(u.Series); u.Series == nil {
			u.Series = map[string]float64{}
		}
		maps.Copy(u.Series, next.Series)
	}
}

type number interface{ ~int64 | ~uint64 | ~float64 }

// plus adds a number that may not be known.
func plus[N number](to **N, n *N) {
	switch {
	case n == nil:
	case *to == nil:
		v := *n
		*to = &v
	default:
		v := **to + *n
		*to = &v
	}
}

// highest keeps the higher one.
func highest[N number](to **N, n *N) {
	if n != nil && (*to == nil || *n > **to) {
		v := *n
		*to = &v
	}
}

// grown returns by how much a counter has grown; nil if that is not known, or if it has begun anew.
func grown[N number](from, to *N) *N {
	if from == nil || to == nil || *to < *from {
		return nil
	}
	v := *to - *from
	return &v
}

// Join returns two intervals as one; either may be nil.
func Join(a, b *Use) *Use {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a
	sum.join(b)
	return &sum
}
