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
	// stopped is the length of SIGSTOP.
	stopped = 20 * time.Second

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
	transient, unconfirmed, atOnce, long := usual, usual, usual, usual
	transient.transient, unconfirmed.unconfirmed = true, true
	atOnce.seconds, long.seconds = 18, 42
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
			name: "kill-primary", title: "kill -9 of the primary", load: usual, expect: expectation{outage: true},
			apply: killPrimary, promised: "the other one takes over, with all confirmed messages",
		},
		{
			name: "kill-backup", title: "kill -9 of the backup", load: atOnce, expect: expectation{unnoticed: true},
			apply: killBackup, promised: "nothing is noticed",
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
	l.kill(c.primary)
	return l.start(ctx, c.primary)
}

func killPrimary(_ context.Context, c *cluster, l *harnessLog) error {
	l.kill(c.primary)
	return nil
}

func killBackup(_ context.Context, c *cluster, l *harnessLog) error {
	l.kill(c.backup)
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

func stopAndStart(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("stop")
	if err := c.primary.Stop(); err != nil {
		return err
	}
	l.done("the broker has stopped")
	return l.start(ctx, c.primary)
}

func dismissAll(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("close all connections")
	err := c.dismiss(ctx)
	l.done("all connections have been closed")
	return err
}

// harnessLog holds the deeds of the harness, by its own clock.
type harnessLog struct {
	mu          sync.Mutex
	first, last time.Time // the failure began, and had its effect
	lines       []string
}

func (l *harnessLog) begin(text string) { l.first = l.note(text) }

func (l *harnessLog) done(text string) { l.last = l.note(text) }

func (l *harnessLog) kill(n node) {
	l.begin("kill -9")
	n.Kill()
	l.done("the process is gone")
}

func (l *harnessLog) start(ctx context.Context, n node) error {
	if err := n.Start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

func (l *harnessLog) note(text string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.lines = append(l.lines, now.Format("15:04:05.000 ")+text)
	return now
}
