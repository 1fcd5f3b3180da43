//go:build unix

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// away is for how long a master is away that is started again.
	away = 10 * time.Second
	// counted is how long after the start of an outage perfmq has counted all that was confirmed before it.
	counted = 5 * time.Second
)

// killMaster kills a master whose slave does not take over, asks the slave for what it has, and starts the master.
func killMaster(ctx context.Context, c *cluster, l *harnessLog) error {
	l.begin("kill -9")
	c.primary.Kill()
	l.done("the process is gone")
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

// copies compares what a slave had when its master was away with the messages that were confirmed by then.
func (j *judgement) copies() string {
	if j.copied == nil || len(j.result.Outages) == 0 {
		return ""
	}
	until := time.UnixMicro(j.result.Outages[0].Time).Add(counted).UnixMicro()
	var confirmed, doubt int64
	for i := range j.result.Rows {
		if r := &j.result.Rows[i]; r.Producers != nil && r.Time <= until {
			confirmed += int64(r.Producers.Completed)
			doubt += int64(r.Producers.Unconfirmed)
		}
	}
	switch n := *j.copied; {
	case n > confirmed+doubt:
		j.wrong("the slave had %d messages, of which %d were confirmed and %d in doubt", n, confirmed, doubt)
	case n < confirmed && j.expect.copied:
		j.broken = append(j.broken, fmt.Sprintf("the slave lacked %d confirmed messages", confirmed-n))
	}
	return fmt.Sprintf("; meanwhile the slave had %d messages, and %d had been confirmed", *j.copied, confirmed)
}

// doubts tells of messages that a master without its slave has stored and not confirmed.
func (j *judgement) doubts() string {
	var doubt, missing uint64
	for _, q := range j.queues() {
		p, v := j.queue(q)
		doubt, missing = doubt+p.Unconfirmed, missing+v.UnconfirmedMissing
	}
	if n := len(j.result.Outages); n > 0 {
		j.wrong("%d outages, where no connection broke", n)
	}
	if missing > 0 {
		j.broken = append(j.broken, fmt.Sprintf("%d messages not stored", missing))
	}
	if n := j.confirmedLater(); n > 0 {
		j.broken = append(j.broken, fmt.Sprintf("%d messages confirmed that no slave had", n))
		return "messages were confirmed without the slave"
	}
	s := j.stall()
	if s == nil {
		j.wrong("no stall, where no message was confirmed")
		return fmt.Sprintf("%d messages in doubt", doubt)
	}
	return fmt.Sprintf("no message was confirmed from %s on, for %.1f s; %d messages in doubt", j.late(s.Time, j.owed()),
		seconds(s.Length), doubt)
}

// confirmedLater returns how many messages were confirmed in the seconds that began after the failure had its effect.
func (j *judgement) confirmedLater() (n uint64) {
	for i := range j.result.Rows {
		r := &j.result.Rows[i]
		if r.Producers != nil && time.UnixMicro(r.Time-r.Length).After(j.last.Add(onTime)) {
			n += r.Producers.Completed
		}
	}
	return n
}
