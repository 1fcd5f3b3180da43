package load

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Requests are the requests of a producer. A request keeps its place from its sending until the broker has answered and
// its reply has come or has timed out. So --max-pending bounds the requests without a reply.
//
// The correlation ID of a request is the text of a [driver.ID]: run, producer, the number of the request, and, in
// place of a checksum, its place.
type Requests struct {
	producer atomic.Pointer[Producer] // the present one
	timeout  time.Duration
	next     driver.ID // of Run's goroutine, as is text
	text     [driver.MaxIDText]byte

	mu    sync.Mutex
	table []request // by place
	open  int       // requests that await a reply
	count int64     // requests so far
	// missed are the numbers of requests that no longer await a reply and had none.
	missed *roaring64.Bitmap
}

// request is the request of a place.
type request struct {
	number           int64 // below 0: no reply is awaited
	intended, actual time.Duration
	phase            stats.Phase
	unended          bool // the broker has not answered yet
}

// NewRequests returns the requests of a producer of a run.
func NewRequests(run int64, producer int) *Requests {
	return &Requests{next: driver.ID{Run: run, Producer: int64(producer)}, missed: roaring64.New()}
}

// SetTimeout sets the time after the sending of a request in which its reply must come. Call it while no request is
// open.
func (q *Requests) SetTimeout(timeout time.Duration) {
	q.mu.Lock()
	q.timeout = timeout
	q.mu.Unlock()
}

// begin numbers a request that is about to be handed over.
func (q *Requests) begin(m *driver.Message, index uint32, phase stats.Phase, intended, actual time.Duration) {
	q.next.Sum = int64(index)
	m.Correlation = q.next.Append(q.text[:0])
	q.mu.Lock()
	for int(index) >= len(q.table) {
		q.table = append(q.table, request{number: -1})
	}
	q.table[index] = request{q.next.Number, intended, actual, phase, true}
	q.open++
	q.next.Number++
	q.count = q.next.Number
	q.mu.Unlock()
}

// takeBack undoes begin: the request has not left, and its place is free.
func (q *Requests) takeBack(index uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := &q.table[index]; r.number >= 0 {
		q.close(r)
	}
}

// restamp notes that a request is sent only now.
func (q *Requests) restamp(index uint32, now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.table[index].actual = now
}

// ended notes the broker's answer to a request and reports whether its place is free. To a request that the broker does
// not have, no reply is awaited.
func (q *Requests) ended(index uint32, o *driver.Outcome) (free bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := &q.table[index]
	r.unended = false
	if r.number >= 0 && o.State != driver.Accepted && o.State != driver.Unknown {
		q.miss(r)
	}
	return r.number < 0
}

// miss lets a request await its reply no longer. The lock is held.
func (q *Requests) miss(r *request) {
	q.missed.Add(uint64(r.number)) //nolint:gosec // not negative
	q.close(r)
}

// close ends the wait for a reply. The lock is held.
func (q *Requests) close(r *request) {
	r.number = -1
	q.open--
}

// Open returns the number of requests that await a reply.
func (q *Requests) Open() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open
}

// reply matches a reply that came now. It returns its request, what the reply is, and whether the place of the request
// is free.
func (q *Requests) reply(id *driver.ID, now time.Duration) (r request, as result.Counter, free bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	known := id.Sum < int64(len(q.table)) && q.table[id.Sum].number == id.Number
	switch {
	case known && now-q.table[id.Sum].actual <= q.timeout:
		r = q.table[id.Sum]
		q.close(&q.table[id.Sum])
		return r, result.Replies, !r.unended
	case known:
		r = q.table[id.Sum]
		q.close(&q.table[id.Sum])
		return r, result.TimedOut, !r.unended
	case q.missed.CheckedRemove(uint64(id.Number)): //nolint:gosec // IDs are not negative
		return r, result.LateReplies, false
	case id.Number >= q.count:
		return r, result.ForeignReplies, false
	default:
		return r, result.DuplicateReplies, false
	}
}

// expire ends the wait for replies that did not come in time, by that moment, and returns the free places.
func (q *Requests) expire(now time.Duration, timedOut func(stats.Phase)) (free []driver.Slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.table {
		r := &q.table[i]
		if r.number < 0 || now-r.actual <= q.timeout {
			continue
		}
		timedOut(r.phase)
		if q.miss(r); !r.unended {
			free = append(free, driver.NewSlot(uint32(i), 0)) //nolint:gosec // below MaxPending
		}
	}
	return free
}

// EndReplies ends the wait for all replies: their requests have timed out.
func (p *Producer) EndReplies() { p.expireReplies(math.MaxInt64) }

func (p *Producer) expireReplies(now time.Duration) {
	free := p.cfg.Requests.expire(now, func(due stats.Phase) { p.rec.Add(due, result.TimedOut, 1) })
	if len(free) > 0 {
		p.release(free...)
	}
}

// Reply takes a reply with the given correlation ID, which names the producer. Any goroutine may call it.
func (q *Requests) Reply(id driver.ID) { q.producer.Load().takeReply(id) }

func (p *Producer) takeReply(id driver.ID) {
	now := p.clock.Now()
	r, as, free := p.cfg.Requests.reply(&id, now)
	switch as {
	case result.Replies:
		p.rec.Replied(r.phase, r.intended, now)
	case result.TimedOut: // nobody has looked since
		p.rec.Add(r.phase, result.TimedOut, 1)
		p.rec.Add(r.phase, result.LateReplies, 1)
	default:
		p.rec.Add(stats.Measure, as, 1)
	}
	if free {
		p.release(driver.NewSlot(uint32(id.Sum), 0)) //nolint:gosec // a place
	}
}
