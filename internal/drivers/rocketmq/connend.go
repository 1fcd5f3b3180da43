package rocketmq

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// sweep ends the calls whose time is over: that is told from when sweeps have seen them, so that submitting need not look
// at the clock. It is to be called every sweepEvery, by which a time limit can be exceeded twice.
func (c *conn) sweep() {
	now := time.Since(c.begin)
	c.endCalls(errNoAnswer, func(e *call) bool {
		if e.seen == 0 {
			e.seen = now
			return false
		}
		return now-e.seen >= e.limit
	})
}

// endCalls ends the calls that match.
func (c *conn) endCalls(err error, match func(*call) bool) {
	var over []call
	c.mu.Lock()
	if c.live > 0 {
		for i := range c.calls {
			if e := &c.calls[i]; e.to != nil && match(e) {
				over = append(over, *e)
				c.remove(e.opaque)
			}
		}
	}
	c.mu.Unlock()
	for _, e := range over {
		e.to.answer(e.arg, &reply{err: err})
	}
}

// abandon ends all calls of an answerer.
func (c *conn) abandon(to answerer) {
	c.endCalls(errAbandoned, func(e *call) bool { return e.to == to })
	var over []oneWay
	c.mu.Lock()
	for _, list := range []*[]oneWay{&c.waiting, &c.leaving} {
		kept := (*list)[:0]
		for _, e := range *list {
			if e.to == to {
				over = append(over, e)
			} else {
				kept = append(kept, e)
			}
		}
		*list = kept
	}
	c.mu.Unlock()
	for _, e := range over {
		e.to.answer(e.arg, &reply{err: errAbandoned})
	}
}

// fail ends the connection; the first reason counts. All calls end with it.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.dead)
	c.mu.Unlock()
	_ = c.net.Close()
	c.endCalls(err, func(*call) bool { return true })
	c.endLeaving(err)
	c.mu.Lock()
	c.leaving, c.waiting = c.waiting, nil
	c.mu.Unlock()
	c.endLeaving(err)
}

// close ends the connection and waits for its goroutines.
func (c *conn) close() {
	c.fail(driver.Errorf(driver.ClassConnectionLost, "", "", "the connection was closed"))
	c.wg.Wait()
}
