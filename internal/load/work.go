package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Work is how long a consumer works on each message before it settles it. The zero value is no work.
type Work struct {
	// Min and Max bound a uniform distribution; equal ones are a fixed time.
	Min, Max time.Duration
	// Mean is that of an exponential distribution, instead of Min and Max; 0 for none.
	Mean time.Duration
}

// MaxWork is the longest time that can be asked for.
const MaxWork = time.Hour

// IsZero reports whether there is no work.
func (w Work) IsZero() bool { return w == Work{} }

// String returns what [ParseWork] reads.
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
		d, parseErr := time.ParseDuration(strings.TrimSpace(text))
		if parseErr != nil || d < 0 || d > MaxWork {
			err = errors.New("must be a time such as 2ms, a range such as 1ms-5ms, or exp:2ms for an exponential distribution, up to 1h")
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
		return min(time.Duration(float64(w.Mean)*rand.ExpFloat64()), time.Duration(math.MaxInt64/2)) //nolint:gosec // no secret
	case w.Max > w.Min:
		return w.Min + rand.N(w.Max-w.Min+1) //nolint:gosec // no secret
	default:
		return w.Min
	}
}

// worker lets one goroutine work on messages one after the other. A sleep that ends late does not make the work longer: what
// follows within grace of the end of the work before counts as having waited for it.
type worker struct {
	work  Work
	each  time.Duration // the shortest time from one message to the next, of a rate; 0 for any
	clock *Clock
	wait  *Waiter
	until time.Duration // the end of the work so far
}

// grace is how late a sleep may end.
const grace = 2 * time.Millisecond

func newWorker(ctx context.Context, cfg *ConsumerConfig, clock *Clock) *worker {
	return &worker{work: cfg.Work, each: cfg.Each, clock: clock, wait: NewWaiter(ctx, clock, cfg.Precise)}
}

// do works on a message that was received at that time. It returns early when the context ends.
func (w *worker) do(received time.Duration) {
	if received > w.until+grace {
		w.until = received
	}
	w.until += max(w.work.next(), w.each)
	w.wait.Until(w.until)
}
