package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/pkg/driver"
)

var (
	errStuck    = errors.New("it did not stop in time")
	errCutShort = errors.New("closing was cut short by a second interrupt")
)

// closer is an open worker or connection.
type closer struct {
	name  string
	ended <-chan struct{} // closed at the end of its goroutine; nil without one
	close func(context.Context) error
}

// closeAll closes all workers, producers and consumers side by side, then the connections, and returns a list of the
// failures. Closing a side also ends if no worker has closed for closeTimeout. Consumers have the connect time-out to
// remove their subscriptions, unless the drain has left messages unanswered.
func (r *run) closeAll(ctx context.Context) []string {
	left := r.closeGroups(ctx, r.step.uses)
	r.stopConsumers()
	r.lastCount(ctx)
	var drivers []closer
	for _, e := range slices.Backward(r.opened) { // that of the producers first
		name := strings.TrimSpace("connections to the broker " + e.Name)
		drivers = append(drivers, closer{name, nil, e.driver.Close})
	}
	last := min(r.longestConnect(), closeTimeout)
	return append(left, closeEach(ctx, drivers, last, last, last)...)
}

// closeGroups closes the workers of groups, as closeAll does, and returns a list of the failures.
func (r *run) closeGroups(ctx context.Context, list []*use) []string {
	r.setReceiving(nil)
	var producers, consumers []closer
	for _, u := range list {
		for _, p := range u.producers {
			if p.driver != nil {
				producers = append(producers, closer{p.spec.Name, p.ended, p.driver.Close})
			}
		}
		for _, c := range u.consumers {
			if c.driver != nil {
				consumers = append(consumers, closer{c.spec.Name, c.ended, c.driver.Close})
			}
			if c.stop != nil {
				c.stop()
			}
		}
	}
	var sides sync.WaitGroup
	var open [2][]string
	sides.Go(func() { open[0] = r.closeWorkers(ctx, producers, nil) })
	sides.Go(func() { open[1] = r.closeWorkers(ctx, consumers, list) })
	sides.Wait()
	for _, u := range list {
		r.recordClosed(u)
	}
	return slices.Concat(slices.Concat(open[:]...), closeOpenings(ctx, list))
}

// recordClosed records that the workers of a group are closed.
func (r *run) recordClosed(u *use) {
	u.open = false
	for _, s := range r.subscriptionsOf(u.consumers) {
		r.endSubscription(s)
	}
	for _, p := range u.producers {
		p.Add(p.driver)
		p.driver = nil
	}
	for _, c := range u.consumers {
		c.Add(c.driver)
		c.driver = nil
	}
}

// longestConnect returns the longest of the connect time-outs.
func (r *run) longestConnect() (longest time.Duration) {
	for _, e := range r.opened {
		longest = max(longest, e.ConnectTimeout)
	}
	return longest
}

// closeWorkers closes workers: the consumers of groups, or others.
func (r *run) closeWorkers(ctx context.Context, workers []closer, consumersOf []*use) []string {
	all := r.longestConnect()
	removes := slices.ContainsFunc(consumersOf, func(u *use) bool {
		return slices.ContainsFunc(u.consumers, func(c *consumer) bool {
			return c.spec.Destination.Kind == driver.Topic && !c.spec.KeepSubscription
		})
	})
	each, stop := all, min(max(all, leastStop), stopTimeout)
	if r.unanswered || !removes {
		each = min(all, closeTimeout)
	}
	if r.unanswered {
		stop = leastStop
	}
	return closeEach(ctx, workers, all, each, stop)
}

// shut closes it. An error of the context is replaced by the cause for which closing ended.
func (c closer) shut(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		_, err = callWithin(ctx, func(ctx context.Context) (any, error) { return nil, c.close(ctx) })
	}
	why := context.Cause(ctx)
	if why != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return why
	}
	return err
}

// closeEach waits for the goroutines of list, closes the members with ended goroutines, and returns a list of the
// failures. It waits at most stop for the goroutines, all for the closing, and each from one closed member to the next.
func closeEach(ctx context.Context, list []closer, all, each, stop time.Duration) (left []string) {
	ctx, cancel := hurried(ctx)
	defer cancel()
	stopping, cancel := context.WithTimeout(ctx, stop)
	defer cancel()
	errs := make([]error, len(list))
	for i := range list {
		if !awaitEnd(stopping, list[i].ended) {
			errs[i] = errStuck
		}
	}
	closing, cancel := context.WithTimeoutCause(ctx, all, unanswered(all))
	defer cancel()
	closing, abandon := context.WithCancelCause(closing)
	defer abandon(nil)
	giveUp := time.AfterFunc(each, func() { abandon(unanswered(each)) })
	defer giveUp.Stop()
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range list {
		if errs[i] != nil {
			continue
		}
		g.Go(func() error {
			if errs[i] = list[i].shut(closing); errs[i] == nil {
				giveUp.Reset(each)
			}
			return nil
		})
	}
	_ = g.Wait() // all errors are in errs
	for i, err := range errs {
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", list[i].name, err))
		}
	}
	return left
}

// unanswered returns the error of closing that took too long.
func unanswered(d time.Duration) error {
	return fmt.Errorf("closing was given up after %s because the broker did not answer", d)
}

// hurried returns a context that ends shortly after ctx, with errCutShort as the cause.
func hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		time.AfterFunc(cancelGrace, func() { cancel(errCutShort) })
	})
	return later, func() { unhook(); cancel(nil) }
}

// callWithin calls f. It returns errStuck if f violates the contract of drivers and does not return shortly after ctx
// has ended.
func callWithin[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	var value, none T
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		value, err = f(ctx)
	}()
	late, cancel := hurried(ctx)
	defer cancel()
	if !awaitEnd(late, returned) {
		return none, errStuck
	}
	return value, err
}

// awaitEnd waits until a worker's goroutine has ended; done is nil if it was never started.
func awaitEnd(ctx context.Context, done <-chan struct{}) bool {
	if done == nil {
		return true
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return isClosed(done)
}

// sleep waits for the time d. It is false if ctx ended before that.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
