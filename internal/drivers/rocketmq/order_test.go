//go:build unix

package rocketmq

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestOrder: the settings that keep the order, by the package comment, do keep it.
func TestOrder(t *testing.T) {
	ours := shared.get(t).URL()
	single := peculiar.get(t).URL()
	for name, c := range map[string]struct {
		url     string
		options []string
		group   string
		pending int
	}{
		"sync":                {ours, []string{"send=sync", "queues=1"}, "", 300},
		"sync, group":         {ours, []string{"send=sync", "queues=4"}, "g", 300},
		"one batch":           {ours, []string{"send=batch", "batch-size=16", "batch-linger=1m", "queues=1"}, "", 16},
		"async, one thread":   {single, []string{"send=async", "queues=1"}, "", 3000},
		"oneway, one thread":  {single, []string{"send=oneway", "queues=1"}, "", 3000},
		"batches, one thread": {single, []string{"send=batch", "queues=1"}, "", 3000},
		"batches in no time":  {single, []string{"send=batch", "queues=1", "batch-linger=1us"}, "", 3000},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDriver(t, c.url, append(c.options, "send-timeout=30s")...)
			dest := queueNamed(unique("order"))
			in := receive(t, d, consumerSpec(dest))
			spec := producerSpec(dest, c.pending)
			spec.Variants[0].Group = c.group
			free := make(chan driver.Slot, c.pending)
			for i := range c.pending {
				free <- driver.Slot(i)
			}
			var failed atomic.Int64 // which may be stored all the same, or later
			p, err := d.Producer(t.Context(), spec, driver.DoneFunc(func(s driver.Slot, o driver.Outcome) {
				if o.State != driver.Accepted {
					failed.Add(1)
				}
				free <- s
			}))
			require.NoError(t, err)
			n := max(c.pending, 300)
			for i := range n {
				require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: <-free, Time: int64(i + 1)}))
			}
			require.NoError(t, p.Close(t.Context()))
			require.Zero(t, failed.Load())
			in.wait(t, n) // each once
			in.stop(t)
			require.Len(t, in.times, n, "delivered again: %v", doubles(in.times))
			require.IsIncreasing(t, in.times)
		})
	}
}

// doubles returns the numbers that are in a list more than once.
func doubles(list []int64) (twice []int64) {
	list = slices.Sorted(slices.Values(list))
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			twice = append(twice, list[i])
		}
	}
	return slices.Compact(twice)
}
