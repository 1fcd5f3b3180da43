package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

func demands(t *testing.T, texts ...string) (list []threshold.Threshold) {
	t.Helper()
	for _, text := range texts {
		d, err := threshold.Parse(text)
		require.NoError(t, err, text)
		list = append(list, d)
	}
	return list
}

// aborting returns demands that end the run as soon as they are not kept.
func aborting(t *testing.T, texts ...string) []threshold.Threshold {
	t.Helper()
	list := demands(t, texts...)
	for i := range list {
		list[i].Abort = true
	}
	return list
}

func outcomes(s *stats.Summary) map[string]result.Threshold {
	m := map[string]result.Threshold{}
	for _, o := range s.Thresholds {
		m[o.Metric] = o
	}
	return m
}

// TestFigures: a run that does everything, on a broker with known latencies, has a value for each metric, and the right
// one.
func TestFigures(t *testing.T) {
	var texts []string
	for _, m := range threshold.Metrics() {
		if strings.HasPrefix(m.Name, threshold.BrokerPrefix) || m.Needs&(threshold.Openings|threshold.Requests|threshold.Replies) != 0 { // no process is watched, see TestConnections
			continue
		}
		texts = append(texts, m.Name+map[threshold.Unit]string{
			threshold.Messages: " >= 0", threshold.Count: " >= 0", threshold.PerSecond: " >= 0/s", threshold.Time: " >= 0s", threshold.Percent: " >= 0%",
		}[m.Unit])
	}
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) {
			o.Latency, o.DeliveryLatency = 3*time.Millisecond, 7*time.Millisecond
			o.Connect, o.Login, o.Attach, o.Close = 5*time.Millisecond, 11*time.Millisecond, 17*time.Millisecond, 2*time.Millisecond
		})
		s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
			p.Rate, p.Duration, p.Warmup, p.MaxPending = rate("1000"), 7*time.Second, 2*time.Second, 1000
			p.CommitInterval, p.StallThreshold, p.Delay, p.Reconnect = 10, time.Second, time.Millisecond, true
			p.Plan.Thresholds, p.VerifyWindow = demands(t, texts...), 2*time.Second
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		got := outcomes(s)
		for _, o := range got {
			lacks := strings.HasPrefix(o.Metric, "b2c.") || strings.HasPrefix(o.Metric, "s2c.") || strings.HasPrefix(o.Metric, "tls.")
			require.Equalf(t, !lacks, o.Measured != nil, "the value of %s", o.Metric)
		}
		for name, want := range map[string]float64{
			"sent": 5000, "completed": 5000, "received": 5000, "rejected": 0, "failed": 0, "unconfirmed": 0, "lost": 0, "left": 0, "duplicated": 0,
			"damaged": 0, "missing": 0, "foreign": 0, "commits.failed": 0, "rate.missed": 0, "stall.count": 0, "stall.max": 0,
			"outage.count": 0, "outage.max": 0, "in_doubt": 0,
		} {
			require.InDelta(t, want, *got[name].Measured, 0.001, name)
		}
		for stage, want := range map[string]float64{"connect": 5000, "login": 11000, "attach": 17000, "open": 33000, "close": 2000} {
			require.InDelta(t, want, *got[stage+".mean"].Measured, 0.001, stage)
			require.EqualValues(t, 2, s.Latencies.Get(stage).Count, stage)
		}
		for _, name := range []string{"sent.avg", "completed.avg", "received.avg", "completed.min", "received.min", "completed.max", "received.max"} {
			require.InDelta(t, 1000, *got[name].Measured, 10, name)
		}
		require.GreaterOrEqual(t, *got["ack.p50"].Measured, 3000.0)
	})
}

// TestThresholds: a broker that queues, and delivers everything in the end, has not kept up. Losses are counted.
func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
			p.Rate, p.Duration, p.Warmup, p.MaxPending, p.DrainTimeout = rate("1000"), 4*time.Second, time.Second, 1000, time.Minute
			p.ConsumerRate = plainRate("500")
			p.Plan.Thresholds = demands(t, "received.avg >= 90% of target", "received.avg > 490", "received.avg < 510", "received == 3000", "sent.avg >= 99% of target")
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		for i, kept := range []bool{false, true, true, true, true} {
			require.Equal(t, kept, s.Thresholds[i].Kept, s.Thresholds[i].String())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose = 100 })
		s, _ := run(t, newPlan(b.Factory(), verified, func(p *flat) {
			p.Rate, p.Duration, p.MaxPending = rate("1000"), 2*time.Second, 1000
			p.Plan.Thresholds = demands(t, "lost == 20", "lost == 0")
		}), nil)
		require.False(t, s.Outcome.Success)
		require.True(t, s.Thresholds[0].Kept, s.Thresholds[0].String())
		require.False(t, s.Thresholds[1].Kept)
	})
}

// TestSoFar: snapshots have the thresholds as they stood a second before, the findings and the outage that lasts, also
// in the drain.
func TestSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) {
			o.Latency, o.DeliveryLatency, o.Damage = 50*time.Millisecond, 3*time.Second, 100
		})
		line := b.Line()
		p := newPlan(b.Factory(), verified, func(p *flat) {
			through(p, line)
			p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("100"), 10*time.Second, 1000
			p.Plan.Thresholds = demands(t, "completed < 500", "ack.p99 < 10ms", "lost == 0")
		})
		time.AfterFunc(6500*time.Millisecond, line.Cut)
		time.AfterFunc(8200*time.Millisecond, line.Restore)
		c, rep := p.config(), new(recorder)
		c.SoFar = true
		_, err := engine.Run(t.Context(), nil, c, rep)
		require.NoError(t, err)
		drained := uint64(0)
		for i, snap := range rep.snapshots {
			if i < 2 {
				continue
			}
			require.NotNil(t, snap.SoFar, i)
			standing := outcomes(snap.SoFar)
			completed := *standing["completed"].Measured
			require.Contains(t, []float64{
				float64(rep.snapshots[i-1].Total.Get(result.Completed)), float64(rep.snapshots[i-2].Total.Get(result.Completed)),
			}, completed, i)
			require.Equal(t, completed < 500, standing["completed"].Kept)
			require.False(t, standing["ack.p99"].Kept)
			require.Nil(t, standing["lost"].Measured, "it is known at the end")
			if snap.Elapsed < 6_500_000 || snap.Elapsed > 7_500_000 {
				require.Equal(t, snap.Elapsed > 7_500_000, len(snap.SoFar.Outages) > 0, snap.Elapsed)
			}
			if snap.Phase == result.Drain {
				drained++
				require.Contains(t, strings.Join(snap.SoFar.Problems(), ""), "messages damaged: ")
			}
		}
		require.Greater(t, drained, uint64(1))
	})
}
