package run

import (
	"context"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/plan"
)

// openWatch finds the broker's process, endpoint and log that are to be watched.
func (r *Run) openWatch() error {
	if r.Side.IsZero() {
		return nil
	}
	w, err := brokerside.Open(context.Background(), r.Side)
	if err != nil {
		return plan.Wrong("name a process of this host, and a log that can be read; for a broker on another host "+
			"there is --broker-metrics URL", "%v", err)
	}
	r.watched = w
	return nil
}
