package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
)

// Work is the time that a consumer works on each message before it settles the message. The zero value is no work.
type Work struct {
	// Min and Max bound a uniform distribution; equal ones are a fixed time.
	Min, Max time.Duration
	// Mean is the mean of an exponential distribution, instead of Min and Max; 0 for none.
	Mean time.Duration
}

// MaxWork bounds Min, Max and Mean, and each time drawn from an exponential distribution.
const MaxWork = time.Hour

// IsZero reports whether there is no work.
func (w Work) IsZero() bool { return w == Work{} }

// String returns the work in the form that [ParseWork] reads.
func (w Work) String() string {
	switch {
	case w.Mean > 0:
		return "exp:" + w.Mean.String()
	case w.Min != w.Max:
		return w.Min.String() + "-" + w.Max.String()
	default:
		return w.Min.String()
	}
}

// ParseWork reads a fixed time (2ms), a uniform distribution (1ms-5ms) or an exponential one by its mean (exp:2ms).
func ParseWork(text string) (w Work, err error) {
	one := func(text string) time.Duration {
		d, parseErr := quantity.Duration(strings.TrimSpace(text), 0)
		if parseErr != nil || d > MaxWork {
			err = errors.New("must be a time such as 2ms, a range such as 1ms-5ms, or exp:2ms for an exponential " +
				"distribution, up to 1h")
		}
		return d
	}
	if mean, ok := strings.CutPrefix(text, "exp:"); ok {
		w.Mean = one(mean)
		return w, err
	}
	low, high, ranged := strings.Cut(text, "-")
	w.Min = one(low)
	if w.Max = w.Min; ranged {
		w.Max = one(high)
	}
	if err == nil && w.Max < w.Min {
		err = errors.New("must be a range from less to more")
	}
	return w, err
}

// next returns the time for a message.
func (w Work) next() time.Duration {
	switch {
	case w.Mean > 0:
		return min(time.Duration(float64(w.Mean)*rand.ExpFloat64()), MaxWork) //nolint:gosec // no secret
	case w.Max > w.Min:
		return w.Min + rand.N(w.Max-w.Min+1) //nolint:gosec // no secret
	default:
		return w.Min
	}
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
