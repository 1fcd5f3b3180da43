package store

// entry is a message in a queue.
type entry struct {
	m        *Message // nil: taken out of the middle
	seq      uint64   // place in the queue's history
	attempts uint32   // deliveries so far
}

// lane is a FIFO from whose middle items can be taken. Positions count from the lane's beginning and stay valid until
// the lane is compacted.
type lane struct {
	items []entry // a ring: position p is at p modulo its length, a power of two
	first uint64  // position of the first item
	next  uint64  // position of the next item to be added
	live  int     // items not taken
}

// level holds a queue's messages of one priority.
type level struct {
	lane
	back []entry // returned by consumers; the oldest is last
}

// keptItems is the largest ring kept by an empty lane: it is memory that is not accounted for.
const keptItems = 1 << 12

func (l *lane) at(pos uint64) *entry { return &l.items[pos&uint64(len(l.items)-1)] }

// sparse reports that the next push would make the lane grow although most of its items were taken: no consumer takes
// the item at its front.
func (l *lane) sparse() bool {
	return l.next-l.first == uint64(len(l.items)) && l.live < len(l.items)/2
}

// compact closes the gaps. Positions change, except that of the next item.
func (l *lane) compact() {
	to := l.next
	for pos := l.next; pos != l.first; {
		pos--
		if e := l.at(pos); e.m != nil {
			to--
			moved := *e
			*e = entry{}
			*l.at(to) = moved
		}
	}
	l.first = to
}

func (l *lane) push(e entry) {
	if l.next-l.first == uint64(len(l.items)) {
		l.resize(max(8, 2*len(l.items)))
	}
	*l.at(l.next) = e
	l.next++
	l.live++
}

// resize moves the items to a ring of n, a sufficient power of two.
func (l *lane) resize(n int) {
	items := make([]entry, n)
	for pos := l.first; pos != l.next; pos++ {
		items[pos&uint64(n-1)] = *l.at(pos)
	}
	l.items = items
}

// take removes the item at pos.
func (l *lane) take(pos uint64) entry {
	e := *l.at(pos)
	*l.at(pos) = entry{}
	l.live--
	for l.first != l.next && l.at(l.first).m == nil {
		l.first++
	}
	if l.live == 0 && len(l.items) > keptItems {
		l.items = nil // the end of a backlog
	}
	return e
}
