package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// Drivers that break their contract: the run ends in bounded time all the same, and lists the resources left behind.
func TestMisbehavingDriversDoNotHangTheRun(t *testing.T) {
	tests := []struct {
		name      string
		hooks     func(hang func()) *hooks
		edit      func(*flat)
		left      []string // names in the list of resources left behind
		inFlight  uint64
		problem   string
		loadError bool // the load does not even begin to last loadTime
	}{
		{
			name: "Send never returns", left: []string{"producer-0"}, inFlight: 1, problem: "of unknown end: 1",
			hooks: func(hang func()) *hooks {
				n := 0
				return &hooks{send: func(_ context.Context, send func() error) error {
					if n++; n == 100 {
						hang()
					}
					return send()
				}}
			},
		},
		{
			name: "Done never comes", inFlight: 10, problem: "of unknown end: 10",
			hooks: func(func()) *hooks {
				n := 0
				return &hooks{done: func(_ driver.ProducerSpec, o driver.Outcome, end func(driver.Outcome)) {
					if n++; n <= 100 {
						end(o)
					}
				}}
			},
		},
		{
			name: "Close waits for its context", left: []string{"producer-0", "consumer-0", "connections to the broker"},
			hooks: func(func()) *hooks {
				wait := func(ctx context.Context, c func() error) error { <-ctx.Done(); _ = c(); return ctx.Err() }
				return &hooks{closeSend: wait, closeRecv: wait, closeDrive: wait}
			},
		},
		{
			name: "Run does not return", left: []string{"consumer-0"},
			hooks: func(hang func()) *hooks {
				return &hooks{runs: func(_ context.Context, run func() error) error { err := run(); hang(); return err }}
			},
		},
		{
			name: "Run returns at once", problem: "it stopped receiving", loadError: true,
			hooks: func(func()) *hooks {
				return &hooks{runs: func(context.Context, func() error) error { return nil }}
			},
		},
		{
			name: "everything hangs", left: []string{"producer-0", "consumer-0", "connections to the broker"}, inFlight: 1,
			problem: "of unknown end: 1",
			hooks: func(hang func()) *hooks {
				wait := func(_ context.Context, c func() error) error { hang(); return c() }
				return &hooks{
					send: wait, closeSend: wait, closeRecv: wait, closeDrive: wait,
					runs: func(_ context.Context, run func() error) error { hang(); return nil },
				}
			},
		},
		{
			name: "40 producers hang in Close, one after the other would take minutes",
			edit: func(p *flat) { p.Producers = 40 },
			left: func() (names []string) {
				for i := range 40 {
					names = append(names, fmt.Sprintf("producer-%d: ", i))
				}
				return names
			}(),
			hooks: func(hang func()) *hooks {
				return &hooks{closeSend: func(_ context.Context, c func() error) error { hang(); return c() }}
			},
		},
	}
	for _, tt := range tests {
		for _, impatient := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s/impatient %t", tt.name, impatient), func(t *testing.T) {
				released := make(chan struct{})
				defer close(released) // and the bubble checks that every goroutine ends then
				h := tt.hooks(func() { <-released })
				p := newPlan(h.factory(mem.New().Factory()), steady, func(p *flat) {
				}, tt.edit)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				bound := loadTime + drainTimeout + closeBound
				if impatient { // while it closes, or drains, or still loads
					time.AfterFunc(loadTime+time.Second, cancel)
					bound = loadTime + time.Second + hurryBound
				}
				rep, begun := new(recorder), time.Now()
				s, err := carryOut(ctx, nil, p, rep)
				took := time.Since(begun)
				require.NoError(t, err)
				check(t, p, s, rep)
				require.LessOrEqual(t, took, bound)
				if !tt.loadError {
					require.GreaterOrEqual(t, took, loadTime)
				}
				require.Len(t, s.Outcome.LeftBehind, len(tt.left), s.Outcome.LeftBehind)
				for _, name := range tt.left {
					require.Contains(t, strings.Join(s.Outcome.LeftBehind, "\n"), name)
				}
				require.NotContains(t, strings.Join(s.Outcome.LeftBehind, "\n"), "context", "users do not know what that is")
				require.Equal(t, tt.inFlight, s.Total.InFlight())
				require.Contains(t, strings.Join(s.Problems(), "\n"), tt.problem)
			})
		}
	}
}

// A reporter that never returns delays the end only until the user asks twice.
func TestStuckReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(loadTime+time.Minute, cancel)
		released := make(chan struct{})
		rep := new(recorder)
		n := 0
		begun := time.Now()
		s, err := carryOut(ctx, nil, newPlan(mem.New().Factory(), steady), &stuckReporter{rep, func() {
			if n++; n == 3 {
				<-released
			}
		}})
		require.ErrorContains(t, err, "outputs did not take them")
		require.InDelta(t, 1000, s.Total.Get(result.Completed), 1)
		require.Less(t, time.Since(begun), loadTime+time.Minute+time.Second)
		close(released)
	})
}
