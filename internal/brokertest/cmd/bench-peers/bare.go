//go:build unix

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
	"github.com/perfmq/perfmq/internal/brokertest/rawamqp"
)

// Requirements on the native data path at a fixed rate, against a bare client that sends the same frames.
const (
	bareCPU     = 1.5  // processor time per message, as a ratio
	bareLatency = 30.0 // microseconds that the median response may be above the bare client's
)

// bareOnce runs the bare client within this process, at a rate or as fast as it goes. Nothing else in this process uses
// the processors meanwhile.
func (b *bench) bareOnce(
	ctx context.Context, broker *brokertest.Artemis, s peerbench.Setting, run int,
) (o peerbench.Outcome, err error) {
	u, err := url.Parse(broker.AMQPURL())
	if err != nil {
		return o, err
	}
	queue := fmt.Sprintf("BARE.%d", run)
	if err := broker.CreateQueue(ctx, queue, queue, "ANYCAST"); err != nil {
		return o, err
	}
	defer broker.DeleteQueue(ctx, queue) //nolint:errcheck // it is harmless
	d := time.Duration(b.duration) * time.Second
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	pair, err := rawamqp.Open(ctx, u.Host, rawamqp.Load{
		Queue: queue, Size: 1024, Pending: s.Pending, Credit: window,
		Rate: s.Rate,
	})
	if err != nil {
		return o, err
	}
	defer pair.Close() //nolint:errcheck // the run was checked
	before, known := peerbench.ProcessCPU(os.Getpid())
	if err := pair.Run(ctx, d); err != nil {
		return o, err
	}
	after, _ := peerbench.ProcessCPU(os.Getpid())
	if !known {
		return o, fmt.Errorf("the processor time of this process is not known")
	}
	o.CPU, o.Messages = after-before, float64(pair.Accepted())
	o.Received = o.Messages / d.Seconds()
	if s.Rate == 0 { // nothing is due at a time
		return o, nil
	}
	responses := pair.Responses()
	responses = responses[len(responses)*b.warmup/b.duration:]
	slices.Sort(responses)
	o.Send.P50 = float64(responses[len(responses)/2].Microseconds())
	o.Send.P99 = float64(responses[len(responses)*99/100].Microseconds())
	return o, nil
}
