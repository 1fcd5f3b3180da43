package engine_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// service makes a plan of n requests in a second, with their replies, and two seconds more.
func service(p *flat) {
	p.Role, p.MaxPending, p.Rate = plan.Service, 1000, rate("1000 for 1s, pause 2s")
	p.ReplyTimeout, p.ReplySize = 300*time.Millisecond, 32
}

func countsOf(s *result.Counts, of ...result.Counter) map[result.Counter]uint64 {
	n := map[result.Counter]uint64{}
	for i, v := range s.Values() {
		for _, c := range of {
			if int(c) == i && v > 0 {
				n[c] = v
			}
		}
	}
	return n
}

var replyCounters = []result.Counter{
	result.Sent, result.Completed, result.Received, result.Replies, result.TimedOut, result.LateReplies, result.DuplicateReplies,
	result.ForeignReplies, result.UncorrelatedReplies, result.Answered, result.UnansweredRequests, result.Unanswerable,
}

// TestRequests: every fault of replies is counted exactly, and verified by the numbers of requests and replies.
func TestRequests(t *testing.T) {
	type n = map[result.Counter]uint64
	for name, c := range map[string]struct {
		faults   mem.Options
		edit     func(*flat)
		want     n // beside 1000 sent, completed and received
		verified result.Verified
	}{
		"all answered": {want: n{result.Replies: 1000, result.Answered: 1000}},
		"closed loop": {
			edit: func(p *flat) { p.Rate, p.Count, p.MaxPending = plan.Rate{}, 1000, 1 },
			want: n{result.Replies: 1000, result.Answered: 1000},
		},
		"many of both, shared address": {
			edit: func(p *flat) { p.Producers, p.Consumers, p.ReplyTo = 5, 3, "queue://REPLIES" },
			want: n{result.Replies: 1000, result.Answered: 1000},
		},
		"lost": {
			faults:   mem.Options{Lose: 10},
			want:     n{result.Replies: 900, result.TimedOut: 100, result.Answered: 1000},
			verified: result.Verified{Lost: 100},
		},
		"late": {
			faults: mem.Options{Late: 10, LateBy: 500 * time.Millisecond},
			want:   n{result.Replies: 900, result.TimedOut: 100, result.LateReplies: 100, result.Answered: 1000},
		},
		"twice": {
			faults:   mem.Options{Duplicate: 10},
			want:     n{result.Replies: 1000, result.DuplicateReplies: 100, result.Answered: 1000},
			verified: result.Verified{Duplicates: 100, Redelivered: 100},
		},
		"damaged": {
			faults:   mem.Options{Damage: 10},
			want:     n{result.Replies: 1000, result.Answered: 1000},
			verified: result.Verified{Damaged: 100},
		},
		"refused": {
			faults: mem.Options{Reject: 10},
			want:   n{result.Replies: 900, result.TimedOut: 100, result.Answered: 900, result.UnansweredRequests: 100},
		},
		"in a slow service": {
			edit: func(p *flat) { p.ConsumerWork, p.Consumers = load.Work{Mean: 4 * time.Millisecond}, 5 },
			want: n{result.Replies: 1000, result.Answered: 1000},
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			c.faults.OnlyReplies = true
			b := broker(t, func(o *mem.Options) { *o = c.faults })
			s, _ := run(t, newPlan(b.Factory(), verified, service, c.edit), nil)
			want := n{result.Sent: 1000, result.Completed: 1000, result.Received: 1000}
			for k, v := range c.want {
				want[k] = v
			}
			require.Equal(t, want, countsOf(&s.Total, replyCounters...))
			require.EqualValues(t, c.want[result.Replies], s.Latencies[result.RoundTrip].Count)
			require.EqualValues(t, 1000, s.Latencies[result.Service].Count)
			require.Nil(t, s.Total.Connections)
			require.Equal(t, c.want[result.TimedOut]+c.want[result.UnansweredRequests]+c.verified.Lost+c.verified.Duplicates+c.verified.Damaged == 0, s.Outcome.Success, s.Problems())
			v := s.Verification.Total
			require.Equal(t, c.verified, result.Verified{Lost: v.Lost, Left: v.Left, Duplicates: v.Duplicates, Redelivered: v.Redelivered, Damaged: v.Damaged})
			require.EqualValues(t, 2000-c.verified.Lost-c.want[result.UnansweredRequests], v.Received, "requests and replies")
			require.Zero(t, v.Foreign)
		})
	}
}

// TestRoundTrip: it counts from the moment at which a request is due, the service time from the delivery.
func TestRoundTrip(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.OnlyReplies, o.DeliveryLatency = true, 20*time.Millisecond })
		s, _ := run(t, newPlan(b.Factory(), service, func(p *flat) {
			p.MaxPending, p.Rate, p.Count, p.ConsumerWork = 1, rate("100"), 10, load.Work{Mean: 5 * time.Millisecond}
		}), nil)
		// One at a time, 25 ms each, due every 10 ms: the last one waits for 9 * 15 ms.
		require.InDelta(t, 25_000, s.Latencies[result.RoundTrip].Percentile(0), 400)
		require.InDelta(t, 25_000+9*15_000, s.Latencies[result.RoundTrip].Max, 400)
		require.InDelta(t, 5_000, s.Latencies[result.Service].Max, 100)
		require.InDelta(t, 9*15_000, s.Latencies[result.Delay].Max, 400)
	})
}

// TestRequestsInFlight: --max-pending bounds the requests without a reply, until they time out.
func TestRequestsInFlight(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s, _ := run(t, newPlan(broker(t, nil).Factory(), service, func(p *flat) {
			p.Role, p.MaxPending, p.Duration, p.Rate = plan.Requester, 10, 2*time.Second, plan.Rate{}
			p.ReplyTimeout = time.Second
		}), nil)
		// 10 at once; again 10 when they have timed out, after a second and at most 50 ms, and none later.
		require.Equal(t, map[result.Counter]uint64{result.Sent: 20, result.Completed: 20, result.TimedOut: 20},
			countsOf(&s.Total, replyCounters...))
	})
}

// TestRequestsWithoutResponder: the broker answers each request at once, so it has not stalled while there are no
// replies; it has if it does not answer.
func TestRequestsWithoutResponder(t *testing.T) {
	for name, stalls := range map[string]int{"no responder": 0, "stalled broker": 1} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				if stalls > 0 {
					o.StallAfter, o.StallFor = 2*time.Second, 1500*time.Millisecond
				}
			})
			s, _ := run(t, newPlan(b.Factory(), service, func(p *flat) {
				p.Role, p.MaxPending, p.Duration, p.Rate = plan.Requester, 2, 8*time.Second, rate("20")
				p.ReplyTimeout, p.StallThreshold = 900*time.Millisecond, 500*time.Millisecond
			}), nil)
			require.Positive(t, s.Total.Get(result.TimedOut))
			found := 0
			for _, f := range s.Findings {
				if f.Kind == "stall" {
					found++
				}
			}
			require.Equal(t, stalls, found, s.Findings)
		})
	}
}

// TestOtherReplies: a requester counts replies that belong to no request of its own, and leaves those of others in a
// shared queue to them; a responder counts messages that it cannot answer.
func TestOtherReplies(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		b := broker(t, nil)
		send := func(name string, n int, m driver.Message) {
			d, err := b.Factory().Open(t.Context(), driver.OpenOptions{URL: "mem://local", ConnectTimeout: time.Second})
			require.NoError(t, err)
			p, err := d.Producer(t.Context(), driver.ProducerSpec{
				Destination: driver.Destination{Name: name}, MaxPending: 1, Variants: []driver.Variant{{}},
			}, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
			require.NoError(t, err)
			for range n {
				require.NoError(t, p.Send(t.Context(), &m))
			}
			require.NoError(t, p.Close(t.Context()))
			require.NoError(t, d.Close(t.Context()))
		}
		send("TEST", 3, driver.Message{})
		s, _ := run(t, newPlan(b.Factory(), service, func(p *flat) {
			p.Role, p.Count, p.Rate = plan.Responder, 3, plan.Rate{}
		}), nil)
		require.Equal(t, map[result.Counter]uint64{result.Received: 3, result.Unanswerable: 3}, countsOf(&s.Total, replyCounters...))
		send("REPLIES", 2, driver.Message{})
		send("REPLIES", 4, driver.Message{Correlation: []byte("ID:other")})
		f := b.Factory()
		f.Capabilities.Queue.Selector = false // else they stay
		s, _ = run(t, newPlan(f, service, func(p *flat) { p.ReplyTo = "queue://REPLIES" }), nil)
		require.EqualValues(t, 1000, s.Total.Get(result.Replies))
		require.EqualValues(t, 2, s.Total.Get(result.UncorrelatedReplies))
		require.GreaterOrEqual(t, s.Total.Get(result.ForeignReplies), uint64(4), "they come again")
	})
}

// TestRequestsOfTwoProcesses: a requester and a responder apart, each with its own file, are verified together by the
// numbers of requests and of replies.
func TestRequestsOfTwoProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		faults  mem.Options
		replyTo string
		want    result.Verified
		counts  map[result.Counter]uint64
	}{
		"all": {counts: map[result.Counter]uint64{result.Replies: 1000}},
		"every tenth reply lost, a shared address": {
			faults: mem.Options{Lose: 10}, replyTo: "queue://REPLIES", want: result.Verified{Lost: 100},
			counts: map[result.Counter]uint64{result.Replies: 900, result.TimedOut: 100},
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			c.faults.OnlyReplies = true
			b, dir := broker(t, func(o *mem.Options) { *o = c.faults }), t.TempDir()
			side := func(role plan.Role) func(*flat) {
				return func(p *flat) {
					service(p)
					p.Role, p.Verify, p.VerifyFile = role, true, filepath.Join(dir, string(role))
				}
			}
			var responder *stats.Summary
			var both sync.WaitGroup
			both.Go(func() {
				responder, _ = run(t, newPlan(b.Factory(), side(plan.Responder), func(p *flat) { p.Rate, p.Duration = plan.Rate{}, 6*time.Second }), nil)
			})
			pass(time.Second)
			s, _ := run(t, newPlan(b.Factory(), side(plan.Requester), func(p *flat) { p.ReplyTo = c.replyTo }), nil)
			both.Wait()
			require.Equal(t, c.counts[result.TimedOut] == 0, s.Outcome.Success, s.Problems())
			if !s.Outcome.Success {
				require.Equal(t, []string{"requests without a reply in time: 100 of 1000"}, s.Problems())
			}
			require.True(t, responder.Outcome.Success, responder.Problems())
			got := countsOf(&s.Total, replyCounters...)
			delete(got, result.Sent)
			delete(got, result.Completed)
			require.Equal(t, c.counts, got)
			require.EqualValues(t, 1000, responder.Total.Get(result.Answered))
			var sides []*verify.Side
			for _, role := range []plan.Role{plan.Requester, plan.Responder} {
				sides = append(sides, musttest.Get(verify.ReadFile(filepath.Join(dir, string(role))))(t))
			}
			v := verify.Judge(sides...)
			require.True(t, v.Known)
			require.Empty(t, v.Unwatched)
			require.Len(t, v.Scopes, 2, "requests and replies")
			require.EqualValues(t, 2000, v.Sent)
			require.Equal(t, c.want, result.Verified{Lost: v.Total.Lost, Left: v.Total.Left, Duplicates: v.Total.Duplicates, Foreign: v.Total.Foreign})
		})
	}
}

// TestRequestsAfterAnOutage: the lost queue of a requester is replaced by another one. Requests that had no reply time
// out, those after the outage are answered.
func TestRequestsAfterAnOutage(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.OnlyReplies, o.DeliveryLatency = true, 50*time.Millisecond })
		time.AfterFunc(500*time.Millisecond+time.Microsecond, b.Disconnect)
		s, _ := run(t, newPlan(b.Factory(), service, func(p *flat) {
			p.Rate, p.Reconnect, p.Allow.Lost = rate("100 for 2s"), true, true
		}), nil)
		n := s.Total
		require.EqualValues(t, 200, n.Get(result.Sent))
		require.Len(t, s.Outages, 1)
		require.EqualValues(t, 200, n.Get(result.Replies)+n.Get(result.TimedOut))
		// Those sent within 50 ms before the outage had no reply yet.
		require.InDelta(t, 5, n.Get(result.TimedOut), 1)
		require.Zero(t, n.Get(result.LateReplies)+n.Get(result.DuplicateReplies)+n.Get(result.ForeignReplies))
	})
}

// TestRequestsOfShards: requesters and responders of several processes of one run share queues, and each requester gets
// its own replies.
func TestRequestsOfShards(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		b, dir := mem.New(), t.TempDir()
		sums, sides := make([]*stats.Summary, 3), make([]*verify.Side, 3)
		var all sync.WaitGroup
		at := time.Now().Add(time.Second)
		for i := range sums {
			all.Go(func() {
				path := filepath.Join(dir, string(rune('a'+i)))
				sums[i], _ = run(t, newPlan(b.Factory(), service, func(p *flat) {
					p.Shard, p.RunID, p.StartAt = plan.Shard{Number: i + 1, Of: 3}, 7, at
					p.Producers, p.Consumers, p.ReplyTo = 4, 5, "queue://REPLIES"
					p.Verify, p.VerifyFile, p.Allow.Disorder = true, path, true
				}), nil)
				sides[i] = musttest.Get(verify.ReadFile(path))(t)
			})
		}
		all.Wait()
		total := sums[0].Total
		total.Add(&sums[1].Total)
		total.Add(&sums[2].Total)
		require.Equal(t, map[result.Counter]uint64{
			result.Sent: 1000, result.Completed: 1000, result.Received: 1000, result.Replies: 1000, result.Answered: 1000,
		}, countsOf(&total, replyCounters...))
		v := verify.Judge(sides...)
		require.True(t, v.Known)
		require.EqualValues(t, 2000, v.Total.Once)
		require.Zero(t, v.Total.Lost+v.Total.Left+v.Total.Duplicates+v.Total.Foreign)
	})
}
