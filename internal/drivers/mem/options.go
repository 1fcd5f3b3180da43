package mem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the faults of a broker, all off in [DefaultOptions]. "Every n-th" is off at 0. A driver opened with
// options other than the defaults sets them for the whole broker.
type Options struct {
	Latency         time.Duration `opt:"latency" help:"delay of each acknowledgement"`
	DeliveryLatency time.Duration `opt:"delivery-latency" help:"delay of each delivery, from the send"`
	Jitter          time.Duration `opt:"jitter" help:"random addition to both delays, from 0 to this"`

	StallAfter time.Duration `opt:"stall-after" help:"time from the first message to the stall"`
	StallFor   time.Duration `opt:"stall-for" help:"length of the stall, in which nothing is accepted, acknowledged or delivered; 0 for none"`

	Lose              int  `opt:"lose" help:"accept but do not deliver every n-th message"`
	LoseFirst         int  `opt:"lose-first" help:"accept but do not deliver this many messages at the start"`
	LoseOffset        int  `opt:"lose-offset" help:"messages to let pass before lose-first begins"`
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

	Limit int    `opt:"limit" help:"messages that a queue or subscription can hold; 0 for no limit"`
	Full  string `opt:"full" help:"effect of a full queue on senders" enum:"block,reject"`

	DisconnectAfter int    `opt:"disconnect-after" help:"break all connections after this many messages; 0 for never"`
	Auth            string `opt:"auth" help:"user:password that connections need; empty for no check"`
}

// The effects of a full queue on senders, for [Options.Full].
const (
	FullBlock  = "block"  // Send waits for room
	FullReject = "reject" // the message is rejected with ClassFull
)

// DefaultOptions returns a broker without faults.
func DefaultOptions() Options {
	return Options{Full: FullBlock}
}

func (o *Options) check() error {
	var errs []error
	for _, d := range driver.Describe(o) {
		if strings.HasPrefix(d.Default, "-") {
			errs = append(errs, fmt.Errorf("option %s=%s: must be 0 or more", d.Name, d.Default))
		}
	}
	if o.Full != FullBlock && o.Full != FullReject {
		errs = append(errs, fmt.Errorf("option full=%s: must be block or reject", o.Full))
	}
	return errors.Join(errs...)
}

// faults are the options in force. All times are nanoseconds since the broker was made, and above zero.
type faults struct {
	Options
	replaced chan struct{} // closed when other options are set: sleepers check again

	mu              sync.Mutex // held inside the lock of a destination
	arrived, stored int
	commits         int
	random          *rand.Rand

	stallFrom, stallUntil atomic.Int64
}

func newFaults(o Options) *faults {
	return &faults{
		Options: o, replaced: make(chan struct{}), random: rand.New(rand.NewPCG(0, 0)), //nolint:gosec // repeatable
	}
}

// stall sets the window of the stall. A concurrent reader sees no stall.
func (f *faults) stall(from, until int64) {
	f.stallUntil.Store(0)
	f.stallFrom.Store(from)
	f.stallUntil.Store(until)
}

// afterStall returns t, or the end of the stall if t lies within it.
func (f *faults) afterStall(t int64) int64 {
	if until := f.stallUntil.Load(); t < until && t >= f.stallFrom.Load() {
		return until
	}
	return t
}

// verdict is the decision on a message.
type verdict struct {
	outcome                  driver.Outcome
	store                    bool // and if true:
	lose, duplicate, reorder bool
	damage, damageID         bool
	withhold                 bool
	acknowledgeAt, deliverAt int64 // 0: at once
	disconnect               bool
}

// judge decides on the next message, which arrives now; full: there is no room for it.
func (f *faults) judge(now int64, full bool) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived++
	if f.arrived == 1 && f.StallFor > 0 {
		from := now + int64(f.StallAfter)
		f.stall(from, from+int64(f.StallFor))
	}
	v := verdict{disconnect: f.arrived == f.DisconnectAfter}
	switch {
	case full:
		v.outcome = refusal(driver.Rejected, driver.ClassFull, "the queue is full")
	case every(f.Fail, f.arrived):
		v.outcome = refusal(driver.Failed, driver.ClassOther, "told to fail")
	case every(f.Reject, f.arrived):
		v.outcome = refusal(driver.Rejected, driver.ClassOther, "told to reject")
	case every(f.Release, f.arrived):
		v.outcome = refusal(driver.Released, driver.ClassOther, "told to release")
	case every(f.Modify, f.arrived):
		v.outcome = refusal(driver.Modified, driver.ClassOther, "told to modify")
	case every(f.Rollback, f.arrived):
		v.outcome.Withheld = true
	default:
		v.store = true
		v.withhold = every(f.Withhold, f.arrived)
		f.stored++
		n := f.stored
		switch {
		case every(f.Lose, n), n > f.LoseOffset && n <= f.LoseOffset+f.LoseFirst:
			v.lose = true
		case every(f.Duplicate, n):
			v.duplicate = true
		case every(f.Reorder, n):
			v.reorder = true
		case every(f.Damage, n):
			v.damage = true
		case every(f.DamageID, n):
			v.damageID = true
		}
	}
	// The stall is not part of these times: waiters check it at that time, as it may have been ended.
	if t := now + f.delay(f.Latency); f.afterStall(t) > now {
		v.acknowledgeAt = t
	}
	if t := now + f.delay(f.DeliveryLatency); t > now {
		v.deliverAt = t
	}
	return v
}

// refuses decides on the next commit, and returns when its answer is due.
func (f *faults) refuses(now int64) (refused bool, answerAt int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits++
	return every(f.FailCommit, f.commits), now + f.delay(f.Latency)
}

func (f *faults) delay(d time.Duration) int64 {
	if f.Jitter > 0 {
		d += time.Duration(f.random.Int64N(int64(f.Jitter) + 1))
	}
	return int64(d)
}

func every(n, i int) bool { return n > 0 && i%n == 0 }

func refusal(s driver.State, c driver.Class, why string) driver.Outcome {
	return driver.Outcome{State: s, Class: c, Err: driver.Errorf(c, "send", "", "%s", why)}
}
