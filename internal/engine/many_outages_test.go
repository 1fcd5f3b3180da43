package engine_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestManyOutages: lost messages belong to their outage if it is listed; totals include the outages beyond the list.
func TestManyOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const outages, listed, every = 320, 200, 5 * time.Second
		b := broker(t, nil)
		out, in := b.Line(), b.Line()
		p := newPlan(b.Factory(), func(p *flat) {
			p.Producer.URL, p.Consumer.URL = out.URL(), in.URL()
			verified(p)
			p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("50"), (outages+2)*every, 100
		})
		for n := range outages {
			time.AfterFunc(time.Duration(n+1)*every+300*time.Microsecond, func() {
				out.Cut()
				in.Cut()
				time.AfterFunc(50*time.Millisecond, func() { out.Restore(); in.Restore() })
			})
		}
		var mu sync.Mutex
		lost := map[int]uint64{} // messages, by their outage, from 1 on
		set := func(n int, o mem.Options) {
			mu.Lock()
			defer mu.Unlock()
			b.Set(o)
			lost[n] = b.Stats().Lost - lost[n]
		}
		for _, n := range []int{1, 100, 101, 220} {
			o := mem.Options{}
			o.Lose = 1
			at := time.Duration(n)*every - time.Second + 5*time.Millisecond // between two messages
			time.AfterFunc(at, func() { set(n, o) })
			time.AfterFunc(at+100*time.Millisecond, func() { set(n, mem.Options{}) })
		}

		s, _ := run(t, p, nil)
		more := s.MoreOutages
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, s.Outages, listed)
		require.EqualValues(t, outages-listed, more.Count)
		inDoubt, length := more.InDoubt, us(more.Length)
		for i := range s.Outages {
			number := i + 1
			if i >= listed/2 {
				number += int(more.Count)
			}
			if i < listed/2 {
				require.Equal(t, lost[number], s.Outages[i].Lost, "outage %d", number)
			}
			inDoubt += s.Outages[i].InDoubt
			length += us(s.Outages[i].Length)
		}
		require.NotZero(t, lost[220])
		require.GreaterOrEqual(t, s.Verification.Total.Lost, lost[1]+lost[100]+lost[101]+lost[220])
		require.Equal(t, s.Total.Get(result.Unconfirmed), inDoubt)
		require.InDelta(t, outages, s.Values["outage.count"], 0)
		require.InDelta(t, inDoubt, s.Values["in_doubt"], 0)
		require.NotContains(t, s.Values, "recovery.max", "not all outages are known")
		require.Contains(t, s.Values, "outage.max")
		require.Greater(t, length, outages*50*time.Millisecond)
	})
}
