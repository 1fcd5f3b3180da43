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
