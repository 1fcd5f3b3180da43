package amqp

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestLeft(t *testing.T) {
	const top = 1<<32 - 1
	for _, c := range []struct{ granted, count, seen, want uint32 }{
		{10, 0, 0, 10},
		{10, 4, 0, 6},
		{10, 10, 0, 0},
		{10, 11, 0, 0}, // taken back while some were under way
		{0, 5, 0, 0},
		{top, 0, 0, top}, // credit is no serial number
		{top, 7, 0, top - 7},
		{1 << 31, 1, 0, 1<<31 - 1},
		{10, 3, top - 2, 4}, // the count went around
		{10, top, top - 3, 7},
		{10, 0, top, 9},
		{5, 0, 1000, 5},     // of a count that we have not reached: no more than it says
		{5, top - 10, 3, 5}, // the same, around zero
		{5, 0, top - 999, 0},
	} {
		require.Equal(t, c.want, grantLeft(c.granted, c.count, c.seen), "%+v", c)
	}
}

// TestUnsettled holds it against a map, around the end of the serial numbers.
func TestUnsettled(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable
		p := &producer{}
		u := &p.unsettled
		u.Next = 1<<32 - uint64(rng.IntN(300)) //nolint:gosec // around zero
		u.First = u.Next
		take := func(first, last uint32) (slots []driver.Slot) {
			u.EachSerial(first, last, func(pos uint64) { slots = append(slots, u.Remove(pos).slot) })
			return slots
		}
		model := map[uint32]driver.Slot{}
		slot := driver.Slot(0)
		for range 500 {
			switch rng.IntN(5) {
			case 0, 1, 2:
				slot++
				id := uint32(u.Next)
				if rng.IntN(20) == 0 {
					id += uint32(rng.IntN(5)) //nolint:gosec // those between are the coordinator's
				}
				p.addUnsettled(id, slot)
				require.NotContains(t, model, id)
				model[id] = slot
			case 3:
				first := uint32(u.Next) - uint32(rng.IntN(60)) //nolint:gosec // small
				last := first + uint32(rng.IntN(20))           //nolint:gosec // small
				var want []driver.Slot
				for id := first; id != last+1; id++ {
					if s, ok := model[id]; ok {
						want = append(want, s)
						delete(model, id)
					}
				}
				got := take(first, last)
				slices.Sort(got)
				slices.Sort(want)
				require.Equal(t, want, got, "seed %d", seed)
			case 4:
				if s, ok := model[uint32(u.Next-1)]; ok && rng.IntN(4) == 0 {
					require.True(t, u.Remove(u.Next-1).open)
					require.Equal(t, s, model[uint32(u.Next-1)])
					delete(model, uint32(u.Next-1))
				}
			}
			require.Equal(t, len(model), u.Len())
		}
		all := take(0, 1<<32-1)
		require.Len(t, all, len(model))
		require.Zero(t, u.Len())
	}
}

// drain is a flow with credit, after so many frames and messages.
func drain(next, count, credit uint32, drain bool) wire.Flow {
	return wire.Flow{NextIncomingID: wire.Some(next), DeliveryCount: wire.Some(count), LinkCredit: wire.Some(credit), Drain: drain}
}

// TestDrain: each flow that asks to use the credit up is answered, with none left, whether there was any or not.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []wire.Flow
		sent := uint32(0)
		p := newPeer(t)
		p.credit = 7
		p.on = func(p *peer, b *wire.Body) bool {
			switch b.Kind {
			case wire.DescTransfer:
				if sent++; sent == 3 {
					p.flow(drain(sent, sent, 4, true))
				}
				if sent == 5 {
					p.flow(drain(sent, 9, 0, true))
				}
			case wire.DescFlow:
				var f wire.Flow
				require.NoError(t, f.Decode(&b.Fields))
				answers = append(answers, f)
				if len(answers) == 1 {
					p.flow(drain(sent, 7, 2, false))
				}
			}
			return false
		}
		d := p.driver(driver.OpenOptions{})
		ends := newEnds()
		producer := musttest.Get(d.Producer(t.Context(), producerSpec(100), ends))(t)
		for i := range 3 {
			require.NoError(t, producer.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(uint32(i), 1)})) //nolint:gosec // small
			synctest.Wait()
		}
		require.Len(t, answers, 1)
		require.Equal(t, []any{uint32(7), uint32(0), true}, []any{answers[0].DeliveryCount.V, answers[0].LinkCredit.V, answers[0].Drain})
		for i := range 2 { // credit that came afterwards
			require.NoError(t, producer.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(uint32(10+i), 1)})) //nolint:gosec // small
			synctest.Wait()
		}
		require.Len(t, answers, 2, "asked when there was no credit")
		require.Equal(t, []any{uint32(9), uint32(0), true}, []any{answers[1].DeliveryCount.V, answers[1].LinkCredit.V, answers[1].Drain})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, producer.Send(ctx, &driver.Message{Slot: driver.NewSlot(50, 1)}), context.DeadlineExceeded, "there is no credit")
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, producer.Close(closing))
		for slot, state := range ends.states(t, 5) {
			require.Equal(t, driver.Unknown, state, "%d", slot)
		}
		require.NoError(t, d.Close(t.Context()))
		require.EqualValues(t, 5, sent)
	})
}

// requireBeats fails if the peer had to wait longer than a second for a sign of life.
func (p *peer) requireBeats() {
	p.t.Helper()
	require.NotEmpty(p.t, p.beats)
	last := time.Duration(0)
	for _, at := range append(p.beats, p.gone) {
		require.Less(p.t, at-last, time.Second, "%v", p.beats)
		last = at
	}
}

// TestIdleTimeOuts: a peer that asks for signs of life gets them, and one that is silent is given up after the time and
// no more than a quarter of it.
func TestIdleTimeOuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.credit, p.open = 0, wire.Open{IdleTimeout: 1000}
		d := p.driver(driver.OpenOptions{}, "idle-timeout=10s")
		k := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		began := time.Now()
		err := k.Run(t.Context(), accept)
		took := time.Since(began)
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "nothing was heard from the broker for 10s")
		require.GreaterOrEqual(t, took, 10*time.Second)
		require.LessOrEqual(t, took, 12500*time.Millisecond)
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
		synctest.Wait()
		p.requireBeats()
	})
}

// TestSignsOfLifeWhileSendWaits: a send that looks again and again whether there is credit sends nothing, and the peer
// hears from us all the same.
func TestSignsOfLifeWhileSendWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.credit, p.open = 0, wire.Open{IdleTimeout: 1000}
		d := p.driver(driver.OpenOptions{})
		producer := musttest.Get(d.Producer(t.Context(), producerSpec(1), newEnds()))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var flows sync.WaitGroup
		flows.Go(func() {
			for ctx.Err() == nil {
				p.flow(wire.Flow{LinkCredit: wire.Some[uint32](0)})
				<-time.After(100 * time.Millisecond)
			}
		})
		require.ErrorIs(t, producer.Send(ctx, new(driver.Message)), context.DeadlineExceeded)
		flows.Wait()
		require.NoError(t, producer.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
		synctest.Wait()
		p.requireBeats()
	})
}
