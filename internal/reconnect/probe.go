package reconnect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// probesAtOnce is the maximum number of attempts of one probe without an outcome. The oldest may take the connect
// time-out, since a broker that has just started may be slow; the others end after some times stuckAfter.
const probesAtOnce = 4

const (
	// firstPause is the longest pause before the first attempt. Further pauses double.
	firstPause = 100 * time.Millisecond
	// stuckAfter is the time after which an attempt without an outcome no longer delays the next one: a host that drops
	// our packets, or a broker that accepts a connection and is silent, must not make an outage longer than it is.
	stuckAfter = 500 * time.Millisecond
	// lasting is the least life of a connection after which the first attempt follows a short pause again.
	lasting = time.Second
	// lastTry bounds the last attempt of a run that ends in an outage.
	lastTry = stuckAfter
	// sameMoment bounds the time between workers that notice the end of the run and share the last attempt.
	sameMoment = 20 * time.Millisecond
)

// host returns the host of that index in the URL of a link.
func (c *Config) host(index int) *host {
	first := min(c.Delay, firstPause)
	known, _ := c.Hosts.LoadOrStore([3]any{c.URL, c.Delay, index}, &host{
		index: index, first: first, longest: c.Delay, pause: first, turns: make(chan struct{}, c.AtOnce),
	})
	return known.(*host) //nolint:forcetypeassert // there is nothing else in the map
}

// host is a host to which workers reconnect. However many workers wait, it is probed by one attempt after the other, of
// the workers in turn. When an attempt succeeds, all waiting workers try at once.
type host struct {
	index   int
	first   time.Duration // pause
	longest time.Duration // pause
	turns   chan struct{} // limits the attempts after a success

	mu      sync.Mutex
	waiting []*seat       // in the order of their probes
	probes  []*probe      // without an outcome, in the order of their starts
	pause   time.Duration // before the next probe
	last    time.Time     // start of the last probe
	back    time.Time     // when an attempt succeeded; zero if none did, or if a later one failed
	timer   *time.Timer
}

// seat is a worker that waits for a host.
type seat struct {
	w    *waiter
	busy int  // number of its attempts without an outcome
	turn bool // one of them follows a success
}

// probe is an attempt to connect to a host that is not known to be there.
type probe struct {
	cancel   context.CancelCauseFunc
	begun    time.Time
	produces bool // it is that of a producer
}

// giveUp ends a probe without an outcome.
func (p *probe) giveUp(now time.Time) {
	p.cancel(driver.Errorf(driver.ClassConnect, "connect", "", "no answer within %s",
		now.Sub(p.begun).Round(time.Millisecond)))
}

// enter adds a waiting worker. The first one is probed after the pause, or at once. After a short-lived connection a
// worker pauses as long as after a failed attempt.
func (h *host) enter(w *waiter, atOnce, lasted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, &seat{w: w})
	if len(h.waiting) > 1 {
		return
	}
	h.back = time.Time{}
	now, pause := time.Now(), h.pause
	if lasted {
		h.pause = h.first
		pause = h.pause
	}
	if atOnce {
		pause = 0
	}
	h.probeAt(now.Add(max(pause, h.last.Add(h.pause).Sub(now))))
}

// probeAt sets the time of the next probe. The caller holds the lock.
func (h *host) probeAt(t time.Time) {
	if h.timer == nil {
		h.timer = time.AfterFunc(time.Until(t), h.probe)
	} else {
		h.timer.Reset(time.Until(t))
	}
}

// leave removes a worker.
func (h *host) leave(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(p *seat) bool { return p.w == w })
	if len(h.waiting) == 0 && h.timer != nil {
		h.timer.Stop()
	}
}

// hurry probes at once, unless a probe has begun in this moment.
func (h *host) hurry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); len(h.waiting) > 0 && now.Sub(h.last) > sameMoment {
		h.start(now)
	}
}

// probe is called when the next probe is due.
func (h *host) probe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case len(h.waiting) == 0 || now.Before(h.last.Add(h.pause)): // the timer was stopped too late
	case !h.back.IsZero() && !slices.ContainsFunc(h.waiting, func(p *seat) bool { return p.busy == 0 }):
		// The host is slow, not silent: a second attempt of a worker would slow it down, and disturb the first one. Members
		// of a consumer group wait for each other.
		h.probeAt(now.Add(stuckAfter))
	default:
		h.start(now)
	}
}

// next returns the index of the worker for the next probe: one without an attempt, if there is one. Producers come
// first, since a broker may be slow to accept consumers, unless more producers than consumers have a probe without an
// outcome.
func (h *host) next() int {
	first := 0
	for _, p := range h.probes {
		if p.produces {
			first--
		} else {
			first++
		}
	}
	next := slices.IndexFunc(h.waiting, func(p *seat) bool { return p.busy == 0 && p.w.produces == (first >= 0) })
	if next < 0 {
		next = slices.IndexFunc(h.waiting, func(p *seat) bool { return p.busy == 0 })
	}
	return max(0, next)
}

// start starts a probe. The caller holds the lock.
func (h *host) start(now time.Time) {
	next := h.next()
	p := h.waiting[next]
	h.waiting = append(slices.Delete(h.waiting, next, next+1), p)
	if len(h.probes) == probesAtOnce {
		h.probes[1].giveUp(now)
		h.probes = slices.Delete(h.probes, 1, 2)
	}
	ctx, cancel := context.WithCancelCause(p.w.attempts)
	attempt := &probe{cancel, now, p.w.produces}
	h.probes = append(h.probes, attempt)
	h.last, h.pause = now, min(2*h.pause, h.longest)
	h.probeAt(now.Add(max(h.pause, stuckAfter)))
	p.busy++
	p.w.running.Go(func() {
		defer cancel(nil)
		err := p.w.try(ctx, h.index, func() { h.succeeded(p, attempt) })
		h.probed(p, attempt, err)
	})
}

// succeeded records the success of a probe, before its worker can use and lose the connection: a worker that enters
// after that waits for the next probe.
func (h *host) succeeded(p *seat, attempt *probe) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(attempt)
	h.ended(attempt.begun, nil)
	for _, other := range h.probes { // those workers follow, too, with one attempt
		other.giveUp(h.back)
	}
	for _, other := range h.waiting {
		if !other.turn && other.w != p.w {
			other.turn = true
			other.busy++
			other.w.running.Go(func() { h.follow(other) })
		}
	}
}

// probed records the outcome of a probe; succeeded has recorded a success.
func (h *host) probed(p *seat, attempt *probe, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.busy--
	h.forget(attempt)
	if err == nil {
		return
	}
	h.ended(attempt.begun, err)
	for _, other := range h.waiting {
		other.w.fail(h, err)
	}
	if attempt.begun.Equal(h.last) && len(h.waiting) > 0 {
		h.probeAt(h.last.Add(h.pause))
	}
}

// forget removes a probe that has an outcome. The caller holds the lock.
func (h *host) forget(attempt *probe) {
	h.probes = slices.DeleteFunc(h.probes, func(other *probe) bool { return other == attempt })
}

// ended records the outcome of an attempt that began at that time. The caller holds the lock.
func (h *host) ended(begun time.Time, err error) {
	if err == nil {
		h.back = time.Now()
	} else if begun.After(h.back) {
		h.back = time.Time{}
	}
}

// follow lets a worker try after the success of a probe.
func (h *host) follow(p *seat) {
	if p.w.spread > 0 {
		timer := time.NewTimer(p.w.spread)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.w.attempts.Done():
			return
		}
	}
	select {
	case h.turns <- struct{}{}:
	case <-p.w.attempts.Done():
		return
	}
	begun := time.Now()
	err := p.w.try(p.w.attempts, h.index, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended(begun, nil)
	})
	<-h.turns
	h.mu.Lock()
	defer h.mu.Unlock()
	p.turn = false
	p.busy--
	if err != nil {
		h.ended(begun, err)
		p.w.fail(h, err)
	}
}

// waiter is a worker without a connection, on its way through the hosts of its URL. It waits at the first one. Once an
// attempt there has failed, or has no outcome soon, it waits at the next one, too, and so on.
type waiter struct {
	attempts context.Context //nolint:containedctx // ends with its wait
	// try opens a connection to a host, and calls opened before the worker gets it. The waiter closes a connection that
	// it no longer needs.
	try      func(ctx context.Context, host int, opened func()) error
	produces bool
	spread   time.Duration  // from the return of a host to its attempt
	running  sync.WaitGroup // attempts
	news     chan struct{}  // with room for one: an attempt has failed

	hosts   []*host // in the order of the worker
	reached int     // number of hosts at which it waits
	further *time.Timer

	mu      sync.Mutex
	refused map[*host]bool // an attempt has failed there in this wait
	err     error          // of the last attempt
}

// fail records a failed attempt at a host, its own or the probe of another worker.
func (w *waiter) fail(lost *host, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[lost], w.err = true, err
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// last returns the error of the last attempt.
func (w *waiter) last() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// enter waits at the first host. The connection that was lost there lasted for a while, or did not.
func (w *waiter) enter(lasted bool) {
	w.hosts[0].enter(w, false, lasted)
	w.reached, w.further = 1, time.NewTimer(stuckAfter)
}

// reach waits at the next host.
func (w *waiter) reach() {
	if w.reached < len(w.hosts) {
		w.hosts[w.reached].enter(w, true, true)
		w.reached++
		w.further.Reset(stuckAfter)
	}
}

// leave ends the waiting.
func (w *waiter) leave() {
	w.further.Stop()
	for _, h := range w.hosts[:w.reached] {
		h.leave(w)
	}
}

// end begins the last attempt at each host.
func (w *waiter) end() {
	for w.reached < len(w.hosts) {
		w.reach()
	}
	for _, h := range w.hosts {
		h.hurry()
	}
}

// reachFurther waits at the next host, too, if an attempt has failed at the last one.
func (w *waiter) reachFurther() {
	w.mu.Lock()
	refused := w.refused[w.hosts[w.reached-1]]
	w.mu.Unlock()
	if refused {
		w.reach()
	}
}
