package stats_test

import (
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

func BenchmarkRecorderDone(b *testing.B) {
	for _, rated := range []bool{false, true} {
		name := "closed"
		if rated {
			name = "rated"
		}
		b.Run(name, func(b *testing.B) {
			r := stats.NewProducerRecorder(rated, nil)
			b.ReportAllocs()
			for b.Loop() {
				done(r, driver.Outcome{}, 150*time.Microsecond, 200*time.Microsecond)
			}
		})
	}
}

func BenchmarkRecorderReceived(b *testing.B) {
	r := stats.NewConsumerRecorder()
	b.ReportAllocs()
	for b.Loop() {
		receive(r, 170*time.Microsecond, false)
	}
}

// BenchmarkCollect measures the cost of a second: 100 producers with a rate and 100 consumers, all with news.
func BenchmarkCollect(b *testing.B) {
	var ps []*stats.ProducerRecorder
	var cs []*stats.ConsumerRecorder
	for range 100 {
		ps = append(ps, stats.NewProducerRecorder(true, nil))
		cs = append(cs, stats.NewConsumerRecorder())
	}
	now := time.Now()
	c := stats.NewCollector(ps, cs, now)
	b.ReportAllocs()
	for b.Loop() {
		for i := range ps {
			ps[i].Begun(stats.Measure)
			ps[i].Handed(stats.Measure, time.Millisecond)
			done(ps[i], driver.Outcome{}, time.Millisecond, 2*time.Millisecond)
			receive(cs[i], time.Millisecond, false)
		}
		now = now.Add(time.Second)
		c.Collect(stats.Measure, now, false)
	}
}
