package stomp

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/hangup"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// The bounds of the parked frames. The last one may go beyond them.
const (
	maxParked      = 1000
	maxParkedBytes = 1 << 20
)

// parked is a SEND or COMMIT that waits for room.
type parked struct {
	to      *store.Destination // of a SEND
	m       *store.Message
	tx      *transaction // of a COMMIT
	receipt []byte       // nil for none
	size    int
	counted bool  // as one that the fault of being full has kept waiting
	held    int64 // bytes counted against the broker's memory; a transaction counts itself
}

// messages returns how many messages wait.
func (p *parked) messages() int {
	if p.tx == nil {
		return 1
	}
	return p.tx.sends()
}

// parking holds frames that a full destination has no room for. The reader adds to it, the writer takes from it.
type parking struct {
	busy atomic.Bool // there is something; only the reader sets it
	free chan struct{}

	mu    sync.Mutex
	list  []parked
	bytes int
	err   error // a COMMIT failed: the connection is to end
}

// park keeps p until there is room. When there is too much already it waits until there is less: meanwhile the
// connection is not read.
func (c *conn) park(p parked) error {
	if p.tx == nil {
		if n := int64(p.size) + store.MessageSize; c.account.Take(n) {
			p.held = n
		} else if p.size > maxParkedBytes {
			return refuse("limit reached: %s: %s", p.to.Address(), store.ErrNoMemory)
		}
	}
	k := &c.parking
	k.mu.Lock()
	k.list = append(k.list, p)
	k.bytes += p.size
	k.busy.Store(true)
	k.mu.Unlock()
	c.roomAgain() // something may have got room just now; and a frame behind another one has not asked to be told
	return c.awaitParking(maxParked)
}

// awaitParking waits until no more than so many are parked.
func (c *conn) awaitParking(most int) error {
	k := &c.parking
	var look *time.Ticker
	for {
		if !k.busy.Load() {
			return nil
		}
		k.mu.Lock()
		few := len(k.list) <= most && (k.bytes <= maxParkedBytes || len(k.list) == 0)
		err := k.err
		k.mu.Unlock()
		if err != nil {
			return err
		}
		if few {
			return nil
		}
		if err := c.flush(); err != nil {
			return err
		}
		if look == nil {
			look = time.NewTicker(hangup.Every)
			defer look.Stop()
		}
		select {
		case <-k.free:
		case <-look.C:
			if hangup.Seen(c.net) {
				return io.ErrUnexpectedEOF
			}
		case <-c.done:
			return c.why()
		}
	}
}

// roomAgain has the writer look at the parked frames.
func (c *conn) roomAgain() {
	c.mu.Lock()
	c.unpark = true
	c.mu.Unlock()
	c.signal()
}

// retry does the parked frames that there is room for now, in order for each destination, and appends the receipts to
// b. Only the writer calls it.
func (c *conn) retry(b []byte) []byte {
	k := &c.parking
	k.mu.Lock()
	defer k.mu.Unlock()
	blocked := map[*store.Destination]bool{}
	left := k.list[:0]
	for i := range k.list {
		p := k.list[i]
		fits := k.err == nil && p.fits(c, blocked)
		if k.err == nil && !fits && !p.counted {
			p.counted = c.server.store.CountFull(p.messages())
		}
		if !fits || !c.stallOver() {
			left = append(left, p)
			continue
		}
		k.bytes -= p.size
		c.account.Give(p.held)
		var confirm bool
		if p.tx == nil {
			if p.to.Gone() { // deleted meanwhile: made anew
				p.to = c.server.store.Destination(p.to.Address())
			}
			confirm = p.to.Send(p.m) == store.Stored
		} else if confirm, k.err = p.tx.apply(p.receipt); k.err != nil {
			_ = c.net.SetReadDeadline(time.Now()) // the reader is to tell the client
		}
		if confirm && p.receipt != nil {
			b = appendReceipt(b, p.receipt)
		}
	}
	clear(k.list[len(left):])
	if k.list = left; len(left) == 0 && k.err == nil {
		k.busy.Store(false)
	}
	select {
	case k.free <- struct{}{}:
	default:
	}
	return b
}

// fits tells whether there is room for p, and nothing for its destinations before it.
func (p *parked) fits(c *conn, blocked map[*store.Destination]bool) bool {
	if p.tx == nil {
		if blocked[p.to] || !p.to.Room(c.tellRoom) {
			blocked[p.to] = true
			return false
		}
		return true
	}
	ok := true
	for _, d := range p.tx.destinations() {
		if blocked[d] || !d.Room(c.tellRoom) {
			ok = false
		}
	}
	for _, d := range p.tx.destinations() {
		blocked[d] = blocked[d] || !ok
	}
	return ok
}

// failure returns why a COMMIT that was parked failed.
func (k *parking) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
