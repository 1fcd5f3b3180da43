package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// awaitStart waits until the planned start of the load.
func (r *run) awaitStart(ctx context.Context, stop <-chan struct{}) error {
	if r.plan.StartAt.IsZero() {
		return nil
	}
	return interruptible(ctx, stop, func(ctx context.Context) error {
		start := r.plan.StartAt.Add(-r.plan.ClockShift)
		if late := time.Since(start); late > 0 {
			return driver.Errorf(driver.ClassTimeout, "", "give a later --start-at: connecting takes its time",
				"the workers were open %s after the moment of --start-at", late.Round(time.Millisecond))
		}
		for left := time.Until(start); left > 0; left = time.Until(start) { // repeated in case the wall clock is set
			select {
			case <-time.After(min(left, time.Second)):
			case <-ctx.Done():
				return fmt.Errorf("wait for --start-at: %w", ctx.Err())
			}
		}
		return nil
	})
}
