package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

func verified(p *flat) { p.Verify, p.Allow.Disorder = true, true }

// For each fault, the verification reports exactly the faults of the broker, and nothing else.
func TestVerificationFindsWhatTheBrokerDid(t *testing.T) {
	const count = 1000
	type truth = mem.Stats
	tests := []struct {
		name    string
		options func(*mem.Options)
		want    func(b *truth) result.Verified // but for Expected, Received and Once, see below
		lacking func(b *truth) uint64          // messages that do not arrive, of all that were sent
		problem string
		warning string
	}{
		{name: "none", options: func(*mem.Options) {}},
		{
			name: "lose", options: func(o *mem.Options) { o.Lose = 100 },
			want: func(b *truth) result.Verified { return result.Verified{Lost: b.Lost} }, lacking: func(b *truth) uint64 { return b.Lost },
			problem: "messages lost, accepted but never received: 10 of 1000; first: ",
		},
		{
			name: "duplicate", options: func(o *mem.Options) { o.Duplicate = 50 },
			want: func(b *truth) result.Verified {
				return result.Verified{Duplicates: b.Duplicated, Redelivered: b.Redelivered}
			},
			problem: "messages received more than once: 20 duplicates, 20 marked as redelivered; first: ",
		},
		{
			name: "reorder", options: func(o *mem.Options) { o.Reorder = 30 },
			want:    func(b *truth) result.Verified { return result.Verified{Disordered: b.Reordered} },
			warning: "messages received out of order: 33, 0 marked as redelivered; first: ",
		},
		{
			name: "damage", options: func(o *mem.Options) { o.Damage = 40 },
			want:    func(b *truth) result.Verified { return result.Verified{Damaged: b.Damaged} },
			problem: "messages damaged: 25; first: ",
		},
		{
			name: "damage of the ID", options: func(o *mem.Options) { o.DamageID = 40 },
			want: func(b *truth) result.Verified {
				return result.Verified{Damaged: b.DamagedIDs, Illegible: b.DamagedIDs, Lost: b.DamagedIDs}
			},
			lacking: func(b *truth) uint64 { return b.DamagedIDs },
			problem: "messages damaged: 25, 25 of them beyond recognition and counted as lost too",
		},
		{
			name: "reject", options: func(o *mem.Options) { o.Reject = 10 }, lacking: func(b *truth) uint64 { return b.Ended[driver.Rejected] },
			problem: "messages rejected by the broker: 100",
		},
		{
			name: "release", options: func(o *mem.Options) { o.Release = 10 }, lacking: func(b *truth) uint64 { return b.Ended[driver.Released] },
			problem: "messages given back by the broker: 100",
		},
		{
			name: "fail", options: func(o *mem.Options) { o.Fail = 10 }, lacking: func(b *truth) uint64 { return b.Ended[driver.Failed] },
			problem: "messages failed: 100",
		},
		{
			name: "never acknowledged", options: func(o *mem.Options) { o.Withhold = 100 },
			want:    func(b *truth) result.Verified { return result.Verified{UnconfirmedArrived: b.Withheld} },
			problem: "messages without an answer",
		},
		{
			name: "never acknowledged, some lost", options: func(o *mem.Options) { o.Withhold, o.Lose = 10, 100 },
			want: func(b *truth) result.Verified {
				return result.Verified{UnconfirmedArrived: b.Withheld - b.Lost, UnconfirmedMissing: b.Lost}
			},
			lacking: func(b *truth) uint64 { return b.Lost },
			problem: "messages without an answer",
		},
		{name: "rollback", options: func(o *mem.Options) { o.Rollback = 10 }, lacking: func(b *truth) uint64 { return b.RolledBack }},
		{
			name: "everything", options: func(o *mem.Options) {
				o.Lose, o.Duplicate, o.Reorder, o.Damage, o.DamageID = 101, 103, 107, 109, 113
				o.Reject, o.Rollback, o.Fail, o.Withhold = 127, 131, 137, 97
			},
			want: func(b *truth) result.Verified {
				return result.Verified{
					Lost: b.Lost + b.DamagedIDs, Duplicates: b.Duplicated, Redelivered: b.Redelivered, Disordered: b.Reordered,
					Damaged: b.Damaged + b.DamagedIDs, Illegible: b.DamagedIDs, UnconfirmedArrived: b.Withheld,
				}
			},
			lacking: func(b *truth) uint64 {
				return b.Lost + b.DamagedIDs + b.Ended[driver.Rejected] + b.RolledBack + b.Ended[driver.Failed]
			},
			problem: "messages lost",
		},
	}
	for _, tt := range tests {
		for _, producers := range []int{1, 2, 3, 4} {
			windowed := producers == 4
			inBubble(t, fmt.Sprintf("%s, %d producers", tt.name, producers), func(t *testing.T) {
				b := broker(t, tt.options)
				s, rep := run(t, newPlan(b.Factory(), func(p *flat) {
					p.Count, p.MaxPending, p.Producers, p.Verify, p.Allow.Disorder = count, 100, producers, true, true
					if producers == 2 {
						p.Mix = templated(t)
					}
					if windowed { // most messages are judged during the run
						p.Rate, p.VerifyWindow = rate("100"), time.Second
					}
				}), nil)
				truth := b.Stats()
				v := s.Verification
				require.NotNil(t, v)
				require.True(t, v.Known)
				require.EqualValues(t, count, v.Sent)
				var want result.Verified
				if tt.want != nil {
					want = tt.want(&truth)
				}
				want.Expected = truth.Ended[driver.Accepted] - truth.RolledBack
				want.Received = count
				if tt.lacking != nil {
					want.Received -= tt.lacking(&truth)
				}
				want.Once = want.Received - want.Duplicates
				if producers > 1 { // the message that overtook another may be from another producer: that is no disorder
					require.LessOrEqual(t, v.Total.Disordered, want.Disordered)
					want.Disordered = v.Total.Disordered
				}
				require.Equal(t, want, v.Total)
				require.Equal(t, want.Expected, *s.Expected)
				require.Equal(t, want.Lost, *s.Missing)
				require.Equal(t, tt.problem == "", s.Outcome.Success, s.Problems())
				require.Contains(t, strings.Join(s.Problems(), "\n"), tt.problem)
				if producers == 1 {
					require.Contains(t, strings.Join(append(s.Warnings(), s.Notes()...), "\n"), tt.warning)
				}
				if want.Lost == 0 && truth.Withheld == 0 && !windowed {
					require.Less(t, lasted(s), 1300*time.Millisecond, "nothing to wait for")
				}
				last := rep.snapshots[len(rep.snapshots)-1].Verified
				if windowed {
					require.LessOrEqual(t, last.Lost, want.Lost)
					require.GreaterOrEqual(t, last.Lost*100, want.Lost*75)
					last.Expected, last.Lost = 0, 0
				}
				require.Equal(t, result.Progress{
					Received: want.Received, Duplicates: want.Duplicates, Redelivered: want.Redelivered,
					Disordered: want.Disordered, Damaged: want.Damaged,
				}, *last)
			})
		}
	}
}

// Each subscription is judged on its own, with and without verification: duplicates at one do not hide messages missing
// at another.
func TestDuplicateDoesNotHideLossOnAnotherSubscription(t *testing.T) {
	for _, verify := range []bool{false, true} {
		inBubble(t, fmt.Sprintf("verify %t", verify), func(t *testing.T) {
			seen := 0
			f := delivering(mem.New().Factory(), func(spec driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
				switch spec.Name {
				case "consumer-0": // twice
					deliver(d)
					deliver(d)
				case "consumer-1":
					if seen++; seen > 10 { // loses 10
						deliver(d)
					}
				default:
					deliver(d)
				}
			})
			s, _ := run(t, newPlan(f, func(p *flat) {
				p.Count, p.Consumers, p.Producers, p.Verify = 100, 3, 2, verify
				p.Destinations = destinations(driver.Topic, 1)
			}), nil)
			require.False(t, s.Outcome.Success)
			require.EqualValues(t, 300, *s.Expected)
			require.EqualValues(t, 390, s.Total.Get(result.Received))
			require.EqualValues(t, 10, *s.Missing)
			if !verify {
				require.Contains(t, strings.Join(s.Warnings(), "\n"), "(duplicates, or another producer): 100")
				return
			}
			require.Len(t, s.Verified.Scopes, 3)
			want := []result.Verified{
				{Expected: 100, Received: 100, Duplicates: 100},
				{Expected: 100, Received: 90, Once: 90, Lost: 10},
				{Expected: 100, Received: 100, Once: 100},
			}
			for i, scope := range s.Verified.Scopes {
				require.Equal(t, want[i], scope.Verified)
				require.Equal(t, fmt.Sprintf("topic://D0 (consumer-%d)", i), scope.Title())
			}
			require.Contains(t, strings.Join(s.Problems(), "\n"), " on topic://D0 (consumer-1)")
		})
	}
}

// Competing consumers, shared subscriptions and several destinations: nothing is wrong, and nothing is found.
func TestHealthyRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		edit   func(*flat)
		scopes int
		copies uint64 // of each message
	}{
		{"competing", func(p *flat) { p.Consumers, p.Producers = 5, 3 }, 1, 1},
		{"queues", func(p *flat) { p.Consumers, p.Producers, p.Destinations = 2, 2, destinations(driver.Queue, 3) }, 3, 1},
		{"topics", func(p *flat) { p.Consumers, p.Producers, p.Destinations = 2, 3, destinations(driver.Topic, 10) }, 20, 2},
		{"shared", func(p *flat) { p.Consumers, p.Shared, p.Destinations = 3, 2, destinations(driver.Topic, 2) }, 4, 2},
		{"durable", func(p *flat) { p.Durable, p.Consumers, p.Destinations = true, 2, destinations(driver.Topic, 1) }, 2, 2},
		{"durable and shared", func(p *flat) {
			p.Durable, p.Producers, p.Consumers, p.Shared, p.Destinations = true, 2, 2, 3, destinations(driver.Topic, 3)
		}, 9, 3},
	} {
		for _, verify := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, verify %t", tt.name, verify), func(t *testing.T) {
				const count = 2001
				b := mem.New()
				s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
					p.Count, p.MaxPending, p.ClientID, p.Verify, p.Allow.Disorder = count, 50, "me", verify, true
					tt.edit(p)
				}), nil)
				require.True(t, s.Outcome.Success, s.Problems())
				require.EqualValues(t, count, s.Total.Get(result.Completed))
				n := tt.copies * count
				require.Equal(t, n, *s.Expected)
				require.Equal(t, n, s.Total.Get(result.Received))
				require.Zero(t, b.Subscriptions("D0"), "durable ones are removed")
				require.Nil(t, s.Workers[0].BrokerHosts, "the URL names one")
				if verify {
					require.Len(t, s.Verified.Scopes, tt.scopes)
					require.Equal(t, result.Verified{Expected: n, Received: n, Once: n}, s.Verification.Total)
				}
			})
		}
	}
}

func destinations(kind driver.Kind, n int) (list []driver.Destination) {
	for i := range n {
		list = append(list, driver.Destination{Kind: kind, Name: fmt.Sprint("D", i)})
	}
	return list
}

// Messages that were in the queue before are foreign, whatever their time.
func TestVerificationOfForeignMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		run(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Producer, 25 }), nil)              // without ID
		run(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Producer, 17; verified(p) }), nil) // of another run
		s, rep := run(t, newPlan(b.Factory(), func(p *flat) { p.Count = 100; verified(p) }), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.EqualValues(t, 42, s.Total.Get(result.Foreign))
		require.EqualValues(t, 100, s.Total.Get(result.Received))
		require.Equal(t, result.Verified{Expected: 100, Received: 100, Once: 100, Foreign: 42}, s.Verification.Total)
		require.EqualValues(t, 42, rep.snapshots[len(rep.snapshots)-1].Verified.Foreign)
	})
}

// A connection that breaks leaves messages at the broker: they are not called lost, but the run has failed.
func TestVerificationOfABrokenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose = 50 })
		delivered := 0
		f := delivering(b.Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			if delivered++; delivered == 500 {
				b.Disconnect()
			}
			deliver(d)
		})
		s, _ := run(t, newPlan(f, func(p *flat) { p.Count, p.MaxPending = 1000, 10; verified(p) }), nil)
		require.False(t, s.Outcome.Success)
		truth, got := b.Stats(), s.Verification.Total
		require.Zero(t, got.Lost)
		require.Equal(t, truth.Ended[driver.Accepted], got.Expected)
		require.Equal(t, truth.Ended[driver.Accepted]-got.Received+got.UnconfirmedArrived, got.Left)
		// The message that was being delivered when the connection broke has arrived, and gone back as well.
		require.InDelta(t, truth.Lost+truth.Backlog, got.Left+got.UnconfirmedMissing, 1)
		require.Contains(t, strings.Join(s.Problems(), "\n"), "not received when the consumers ended")
	})
}

// Messages missing after a consumer failed are left, not lost: the broker may hold them for it.
func TestVerificationOfAFailedConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose = 50 })
		var started atomic.Int32
		f := (&hooks{runs: func(ctx context.Context, run func() error) error {
			if started.Add(1) > 1 {
				return run()
			}
			<-time.After(time.Second)
			return driver.Errorf(driver.ClassTimeout, "unlock queues", "", "no answer")
		}}).factory(b.Factory())
		s, _ := run(t, newPlan(f, func(p *flat) {
			p.Consumers, p.Rate, p.Duration = 2, rate("1000"), 5*time.Second
			verified(p)
		}), nil)
		require.False(t, s.Outcome.Success)
		require.Zero(t, s.Verification.Total.Lost)
		require.GreaterOrEqual(t, s.Verification.Total.Left, b.Stats().Lost)
		require.NotZero(t, b.Stats().Lost)
	})
}

// A second Ctrl-C ends the drain: messages that have not come are not lost.
func TestVerificationOfAHastyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = time.Hour })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		rep := new(recorder)
		s, err := carryOut(ctx, nil, newPlan(b.Factory(), func(p *flat) { p.Count = 100; verified(p) }), rep)
		require.NoError(t, err)
		require.False(t, s.Outcome.Success)
		require.Equal(t, result.Verified{Expected: 100, Left: 100}, s.Verification.Total)
	})
}

// With a selector the expected messages are not known; with a time to live, losses may have expired.
func TestVerificationWithoutExpectation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Lose, o.Duplicate = 100, 90 })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			p.Count, p.Selector, p.Mix[0].Properties = 1000, "color = 'red'", []driver.Property{{Key: "color", Value: "red"}}
			verified(p)
			p.Allow.Duplicates = true
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.False(t, s.Verification.Known)
		require.Equal(t, result.Verified{Received: 990, Once: 980, Duplicates: 10, Redelivered: 10}, s.Verification.Total)
		require.Contains(t, strings.Join(s.Warnings(), "\n"), "losses are not detected")
	})
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 2 * time.Second })
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Count, p.TTL, p.MaxPending = 100, time.Second, 10; verified(p) }), nil)
		require.False(t, s.Outcome.Success)
		require.Zero(t, b.Stats().Backlog)
		require.EqualValues(t, 100, s.Verification.Total.Lost)
		require.Contains(t, strings.Join(s.Warnings(), "\n"), "time to live")
	})
}
