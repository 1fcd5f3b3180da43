package load

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Work is the time that a consumer works on each message before it settles the message. The zero value is no work.
type Work struct {
	Mean        time.Duration
	Exponential bool // by an exponential distribution; else Mean is the time for each message
}

// MaxWork bounds the mean, and each time drawn from an exponential distribution.
const MaxWork = time.Hour

// IsZero reports whether there is no work.
func (w Work) IsZero() bool { return w.Mean == 0 }

// String returns the work in the form that [ParseWork] reads.
func (w Work) String() string {
	if w.Exponential {
		return "exp:" + w.Mean.String()
	}
	return w.Mean.String()
}

// ParseWork reads a fixed time (2ms) or an exponential distribution by its mean (exp:2ms).
func ParseWork(text string) (Work, error) {
	text, exponential := strings.CutPrefix(text, "exp:")
	mean, err := quantity.Duration(strings.TrimSpace(text), 0)
	if err != nil || mean > MaxWork {
		return Work{}, errors.New("must be a time such as 2ms, or exp:2ms for an exponential distribution, up to 1h")
	}
	return Work{mean, exponential && mean > 0}, nil
}

// next returns the time for a message.
func (w Work) next() time.Duration {
	if w.Exponential {
		return min(time.Duration(float64(w.Mean)*rand.ExpFloat64()), MaxWork) //nolint:gosec // no secret
	}
	return w.Mean
}

// worker works on messages one after the other, in one goroutine.
type worker struct {
	job   *Job
	clock *Clock
	wait  *Sleeper
	late  time.Duration // by how much the last sleep ended late: the next work is shorter by that
	next  time.Duration // earliest time of the next message, by the rate
}

// grace bounds the part of a late sleep that is made up for.
const grace = 2 * time.Millisecond

func newWorker(ctx context.Context, job *Job, clock *Clock, precise bool) *worker {
	return &worker{job: job, clock: clock, wait: NewSleeper(ctx, clock, precise)}
}

// workOn works on a message received at the given time. It returns the time of its end, and the part of the wait that
// only the rate caused. It returns early if the context ends.
func (w *worker) workOn(received time.Duration) (done, paced time.Duration) {
	end := received
	if work := w.job.Work.next(); work > 0 {
		end += work - w.late
	}
	worked := end
	if w.job.Each > 0 {
		if received > w.next+grace { // a rate does not make up for idle time
			w.next = received
		}
		w.next += w.job.Each
		end = max(end, w.next)
	}
	w.wait.Until(end)
	done = w.clock.Now()
	w.late = min(max(done-end, 0), grace)
	return done, end - max(worked, received)
}

// Share is a part of a whole in millionths, from 0 to [Whole].
type Share uint64

// Whole is the share of all.
const Whole Share = 1_000_000

// IsZero reports whether the share is 0.
func (s Share) IsZero() bool { return s == 0 }

// String returns the share in the form that [ParseShare] reads: "2.5%".
func (s Share) String() string {
	return strconv.FormatFloat(100*float64(s)/float64(Whole), 'f', -1, 64) + "%"
}

// ParseShare reads a percentage from 0% to 100%, of at most four decimals: 1%, 0.25%.
func ParseShare(text string) (Share, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := quantity.Number(strings.TrimSpace(number))
	if err == nil {
		share.Mul(share, big.NewRat(int64(Whole)/100, 1))
	}
	if err != nil || !isPercent || !share.IsInt() || share.Cmp(big.NewRat(int64(Whole), 1)) > 0 {
		return 0, errors.New("must be a percentage from 0% to 100%, of at most four decimals, such as 1% or 0.25%")
	}
	return Share(share.Num().Uint64()), nil
}

// includes reports whether number n, counted from 1, belongs to the share. Of the first n, n times the share belong to
// it, rounded down.
func (s Share) includes(n uint64) bool { return Share(n)%Whole*s%Whole < s }

// Fail makes consumers fail on purpose: a share of the deliveries of all its consumers gets a verdict other than
// Accept. It is safe for concurrent use.
type Fail struct {
	share   Share
	verdict driver.Verdict
	n       atomic.Uint64 // deliveries so far
}

// NewFail returns nil for a share of nothing.
func NewFail(share Share, verdict driver.Verdict) *Fail {
	if share.IsZero() {
		return nil
	}
	return &Fail{share: share, verdict: verdict}
}

// next returns the verdict on the next delivery.
func (f *Fail) next() driver.Verdict {
	if f.share.includes(f.n.Add(1)) {
		return f.verdict
	}
	return driver.Accept
}
