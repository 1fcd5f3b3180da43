package stats_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestOutages(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
	o := stats.NewOutages()
	require.False(t, o.Disconnected() != nil || o.Explain() || o.Receiving(), "none yet")

	// A producer and a consumer lose their connections; the confirmation comes before the receipt.
	o.Lost("p", true, false, lost, at(1))
	o.InDoubt(1, 3)
	o.Resent(1)
	o.Lost("p", true, false, errors.New("later"), at(1.1))
	o.Lost("c", false, false, lost, at(1.5))
	require.NotEmpty(t, o.Disconnected())
	require.True(t, o.Explain() && o.Receiving(), "messages may come again now")
	o.Attempt(lost, at(1.8))
	o.Connected("p", at(3))
	o.RecordArrival(true, at(0.5), at(3.1)) // by a connection that was not lost
	o.RecordArrival(true, at(3), at(3.2))
	o.RecordArrival(true, at(3), at(3.3))
	require.NotEmpty(t, o.Disconnected(), "the consumer is away")
	o.Connected("c", at(4))
	require.Empty(t, o.Disconnected())
	o.RecordArrival(false, at(4), at(4.5))

	// The next one: a producer without a task, and a consumer that does not come back.
	o.Lost("p", true, true, lost, at(6))
	o.Lost("c", false, false, lost, at(6.5))
	o.InDoubt(2, 1)

	list := o.List(start)
	require.Len(t, list, 2)
	first := result.Outage{
		Time: at(1).UnixMicro(), Elapsed: 1_000_000, Length: 2_200_000, Tried: 800_000, Back: 2_000_000,
		Confirmed: 2_200_000, Received: 3_500_000, Reconnected: 3_000_000, Workers: []string{"p", "c"}, Attempts: 1,
		LastAttempt: "reset", InDoubt: 3, Resent: 1, Class: driver.ClassConnectionLost.String(), Error: "reset",
	}
	require.Empty(t, list[0].NotBack)
	list[0].NotBack = nil
	require.Equal(t, first, list[0])
	require.EqualValues(t, 2200000, list[0].Length)
	require.Equal(t, []string{"p", "c"}, list[1].Workers)
	require.Equal(t, []string{"c"}, list[1].NotBack)
	require.EqualValues(t, 1, list[1].InDoubt)
	require.Zero(t, list[1].Length)

	// It needs no connection any more.
	o.Released("c", at(9))
	require.Empty(t, o.List(start)[1].NotBack)
	require.Zero(t, o.List(start)[1].Reconnected, "nobody was connected again")

	// A producer has nothing to send when it is connected again, until it has lost its connection once more.
	o.Lost("p", true, false, lost, at(20))
	o.Connected("p", at(22))
	o.Ready(at(22))
	o.Lost("p", true, false, lost, at(30))
	o.Connected("p", at(31))
	o.RecordArrival(true, at(31), at(31.5))
	require.Len(t, o.List(start), 4)
	require.EqualValues(t, 2000000, o.List(start)[2].Length)
	require.EqualValues(t, 1500000, o.List(start)[3].Length)
}

// TestOutagesExplain: a message that comes again is explained from the loss of a consumer's connection until a minute
// after it is back.
func TestOutagesExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
		o := stats.NewOutages()
		o.Lost("p", true, false, lost, time.Now())
		require.False(t, o.Explain() || o.Receiving(), "a producer has nothing to settle")
		for range 2 {
			o.Lost("c", false, false, lost, time.Now())
			<-time.After(time.Hour)
			require.True(t, o.Explain())
			o.Connected("c", time.Now()) // the producer stays away
			<-time.After(time.Minute - 1)
			require.True(t, o.Explain())
			<-time.After(1)
			require.False(t, o.Explain())
			require.True(t, o.Receiving())
		}
		o.Lost("c", false, false, lost, time.Now())
		o.Connected("c", time.Now())
		<-time.After(time.Second)
		o.Lost("c", false, false, lost, time.Now())
		<-time.After(time.Hour)
		require.True(t, o.Explain(), "it was lost again")
	})
}

// TestOutagesOfSomeWorkers: an outage is about the workers that lost their connections, and over when none of them is
// waited for.
func TestOutagesOfSomeWorkers(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
	o := stats.NewOutages()
	o.Lost("p", true, false, lost, at(1))
	o.Connected("p", at(2))
	o.RecordArrival(true, at(2), at(2.5))
	o.RecordArrival(false, at(30), at(31)) // a consumer of a later step
	require.Zero(t, o.List(start)[0].Received)
	require.EqualValues(t, 1500000, o.List(start)[0].Length)

	now := func(s float64) *stats.OutageProgress {
		snap := &stats.Snapshot{From: at(s - 1), To: at(s)}
		o.AddInterval(snap)
		return snap.Outage
	}
	o.Lost("done", true, true, lost, at(40)) // it needs no connection
	require.Zero(t, now(50).Since)
	o.Lost("p", true, false, lost, at(60)) // this is another one
	require.Equal(t, time.Second, now(61).Since)
	require.Equal(t, 2500*time.Millisecond, now(61).Length)
	o.Connected("p", at(61.5))
	o.RecordArrival(true, at(61.5), at(60.9)) // its clock was read before the snapshot's
	require.Equal(t, 2500*time.Millisecond, now(62).Length, "it never shrinks")
	require.EqualValues(t, 900000, o.List(start)[2].Length)
}
