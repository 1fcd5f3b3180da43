package mem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the faults of a broker, all off in the zero value. "Every n-th" is off at 0. A driver opened with other
// options sets them for the whole broker.
type Options struct {
	Latency         time.Duration `opt:"latency" help:"delay of each acknowledgement"`
	DeliveryLatency time.Duration `opt:"delivery-latency" help:"delay of each delivery, from the send"`
	Jitter          time.Duration `opt:"jitter" help:"random addition to the delay of deliveries, from 0 to this"`

	StallAfter time.Duration `opt:"stall-after" help:"time from the first message to the stall"`
	StallFor   time.Duration `opt:"stall-for" help:"length of the stall, in which nothing is accepted, acknowledged or delivered; 0 for none"`

	Lose              int  `opt:"lose" help:"accept but do not deliver every n-th message"`
	Duplicate         int  `opt:"duplicate" help:"deliver every n-th message a second time, marked as redelivered"`
	DuplicateUnmarked bool `opt:"duplicate-unmarked" help:"do not mark the messages that duplicate delivers again as redelivered"`
	Reorder           int  `opt:"reorder" help:"deliver every n-th message after the next one on its destination, or 100 ms later if none comes"`

	Damage   int `opt:"damage" help:"flip a bit in the body of every n-th message"`
	DamageID int `opt:"damage-id" help:"flip a bit in the number of every n-th message that carries an ID"`
	Rollback int `opt:"rollback" help:"accept every n-th message, but say that by plan it will not be delivered, and do not deliver it"`

	Reject   int `opt:"reject" help:"reject every n-th message"`
	Release  int `opt:"release" help:"release every n-th message"`
	Modify   int `opt:"modify" help:"release every n-th message as modified"`
	Fail     int `opt:"fail" help:"answer every n-th message with an error"`
	Withhold int `opt:"withhold" help:"never acknowledge every n-th message, but deliver it"`

	FailCommit int `opt:"fail-commit" help:"refuse every n-th commit: its messages are rolled back"`
	Limit      int `opt:"limit" help:"messages that a queue or subscription can hold: senders wait for room; 0 for no limit"`

	DisconnectAfter int    `opt:"disconnect-after" help:"break all connections after this many messages; 0 for never"`
	Auth            string `opt:"auth" help:"user:password that connections need; empty for no check"`
}

func (o *Options) check() error {
	var errs []error
	for _, d := range driver.Describe(o) {
		if strings.HasPrefix(d.Default, "-") {
			errs = append(errs, fmt.Errorf("option %s=%s: must be 0 or more", d.Name, d.Default))
		}
	}
	return errors.Join(errs...)
}

// arrive counts a message.
func (b *Broker) arrive() {
	if b.arrived++; b.arrived == 1 && b.options.StallFor > 0 {
		b.stallFrom = b.now() + b.options.StallAfter
		b.stallUntil = b.stallFrom + b.options.StallFor
	}
	b.breaks = b.breaks || b.arrived == b.options.DisconnectAfter
}

// refuse returns the answer to a message that is not to be stored.
func (b *Broker) refuse() (answer driver.Outcome, refused bool) {
	o, n := &b.options, b.arrived
	switch {
	case every(o.Fail, n):
		return told(driver.Failed, "told to fail"), true
	case every(o.Reject, n):
		return told(driver.Rejected, "told to reject"), true
	case every(o.Release, n):
		return told(driver.Released, "told to release"), true
	case every(o.Modify, n):
		return told(driver.Modified, "told to modify"), true
	case every(o.Rollback, n):
		b.stats.RolledBack++
		return driver.Outcome{Withheld: true}, true
	}
	return driver.Outcome{}, false
}

// refuseCommit decides on the next commit, and returns when its answer is due.
func (b *Broker) refuseCommit() (refused bool, due time.Duration) {
	b.commits++
	return every(b.options.FailCommit, b.commits), b.now() + b.options.Latency
}

// committed counts and reports the end of a transaction.
func (b *Broker) committed(report driver.Commits, began time.Time, confirmed bool) {
	if confirmed {
		b.stats.Commits++
	} else {
		b.stats.CommitsRefused++
	}
	if report != nil {
		report(time.Since(began), confirmed)
	}
}

// storeFaulty stores a message with at most one fault, the first in this order.
func (p *producer) storeFaulty(it *Message) {
	o, s := &p.options, &p.stats
	p.stored++
	n := p.stored
	if wait := o.DeliveryLatency + rand.N(o.Jitter+1); wait > 0 { //nolint:gosec // no secret
		it.due = p.now() + wait
	}
	switch {
	case every(o.Lose, n):
		s.Stored++
		s.Lost++
		return
	case every(o.Duplicate, n): // see below
	case every(o.Reorder, n) && p.dest.held == nil:
		s.Stored++
		held := *it
		p.dest.held = &held
		time.AfterFunc(100*time.Millisecond, p.locked(func() {
			if p.dest.held == &held {
				p.dest.release()
			}
		}))
		return
	case every(o.Damage, n):
		s.Damaged++
		it.Body = flipped(it.Body)
	case every(o.DamageID, n) && it.ID != driver.ID{}:
		s.DamagedIDs++
		it.ID.Number ^= 1 << 20
	}
	p.store(it)
	if every(o.Duplicate, n) {
		s.Duplicated++
		it.redelivered = !o.DuplicateUnmarked
		p.dest.put(it)
	}
}

// flipped returns a copy of body with one bit changed, or a single byte if body is empty.
func flipped(body []byte) []byte {
	if len(body) == 0 {
		return []byte{1}
	}
	body = append([]byte(nil), body...)
	body[len(body)/2] ^= 1 << 3
	return body
}

func every(n, i int) bool { return n > 0 && i%n == 0 }

func told(s driver.State, why string) driver.Outcome {
	err := driver.Errorf(driver.ClassOther, "send", "", "%s", why)
	return driver.Outcome{State: s, Class: driver.ClassOther, Err: err}
}
