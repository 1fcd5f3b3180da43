//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// diskSize is that of a broker's own disk, of which each broker leaves most free at first.
	diskSize = 256 << 20
	// takesAgain is how long a broker may take to store messages again when its disk has space.
	takesAgain = 6 * time.Second
)

// fillDisk fills the disk for some time. A broker that has ended itself by then is started again when there is space,
// and one that stores nothing for a while, as an operator would do.
func fillDisk(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("the disk is filled")
	if err := c.disk.FillDisk(); err != nil {
		return err
	}
	l.done("the disk is full")
	if err := c.hold(ctx, l); err != nil {
		return err
	}
	if err := c.disk.FreeDisk(); err != nil {
		return err
	}
	l.note("there is space again")
	stores, err := c.stores(ctx)
	if err != nil {
		return err
	}
	if stores {
		l.say("it went on when there was space")
		return nil
	}
	select {
	case <-c.disk.Done():
		if l.ended.IsZero() {
			l.say("it ended itself when there was space again, and was started again")
		}
	default:
		l.say("it stored nothing when there was space again, was killed and started")
		c.disk.Kill()
	}
	if err := c.disk.Start(ctx); err != nil {
		return err
	}
	l.note("started again")
	return nil
}

// hold waits for the time of the full disk, and logs when the broker ends itself in it.
func (c *cluster) hold(ctx context.Context, l *harnessLog) error {
	begin := time.Now()
	timer := time.NewTimer(held)
	defer timer.Stop()
	select {
	case <-c.disk.Done():
		l.ended = time.Now()
		l.say(fmt.Sprintf("it ended itself after %.1f s, and was started again", l.ended.Sub(l.first).Seconds()))
		return wait(ctx, held-time.Since(begin))
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stores tells whether the broker stores messages of one of the loads within takesAgain.
func (c *cluster) stores(ctx context.Context) (bool, error) {
	var before []int64
	for deadline := time.Now().Add(takesAgain); time.Now().Before(deadline); {
		select {
		case <-c.disk.Done():
			return false, nil
		default:
		}
		asking, cancel := context.WithDeadline(ctx, deadline)
		now, err := c.depths(asking)
		cancel()
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		switch { // an error is no answer: the broker is not well
		case err == nil && before != nil && !slices.Equal(now, before):
			return true, nil
		case err == nil:
			before = now
		}
		if err := wait(ctx, time.Second); err != nil {
			return false, err
		}
	}
	return false, nil
}

// say logs something for the page, too.
func (l *harnessLog) say(text string) {
	l.note(text)
	l.said = append(l.said, text)
}
