package stats_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestStages: the times of a group's openings are in its row and sums and in those of the run, once, and in no row of
// the warm-up, which the summary leaves out.
func TestStages(t *testing.T) {
	start := time.Unix(1000, 0)
	c := stats.NewCollector([]*stats.ProducerRecorder{stats.NewProducerRecorder(false, nil)}, nil, start)
	c.SetWorkers([]stats.Worker{{Name: "p", Group: "in"}})
	c.SetGroups([]stats.RunGroup{{Name: "in", Sends: true}, {Name: "out"}})
	in, out := new(stats.Stages), new(stats.Stages)
	c.SetStages("in", in)
	c.SetStages("out", out)
	stages := []driver.Stage{driver.StageConnect, driver.StageTLS, driver.StageLogin, driver.StageAttach, driver.StageClose}
	require.Len(t, stages, driver.NumStages)
	for i, s := range stages {
		in.Stage(s, time.Duration(i+1)*time.Second)
	}
	in.Opened(15 * time.Second)
	out.Opened(25 * time.Hour) // beyond the range

	warmup := c.Collect(stats.Warmup, start.Add(time.Second), false)
	for _, k := range result.Kinds() {
		require.False(t, k.Stage && warmup.Latencies[k.Kind] != nil, k.Name)
	}
	row := c.Collect(stats.Measure, start.Add(2*time.Second), false)
	require.False(t, row.Empty())
	next := c.Collect(stats.Measure, start.Add(3*time.Second), false)
	require.Nil(t, next.Latencies[result.Login], "no empty distributions of openings in each row")
	sum := c.SumRun()
	for name, want := range map[string]int64{"connect": 1, "tls": 2, "login": 3, "attach": 4, "close": 5, "open": 15} {
		want *= 1_000_000
		require.Equal(t, want, row.Groups[0].Latencies.Get(name).Sum, name)
		require.Equal(t, want, sum.Groups[0].Latencies.Get(name).Sum, name)
		if name != "open" {
			require.Equal(t, want, row.Latencies.Get(name).Sum, name)
			require.Equal(t, want, sum.Latencies.Get(name).Sum, name)
		}
	}
	require.EqualValues(t, 2, sum.Latencies.Get("open").Count)
	require.EqualValues(t, 1, sum.Total.Get(result.OutOfRange))
}

// TestLoginsOfAnOutage: the logins of workers that connect again, their 99% and the most of them in a second. Logins
// without an outage belong to none.
func TestLoginsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
		start, o, seen := time.Now(), stats.NewOutages(), 0
		login := o.Stages(func(driver.Stage, time.Duration) { seen++ })
		login(driver.StageLogin, time.Hour)
		o.Lost("p", true, false, lost, time.Now())
		for i, pause := range []time.Duration{5000, 900, 50, 50, 100, 890, 10, 10, 10, 2000} { // milliseconds
			time.Sleep(pause * time.Millisecond) //nolint:forbidigo // of a fake clock
			login(driver.StageConnect, time.Minute)
			login(driver.StageLogin, time.Duration(i+1)*100*time.Millisecond)
		}
		o.Connected("p", time.Now())
		o.RecordArrival(true, time.Now(), time.Now().Add(time.Second))
		login(driver.StageLogin, time.Hour)
		out := o.List(start)[0]
		require.Equal(t, 22, seen, "all stages are passed on")
		require.EqualValues(t, 10, out.Logins)
		require.EqualValues(t, 1_000_000, out.LoginP99)
		require.EqualValues(t, 5, out.LoginRate, "from 6.1 to 7.02 s")
		require.Zero(t, out.LastBack, "all are back")
	})
}
