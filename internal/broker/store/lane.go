package store

// entry is a message in a queue.
type entry struct {
	m        *Message // nil: taken out of the middle
	seq      uint64   // place in the queue's history
	attempts uint32   // deliveries so far
}

// lane is a first-in-first-out list that can also lose items from its middle. Positions count from the lane's beginning
// and stay valid until the lane is compacted.
type lane struct {
	items []entry // a ring: position p is at p modulo its length, which is a power of two
	first uint64  // position of the first item
	next  uint64  // position of the next one to be added
	live  int     // items that were not taken
}

// level holds the messages of a queue that have one priority.
type level struct {
	lane
	back []entry // came back from consumers; the oldest is last
}

// keptItems is the largest ring that an empty lane keeps: memory that is not accounted for.
const keptItems = 1 << 12

func (l *lane) at(pos uint64) *entry { return &l.items[pos&uint64(len(l.items)-1)] }

// sparse tells that the next push would make the lane grow although most of its items were taken: an item that no
// consumer takes stands at its front.
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

// resize moves the items; n is a power of two and has room for them.
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
		l.items = nil // a backlog is gone: so is its memory
	}
	return e
}
