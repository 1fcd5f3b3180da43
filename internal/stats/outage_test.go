package stats_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestOutages(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
	o := stats.NewOutages()
	require.False(t, o.Open() || o.Explain(true), "none yet")

	// A producer and a consumer lose their connections; the confirmation comes before the receipt.
	o.Lost("p", true, false, lost, at(1))
	o.InDoubt(3)
	o.Lost("p", true, false, errors.New("later"), at(1.1))
	o.Lost("c", false, false, lost, at(1.5))
	require.True(t, o.Open())
	require.True(t, o.Explain(false), "messages may come again now")
	o.Attempt(lost)
	o.Connected("p", at(3))
	o.Came(true, at(0.5), at(3.1)) // by a connection that was not lost
	o.Came(true, at(3), at(3.2))
	o.Came(true, at(3), at(3.3))
	require.True(t, o.Open(), "the consumer is away")
	o.Connected("c", at(4))
	require.False(t, o.Open())
	o.Came(false, at(4), at(4.5))

	// The next one: a producer whose task is done, and a consumer that does not come back.
	o.Lost("p", true, true, lost, at(6))
	o.Lost("c", false, false, lost, at(6.5))
	o.InDoubt(1)

	list := o.List()
	require.Len(t, list, 2)
	first := stats.Outage{
		Start: at(1), Confirmed: 2200 * time.Millisecond, Received: 3500 * time.Millisecond, Reconnected: 3 * time.Second,
		Workers: []string{"p", "c"}, Attempts: 1, InDoubt: 3, Class: driver.ClassConnectionLost, Error: "reset",
	}
	require.Empty(t, list[0].NotBack)
	list[0].NotBack = nil
	require.Equal(t, first, list[0])
	require.Equal(t, 2200*time.Millisecond, list[0].Length())
	require.Equal(t, []string{"p", "c"}, list[1].Workers)
	require.Equal(t, []string{"c"}, list[1].NotBack)
	require.EqualValues(t, 1, list[1].InDoubt)
	require.Zero(t, list[1].Length())

	// It needs no connection any more.
	o.Released("c", at(9))
	require.Empty(t, o.List()[1].NotBack)
	require.Zero(t, o.List()[1].Reconnected, "nobody was connected again")
}

// TestOutagesExplain: a message that comes again is explained from the loss of a consumer's connection until ten seconds after it is
// back, and for ever if it is marked.
func TestOutagesExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := driver.Errorf(driver.ClassConnectionLost, "", "", "reset")
		o := stats.NewOutages()
		explain := func(unmarked, marked bool) {
			t.Helper()
			require.Equal(t, []bool{unmarked, marked}, []bool{o.Explain(false), o.Explain(true)})
		}
		explain(false, false)
		o.Lost("p", true, false, lost, time.Now())
		explain(false, false) // a producer has nothing to settle
		o.Lost("c", false, false, lost, time.Now())
		explain(true, true)
		<-time.After(time.Hour)
		explain(true, true)
		o.Connected("c", time.Now()) // the producer stays away
		<-time.After(10*time.Second - 1)
		explain(true, true)
		<-time.After(1)
		explain(false, true)
		o.Connected("p", time.Now())
		explain(false, true)
		o.Came(false, time.Now().Add(-time.Second), time.Now())
		o.Came(true, time.Now().Add(-time.Second), time.Now())
		o.Lost("c", false, false, lost, time.Now())
		explain(true, true)
	})
}
