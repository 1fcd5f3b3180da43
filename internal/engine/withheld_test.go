package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// planned is a driver whose producers say that what the broker loses was never to be delivered.
type planned struct {
	driver.Driver
	broker *mem.Broker
	hidden uint64 // of the losses, how many it does not admit
}

type plannedProducer struct {
	driver.Producer
	d *planned
}

func (d *planned) Producer(ctx context.Context, spec driver.ProducerSpec, done driver.Done) (driver.Producer, error) {
	p, err := d.Driver.Producer(ctx, spec, done)
	return &plannedProducer{p, d}, err
}

func (p *plannedProducer) Withheld() uint64 {
	lost := p.d.broker.Stats().Lost
	return lost - min(p.d.hidden, lost)
}

// Messages of transactions that are rolled back are not missing; those lost beside them are.
func TestWithheldMessagesAreNotMissing(t *testing.T) {
	for _, hidden := range []uint64{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Lose = 10 })
			f := b.Factory()
			open := f.Open
			f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
				d, err := open(ctx, o)
				return &planned{d, b, hidden}, err
			}
			s, _ := run(t, newPlan(f, func(p *plan.Plan) { p.Count = 1000 }), nil)
			require.EqualValues(t, 100, b.Stats().Lost)
			require.EqualValues(t, 1000, s.Total.Completed)
			require.EqualValues(t, 900, s.Total.Received)
			require.Equal(t, 900+hidden, s.Expected)
			require.Equal(t, hidden, s.Missing)
			require.Equal(t, hidden == 0, s.Success, s.Problems)
		})
	}
}
