package engine_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// process is one of several runs on a broker that write their sides to files.
type process struct {
	stop func()
	done chan struct{}
	path string
	s    *stats.Summary
	err  error
}

// startProcess starts a run that ends by itself or by stop.
func startProcess(t *testing.T, b *mem.Broker, edit func(*flat)) *process {
	t.Helper()
	stop := make(chan struct{})
	p := &process{
		stop: sync.OnceFunc(func() { close(stop) }), done: make(chan struct{}), path: filepath.Join(t.TempDir(), "side"),
	}
	t.Cleanup(func() { // in case the test has failed
		p.stop()
		<-p.done
	})
	pl := newPlan(b.Factory(), func(pl *flat) {
		verified(pl)
		pl.VerifyFile = p.path
		pl.MaxPending = 100 // more than are never acknowledged, or the producers wait for ever
		edit(pl)
	})
	go func() {
		defer close(p.done)
		p.s, p.err = carryOut(t.Context(), stop, pl, new(recorder))
	}()
	return p
}

func (p *process) wait(t *testing.T) *process {
	t.Helper()
	<-p.done
	require.NoError(t, p.err)
	return p
}

func (p *process) end(t *testing.T) *process {
	t.Helper()
	p.stop()
	return p.wait(t)
}

// join reads the files and judges.
func join(t *testing.T, processes ...*process) *verify.Result {
	t.Helper()
	var sides []*verify.Side
	for _, p := range processes {
		side, err := verify.ReadFile(p.path)
		require.NoError(t, err)
		sides = append(sides, side)
	}
	return verify.Judge(sides...)
}

func producing(count uint64, edits ...func(*flat)) func(*flat) {
	return func(p *flat) {
		p.Role, p.Count = plan.Producer, count
		for _, edit := range edits {
			edit(p)
		}
	}
}

func consuming(edits ...func(*flat)) func(*flat) {
	return func(p *flat) {
		p.Role = plan.Consumer
		for _, edit := range edits {
			edit(p)
		}
	}
}

func onTopic(p *flat) { p.Destinations = []driver.Destination{{Kind: driver.Topic, Name: "T"}} }

// Two producers and three consumers in five processes: together they know the broker's faults.
func TestSidesOfManyProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) {
			o.Lose, o.Duplicate, o.Damage, o.DamageID, o.Reject, o.Withhold = 101, 53, 107, 211, 97, 89
		})
		var all []*process
		for range 3 {
			all = append(all, startProcess(t, b, consuming(func(p *flat) { p.Consumers = 2 })))
		}
		for range 2 {
			all = append(all, startProcess(t, b, producing(2000, func(p *flat) { p.Producers = 3 })))
		}
		all[3].wait(t)
		all[4].wait(t)
		pass(2 * time.Second)
		var received uint64
		for _, p := range all[:3] {
			p.end(t)
			require.False(t, p.s.Verification.Known)
			require.Contains(t, strings.Join(p.s.Warnings(), "\n"), "without the producers no losses are detected")
			received += p.s.Total.Get(result.Received)
		}
		truth, r := b.Stats(), join(t, all...)
		require.Equal(t, truth.Delivered, received)
		got := r.Total
		require.EqualValues(t, 4000, r.Sent)
		require.Equal(t, result.Verified{
			Expected: truth.Ended[driver.Accepted], Received: 4000 - truth.Ended[driver.Rejected] - truth.Lost - truth.DamagedIDs,
			Once: 4000 - truth.Ended[driver.Rejected] - truth.Lost - truth.DamagedIDs - truth.Duplicated,
			Lost: got.Lost, UnconfirmedMissing: got.UnconfirmedMissing, UnconfirmedArrived: truth.Withheld - got.UnconfirmedMissing,
			Duplicates: truth.Duplicated, Redelivered: truth.Redelivered, Damaged: truth.Damaged + truth.DamagedIDs, Illegible: truth.DamagedIDs,
			Disordered: got.Disordered, DisorderedRedelivered: got.DisorderedRedelivered,
		}, got)
		require.Equal(t, truth.Lost+truth.DamagedIDs, got.Lost+got.UnconfirmedMissing)
	})
}

// Messages in the queue when the consumers stop early are not lost; once another consumer has fetched it, all is known.
func TestSidesOfConsumersThatEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose = 100 })
		sent := startProcess(t, b, producing(1000)).wait(t)
		first := startProcess(t, b, consuming(func(p *flat) { p.Count = 300 })).wait(t)
		r := join(t, sent, first)
		require.Empty(t, result.Texts(r.Findings(verify.Allow{Disorder: true}, r.Total.Left), result.Problem))
		require.EqualValues(t, 1000, r.Total.Expected)
		require.EqualValues(t, 1000-r.Total.Received, r.Total.Left)

		second := startProcess(t, b, consuming())
		pass(5 * time.Second)
		second.end(t)
		r = join(t, second, sent, first)
		require.Equal(t, result.Verified{Expected: 1000, Received: 990, Once: 990, Lost: 10}, r.Total)
		require.Equal(t, []string{
			"messages lost, accepted but never received: 10 of 1000; first: producer-0 99, 199, 299, 399, 499",
		}, result.Texts(r.Findings(verify.Allow{}, 0), result.Problem))
	})
}

// A consumer knows by itself only that numbers are missing.
func TestConsumerAloneReportsGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose, o.Duplicate = 100, 30 })
		c := startProcess(t, b, consuming(func(p *flat) { p.Allow.Duplicates = true }))
		startProcess(t, b, producing(1050)).wait(t)
		pass(2 * time.Second)
		c.end(t)
		require.Equal(t, result.Verified{Received: 1040, Once: 1008, Duplicates: 32, Redelivered: 32, Gaps: 10}, c.s.Verification.Total)
		require.True(t, c.s.Outcome.Success, c.s.Problems())
		require.Contains(t, strings.Join(c.s.Warnings(), "\n"), "numbers missing below the highest received: 10")
	})
}

// Each anonymous subscription of a topic is judged on its own. One that was opened in mid-run does not miss messages
// sent before.
func TestSidesOfTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		early := startProcess(t, b, consuming(onTopic))
		synctest.Wait()
		sender := startProcess(t, b, producing(1000, onTopic, func(p *flat) { p.Rate = rate("100") }))
		pass(4005 * time.Millisecond)
		late := startProcess(t, b, consuming(onTopic, func(p *flat) { p.Consumers = 2 }))
		sender.wait(t)
		pass(2 * time.Second)
		never := startProcess(t, b, consuming(onTopic))
		pass(2 * time.Second)
		early.end(t)
		late.end(t)
		never.end(t)
		r := join(t, early, late, never, sender)
		require.Empty(t, result.Texts(r.Findings(verify.Allow{}, 0), result.Problem))
		require.Len(t, r.Scopes, 4)
		require.Equal(t, result.Verified{Expected: 1000, Received: 1000, Once: 1000}, r.Scopes[0].Verified)
		for _, s := range r.Scopes[1:3] {
			require.InDelta(t, 400, s.Early, 1)
			require.Equal(t, result.Verified{Expected: 1000, Received: 1000 - s.Early, Once: 1000 - s.Early, Early: s.Early}, s.Verified)
		}
		require.Equal(t, result.Verified{Expected: 1000, Early: 1000}, r.Scopes[3].Verified)
	})
}

// A shared subscription is one, however many processes take part.
func TestSidesOfSharedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Duplicate = 10 })
		var all []*process
		for range 3 {
			all = append(all, startProcess(t, b, consuming(onTopic, func(p *flat) { p.Shared, p.Consumers = 1, 2 })))
		}
		synctest.Wait()
		all = append(all, startProcess(t, b, producing(1000, onTopic)).wait(t))
		pass(2 * time.Second)
		for _, p := range all[:3] {
			p.end(t)
		}
		r := join(t, all...)
		require.Len(t, r.Scopes, 1)
		got := r.Total
		require.Equal(t, result.Verified{
			Expected: 1000, Received: 1000, Once: 900, Duplicates: 100, Redelivered: 100,
			Disordered: got.Disordered, DisorderedRedelivered: got.DisorderedRedelivered,
		}, got)
	})
}
