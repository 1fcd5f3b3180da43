package load

import (
	"context"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Mender is a [driver.Producer] that replaces its lost connection while no message is due.
type Mender interface {
	// OnNews sets the function to call when Mend has something to do. Any goroutine calls it.
	OnNews(func())
	// Mend begins to replace a lost connection, or takes over the new one. It does not wait for the broker. The error
	// is the reason why the producer cannot continue. The goroutine of [Producer.Run] calls it, between messages.
	Mend(ctx context.Context) error
}

// WaiterOf returns a worker as a [driver.Waiter]; nil if it, or the connection that it replaces when lost, reports no
// waits.
func WaiterOf(worker any) driver.Waiter {
	if l, ok := worker.(interface{ ReportsWaits() bool }); ok && !l.ReportsWaits() {
		return nil
	}
	w, _ := worker.(driver.Waiter)
	return w
}

// news tells Run, while it waits for the time of a message, that the connection has changed.
type news struct {
	mu   sync.Mutex
	due  bool
	why  error // why the driver's producer has ended; nil if it has not, or if it replaces its connection itself
	wake context.CancelFunc
}

// watchConnection lets the driver's producer report the end of its connection.
func (p *Producer) watchConnection() {
	switch w := p.producer.(type) {
	case Mender:
		w.OnNews(func() { p.news.signal(nil) })
	case driver.Watched:
		w.OnEnd(p.news.signal)
	}
}

func (n *news) signal(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due = true; why != nil {
		n.why = why
	}
	if n.wake != nil {
		n.wake()
	}
}

// context returns a context that ends with ctx, and with the next news.
func (n *news) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wake = cancel; n.due {
		cancel()
	}
	return ctx, cancel
}

// handleNews handles the news. It returns an error if the producer cannot continue.
func (p *Producer) handleNews(ctx context.Context) error {
	p.news.mu.Lock()
	p.news.due = false
	why := p.news.why
	p.news.mu.Unlock()
	if m, ok := p.producer.(Mender); ok {
		return m.Mend(ctx)
	}
	return why
}

// dueWait waits for the times of messages, or for news.
type dueWait struct {
	*Sleeper
	ctx  context.Context //nolint:containedctx // it lives within one call of Producer.Run
	stop context.CancelFunc
}

func (p *Producer) newDueWait(ctx context.Context) *dueWait {
	w := new(dueWait)
	w.ctx, w.stop = p.news.context(ctx)
	w.Sleeper = NewSleeper(w.ctx, p.clock, p.cfg.Precise)
	return w
}

func (w *dueWait) close() {
	w.Close()
	w.stop()
}

// waitUntil waits until t. It returns early, with doubt, if a message comes to be in doubt; ok is false if there is
// news, or the context ended.
func (p *Producer) waitUntil(wait *dueWait, t time.Duration) (doubt, ok bool) {
	const precisely = 20 * time.Millisecond // before the moment: no doubt is awaited any more
	for p.load.Resend {
		if p.doubts.count.Load() > 0 {
			return true, true
		}
		left := t - p.clock.Now() - precisely
		if left <= 0 {
			break
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-p.doubts.wake:
		case <-wait.ctx.Done():
			timer.Stop()
			return false, false
		}
		timer.Stop()
	}
	return false, wait.Until(t)
}
