//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// failure is something that happens to a deployment under load.
type failure struct {
	name     string // in -only
	title    string
	promised string
	expect   expectation
	load     loadPlan
	proxied  bool // clients are connected through a proxy
	apart    bool // tried with -starts only
	// apply lets it happen and returns when it is over; nil if the deployment is configured to fail.
	apply func(ctx context.Context, c *cluster, l *harnessLog) error
}

// expectation is what perfmq must see of a failure.
type expectation struct {
	// outage: all connections break, so there is one outage, and it begins at the failure.
	outage bool
	// several: with outage: connections may end one after the other, and so in several outages that begin at the failure.
	several bool
	// silence: nothing moves; a stall, or an outage if a time-out ended the connections, begins at the failure.
	silence bool
	// unnoticed: no connection breaks.
	unnoticed bool
	// loses: the messages need not survive.
	loses bool
	// refused: the broker refuses messages, and perfmq says so.
	refused bool
	// blocked: the broker holds the producers up.
	blocked bool
	// starts: as outage, and the broker reads many messages when it starts.
	starts bool
	// slow: no connection breaks, and all latencies rise.
	slow bool
	// copied: the slave has all confirmed messages when its master is away.
	copied bool
	// soak: the load of a soak test, of which much is due when the broker goes on.
	soak bool
	// doubted: no connection breaks, and messages are stored but not confirmed.
	doubted bool
}

// loadPlan is the load during a failure.
type loadPlan struct {
	// seconds is the length of the load. The failure happens after calm.
	seconds int
	// live: producers and consumers of a queue are at work during the failure, beside the producers of the queue that is
	// received from afterwards.
	live bool
	// relief is for how many seconds the producers of the kept queue go on when the consumers have come.
	relief int
	// rate of the kept queue, in messages per second.
	rate int
	// backlog is how many small messages are in the kept queues before.
	backlog int
	// pending is how many messages a producer has in flight at most, 50 if it is 0.
	pending int
	// transient: messages are not persistent.
	transient bool
	// unconfirmed: producers ask for no confirmation.
	unconfirmed bool
}

// moving is how long the backlog may take to be sent, and to be received.
func (p *loadPlan) moving() time.Duration { return time.Duration(p.backlog) * time.Millisecond }

const (
	// calm is for how long the load goes on before the failure: perfmq compares the rate afterwards with that time.
	calm = 8 * time.Second
	// stopped is the length of SIGSTOP, held that of an alarm.
	stopped, held = 20 * time.Second, 10 * time.Second

	// A slow line passes each piece on after slowDelay. One in a hundred is lost, and comes after lossDelay more.
	slowDelay, lossDelay, slowFor = 100 * time.Millisecond, 200 * time.Millisecond, 15 * time.Second

	smallSize = 100 // bytes of a message of a backlog

	liveRate, keptRate = 300, 100
)

// failures are those of processes and connections. All are in the order of the page.
func failures() []failure {
	usual := loadPlan{seconds: 32, live: true, rate: keptRate}
	transient := usual
	transient.transient = true
	unconfirmed := usual
	unconfirmed.unconfirmed = true
	atOnce := usual
	atOnce.seconds = 18
	far := usual
	far.pending = 200 // 50 would not do for the rate: each message takes longer
	long := usual
	long.seconds = 42
	longer := usual
	longer.seconds = 60
	return []failure{
		{
			name: "kill", title: "kill -9 and restart", load: usual, apply: killAndStart, expect: expectation{outage: true},
			promised: "confirmed persistent messages survive",
		},
		{
			name: "kill-transient", title: "kill -9 and restart, messages not persistent", load: transient, apply: killAndStart,
			expect:   expectation{outage: true, loses: true},
			promised: "nothing: messages at the broker may be lost",
		},
		{
			name: "kill-unconfirmed", title: "kill -9 and restart, messages sent at most once", load: unconfirmed,
			apply: killAndStart, expect: expectation{outage: true, loses: true},
			promised: "nothing: messages on the way to the broker may be lost",
		},
		{
			name: "stop", title: "SIGSTOP for 20 s", load: long, apply: pauseAndResume, expect: expectation{silence: true},
			promised: "nothing is lost; the load goes on afterwards",
		},
		{
			name: "cut", title: "connections cut in mid-frame", load: atOnce, apply: cutAll, proxied: true,
			expect:   expectation{outage: true, several: true}, // the proxy cuts one after the other
			promised: "confirmed messages stay; a torn frame is no message",
		},
		{
			name: "slow", title: "100 ms more each way and 1% loss for 15 s, by a proxy", load: far, apply: slowDown,
			proxied: true, expect: expectation{slow: true}, promised: "no connection breaks; messages take 200 ms longer",
		},
		{
			name: "kill-primary", title: "kill -9 of the primary", load: usual, expect: expectation{outage: true},
			apply:    func(_ context.Context, c *cluster, l *harnessLog) error { return killOnly(c.primary, l) },
			promised: "the other one takes over, with all confirmed messages",
		},
		{
			name: "kill-backup", title: "kill -9 of the backup", load: atOnce, expect: expectation{unnoticed: true},
			apply:    func(_ context.Context, c *cluster, l *harnessLog) error { return killOnly(c.backup, l) },
			promised: "nothing is noticed",
		},
		{
			name: "kill-master", title: "kill -9 of the master, back after 10 s", load: longer, apply: killMaster,
			expect:   expectation{outage: true, copied: true},
			promised: "the slave has all confirmed messages; producers wait for the master",
		},
		{
			name: "kill-master-async", title: "kill -9 of the master, back after 10 s", load: longer, apply: killMaster,
			expect:   expectation{outage: true},
			promised: "confirmed messages are there when the master is back; the slave may lack the last ones",
		},
		{
			name: "kill-slave", title: "kill -9 of the slave", load: atOnce, expect: expectation{doubted: true},
			apply:    func(_ context.Context, c *cluster, l *harnessLog) error { return killOnly(c.backup, l) },
			promised: "the master stores messages, and says after 3 s that they are not copied",
		},
	}
}

// queueFailures are those in which a broker holds producers up, or refuses messages.
func queueFailures() []failure {
	usual := loadPlan{seconds: 32, live: true, rate: keptRate}
	full := loadPlan{seconds: 10, rate: 300, relief: 10}
	hold := full
	hold.relief = 0 // producers of ActiveMQ Classic whose connection is held up cannot connect again beside it
	return []failure{
		{
			name: "full-block", title: "full queue, producers wait", load: full, expect: expectation{blocked: true},
			promised: "producers are held up, nothing is lost",
		},
		{
			name: "full-store", title: "full store, producers wait", load: hold, expect: expectation{blocked: true},
			promised: "producers are held up, nothing is lost",
		},
		{
			name: "alarm", title: "memory alarm for 10 s, producers wait", load: usual, apply: alarm,
			expect: expectation{silence: true}, promised: "producers are held up, nothing is lost",
		},
		{
			name: "full-fail", title: "full queue, messages refused", load: full, expect: expectation{refused: true},
			promised: "refused messages are reported, all others are there",
		},
	}
}

// storeFailures are those of the store of a broker alone.
func storeFailures() []failure {
	usual := loadPlan{seconds: 52, live: true, rate: keptRate}
	some, many, most := usual, usual, usual
	some.seconds, some.backlog, many.backlog = 26, 200_000, 1_000_000
	most.seconds, most.backlog = 90, 2_000_000
	return []failure{
		{
			name: "start-200k", title: "kill -9 and start with 200,000 stored messages", load: some, apply: killAndStart,
			expect: expectation{outage: true, starts: true}, apart: true,
			promised: "all stored messages are there when it takes new ones",
		},
		{
			name: "start-1m", title: "kill -9 and start with 1,000,000 stored messages", load: many, apply: killAndStart,
			expect: expectation{outage: true, starts: true}, apart: true,
			promised: "all stored messages are there when it takes new ones",
		},
		{
			name: "start-2m", title: "kill -9 and start with 2,000,000 stored messages", load: most, apply: killAndStart,
			expect: expectation{outage: true, starts: true}, apart: true,
			promised: "all stored messages are there when it takes new ones",
		},
	}
}

func killAndStart(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("kill -9")
	c.primary.Kill()
	l.done("the process is gone")
	if err := c.primary.Start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

func killOnly(n node, l *harnessLog) error {
	l.begin("kill -9")
	n.Kill()
	l.done("the process is gone")
	return nil
}

func pauseAndResume(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("SIGSTOP")
	if err := c.primary.Pause(); err != nil {
		return err
	}
	l.done("all threads have stopped")
	defer func() { _ = c.primary.Resume() }() // Close can end a stopped one, too
	if err := wait(ctx, stopped); err != nil {
		return err
	}
	if err := c.primary.Resume(); err != nil {
		return err
	}
	l.note("SIGCONT")
	return nil
}

func cutAll(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("cut")
	n, err := c.tear(ctx)
	l.done(fmt.Sprintf("%d connections have been cut", n))
	return err
}

func slowDown(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("slow")
	c.slow.Slow(true)
	l.done("all pieces are slow")
	if err := wait(ctx, slowFor); err != nil {
		return err
	}
	l.over = time.Now()
	c.slow.Slow(false)
	late, lost := c.slow.Pieces()
	l.note(fmt.Sprintf("slow no more: of %d pieces, %d came %v late for a loss", late, lost, slowDelay+lossDelay))
	return nil
}

func alarm(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("alarm")
	if err := c.alarm(ctx, true); err != nil {
		return err
	}
	l.done("alarm is on")
	before, err := c.depths(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, held); err != nil {
		return err
	}
	after, err := c.depths(ctx)
	if err != nil {
		return err
	}
	for i := range after {
		l.took = append(l.took, after[i]-before[i])
	}
	if err := c.alarm(ctx, false); err != nil {
		return err
	}
	l.note("alarm is off")
	return nil
}

// wait returns after the time, or at the end of the context.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// harnessLog is what the harness did, by its own clock.
type harnessLog struct {
	mu          sync.Mutex
	first, last time.Time // the failure began, and had its effect
	over        time.Time // it ended; zero of one for which that does not matter
	lines       []string
	// took: by endpoint, messages that the kept queue took while the broker was to take none; nil if it was not asked.
	took []int64
	// copied: messages of all queues that the slave had while its master was away; nil if it was not asked.
	copied *int64
}

func (l *harnessLog) begin(text string) { l.first = l.note(text) }

func (l *harnessLog) done(text string) { l.last = l.note(text) }

func (l *harnessLog) note(text string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.lines = append(l.lines, now.Format("15:04:05.000 ")+text)
	return now
}
