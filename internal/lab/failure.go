//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// failure is something that happens to a deployment under load.
type failure struct {
	name     string // in -only
	title    string
	promised string
	expect   expectation
	load     loadPlan
	proxied  bool                  // clients are connected through a proxy
	full     brokertest.FullPolicy // of queues that become full
	// apply lets it happen and returns when it is over; nil if the deployment is configured to fail.
	apply func(ctx context.Context, c *cluster, l *harnessLog) error
}

// expectation is a set of flags: the right report of a failure.
type expectation struct {
	outage    bool // all connections break: one outage begins at the failure
	several   bool // with outage: connections may end one after the other, in several outages that begin at the failure
	silence   bool // nothing moves: a stall, or an outage if a time-out ended the connections, begins at the failure
	unnoticed bool // no connection breaks
	loses     bool // messages need not survive
	refused   bool // the broker refuses messages, and perfmq says so
	blocked   bool // the broker blocks the producers
	starts    bool // as outage, and the broker reads many messages when it starts
	slow      bool // no connection breaks, and all latencies rise
	copied    bool // the slave has all confirmed messages when its master is away
	doubted   bool // no connection breaks, and messages are stored but not confirmed
}

// loadPlan is the load during a failure.
type loadPlan struct {
	// seconds is the length of the load. The failure happens after calm.
	seconds int
	// live: producers and consumers of a queue work during the failure, beside the producers of the kept queue. That is
	// received from afterwards.
	live bool
	// relief is the time, in seconds, for which producers of the kept queue continue beside its consumers.
	relief int
	// rate of the kept queue, in messages per second.
	rate int
	// backlog is the number of small messages in the kept queues before.
	backlog int
	// pending is the limit of a producer's messages in flight; 0: 50.
	pending int
	// transient: messages are not persistent.
	transient bool
	// unconfirmed: producers ask for no confirmation.
	unconfirmed bool
}

// moving is the longest time in which the backlog is sent, or received.
func (p *loadPlan) moving() time.Duration { return time.Duration(p.backlog) * time.Millisecond }

const (
	// calm is the time of the load before the failure: perfmq compares the rate afterwards with it.
	calm = 8 * time.Second
	// stopped is the length of SIGSTOP, held the length of an alarm.
	stopped, held = 20 * time.Second, 10 * time.Second
	// away is the time from the kill of a master to its new start.
	away = 10 * time.Second

	// A slow line passes each piece on after slowDelay. One in a hundred is lost, and comes after lossDelay more.
	slowDelay, lossDelay, slowFor = 100 * time.Millisecond, 200 * time.Millisecond, 15 * time.Second

	smallSize = 100 // bytes of a message of a backlog

	liveRate, keptRate = 300, 100
)

const (
	survive = "confirmed persistent messages survive"
	blocked = "producers are held up, nothing is lost"
)

// failures returns the failures of processes and connections, in the order of the record.
func failures() []failure {
	usual := loadPlan{seconds: 32, live: true, rate: keptRate}
	transient, unconfirmed, atOnce, far, long, longer := usual, usual, usual, usual, usual, usual
	transient.transient, unconfirmed.unconfirmed = true, true
	atOnce.seconds, long.seconds, longer.seconds = 18, 42, 60
	far.pending = 200 // 50 would not do for the rate: each message takes longer
	return []failure{
		{
			name: "kill", title: "kill -9 and restart", load: usual, apply: killAndStart, expect: expectation{outage: true},
			promised: survive,
		},
		{
			name: "kill-transient", title: "kill -9 and restart, messages not persistent", load: transient, apply: killAndStart,
			expect: expectation{outage: true, loses: true}, promised: "nothing: messages at the broker may be lost",
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
			apply: killPrimary, promised: "the other one takes over, with all confirmed messages",
		},
		{
			name: "kill-backup", title: "kill -9 of the backup", load: atOnce, expect: expectation{unnoticed: true},
			apply: killBackup, promised: "nothing is noticed",
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
			apply: killBackup, promised: "the master stores messages, and says after 3 s that they are not copied",
		},
	}
}

// brokerFailures returns the failures that a broker or its operator causes.
func brokerFailures() []failure {
	usual := loadPlan{seconds: 32, live: true, rate: keptRate}
	full := loadPlan{seconds: 10, rate: 300, relief: 10}
	hold := full
	hold.relief = 0 // producers of ActiveMQ Classic whose connection is held up cannot connect again beside it
	list := []failure{
		{
			name: "restart", title: "orderly stop and restart", load: usual, apply: stopAndStart,
			expect: expectation{outage: true, several: true}, promised: survive,
		},
		{
			name: "dismiss", title: "connections closed by the operator", load: usual, apply: dismissAll,
			expect:   expectation{outage: true, several: true},
			promised: "confirmed messages stay; clients may connect again at once",
		},
		{
			name: "full-block", title: "full queue, producers wait", load: full, full: brokertest.PolicyBlock,
			expect: expectation{blocked: true}, promised: blocked,
		},
		{
			name: "full-store", title: "full store, producers wait", load: hold, full: brokertest.PolicyBlock,
			expect: expectation{blocked: true}, promised: blocked,
		},
		{
			name: "alarm", title: "memory alarm for 10 s, producers wait", load: usual, apply: alarm,
			expect: expectation{silence: true}, promised: blocked,
		},
		{
			name: "full-fail", title: "full queue, messages refused", load: full, full: brokertest.PolicyFail,
			expect: expectation{refused: true}, promised: "refused messages are reported, all others are there",
		},
	}
	for _, start := range []struct {
		name, count      string
		backlog, seconds int
	}{
		{"start-200k", "200,000", 200_000, 26},
		{"start-1m", "1,000,000", 1_000_000, 52},
		{"start-2m", "2,000,000", 2_000_000, 90},
	} {
		load := usual
		load.seconds, load.backlog = start.seconds, start.backlog
		list = append(list, failure{
			name: start.name, title: "kill -9 and start with " + start.count + " stored messages", load: load,
			apply: killAndStart, expect: expectation{outage: true, starts: true},
			promised: "all stored messages are there when it takes new ones",
		})
	}
	return list
}

func killAndStart(ctx context.Context, c *cluster, l *harnessLog) error {
	if err := killPrimary(ctx, c, l); err != nil {
		return err
	}
	if err := c.primary.Start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

func killPrimary(_ context.Context, c *cluster, l *harnessLog) error {
	l.kill(c.primary)
	return nil
}

func killBackup(_ context.Context, c *cluster, l *harnessLog) error {
	l.kill(c.backup)
	return nil
}

// killMaster kills a master, asks its slave, which does not take over, for its messages, and starts the master.
func killMaster(ctx context.Context, c *cluster, l *harnessLog) error {
	l.kill(c.primary)
	if err := wait(ctx, away); err != nil {
		return err
	}
	n, err := c.copied(ctx)
	if err != nil {
		return err
	}
	l.copied = &n
	if err := c.primary.Start(ctx); err != nil {
		return err
	}
	l.note("started again")
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

func stopAndStart(ctx context.Context, c *cluster, l *harnessLog) error {
	stop, start := c.stop, c.start
	if stop == nil {
		stop = func(context.Context) error { return c.primary.Stop() }
		start = c.primary.Start
	}
	l.begin("stop")
	if err := stop(ctx); err != nil {
		return err
	}
	l.done("the broker has stopped")
	if err := start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

func dismissAll(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("close all connections")
	err := c.dismiss(ctx)
	l.done("all connections have been closed")
	return err
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

// harnessLog holds the deeds of the harness, by its own clock.
type harnessLog struct {
	mu          sync.Mutex
	first, last time.Time // the failure began, and had its effect
	over        time.Time // it ended; zero of a failure for which that does not matter
	lines       []string
	// took: by endpoint, messages that the kept queue took while the broker was to take none; nil if it was not asked.
	took []int64
	// copied: messages of all queues that the slave had while its master was away; nil if it was not asked.
	copied *int64
}

func (l *harnessLog) begin(text string) { l.first = l.note(text) }

func (l *harnessLog) done(text string) { l.last = l.note(text) }

func (l *harnessLog) kill(n node) {
	l.begin("kill -9")
	n.Kill()
	l.done("the process is gone")
}

func (l *harnessLog) note(text string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.lines = append(l.lines, now.Format("15:04:05.000 ")+text)
	return now
}
