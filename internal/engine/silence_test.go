package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// A run that only --message-count ends gives up when the broker does nothing any more.
func TestSilentBrokerEndsACount(t *testing.T) {
	tests := []struct {
		name    string
		edit    func(*flat)
		options func(*mem.Options)
		sent    uint64
		reason  string
		lasts   time.Duration // of the load; 0 if it does not matter
		text    string
		stop    time.Duration // by the user after this time, if not 0
	}{
		{
			name: "all slots unanswered", options: func(o *mem.Options) { o.Withhold = 50 },
			edit: func(p *flat) { p.MaxPending = 10 }, sent: 500, reason: "no answer", lasts: 11 * time.Second,
			text: "it did nothing for 10s; messages waiting for it: 10",
		},
		{
			name: "the drain time-out is the patience", options: func(o *mem.Options) { o.Withhold = 50 },
			edit: func(p *flat) { p.DrainTimeout = time.Minute }, sent: 50, reason: "no answer", lasts: 61 * time.Second,
		},
		{
			name: "at a rate", options: func(o *mem.Options) { o.Withhold = 50 },
			edit: func(p *flat) { p.Rate = rate("100") }, sent: 50, reason: "no answer",
		},
		{
			name: "no credit to send", options: func(o *mem.Options) { o.Limit = 300 },
			edit: func(p *flat) { p.Role, p.Producers, p.MaxPending = plan.Producer, 3, 100 }, sent: 300, reason: "no answer",
			text: "messages waiting for it: 3",
		},
		{
			name: "one of two producers", options: func(o *mem.Options) { o.Withhold = 50 },
			edit: func(p *flat) { p.Producers = 2 }, reason: "no answer",
		},
		{
			name: "beside a group without an end", options: func(o *mem.Options) { o.Withhold = 50 }, reason: "no answer",
			edit: func(p *flat) {
				endless := *p.Group
				endless.Name, endless.Count, endless.Role = "endless", 0, plan.Producer
				p.Step.Groups = append(p.Step.Groups, &endless)
			},
			text: "messages waiting for it: 2",
		},
		{
			name: "a stall that ends", options: func(o *mem.Options) { o.StallFor, o.Latency = 9*time.Second, time.Millisecond },
			sent: 1000, reason: "message count reached",
		},
		{
			name: "messages that are seldom due", options: func(o *mem.Options) { o.Withhold = 4 },
			edit: func(p *flat) { p.Rate, p.Count, p.MaxPending = rate("0.01"), 6, 2 }, sent: 6, reason: "message count reached",
		},
		{
			name: "beside a group without an end whose messages are seldom due", stop: 250 * time.Second,
			edit: func(p *flat) {
				endless := *p.Group
				p.Rate = rate("1k")
				endless.Name, endless.Count, endless.Role, endless.Rate = "endless", 0, plan.Producer, rate("0.01")
				p.Step.Groups = append(p.Step.Groups, &endless)
			},
			sent: 1003, reason: "interrupted",
		},
		{
			name: "with a duration it is awaited", options: func(o *mem.Options) { o.Withhold = 50 },
			edit: func(p *flat) { p.Duration = time.Hour }, sent: 50, reason: "duration reached", lasts: time.Hour,
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b, stop := broker(t, tt.options), make(chan struct{})
			if tt.stop > 0 {
				time.AfterFunc(tt.stop, func() { close(stop) })
			}
			s, rep := run(t, newPlan(b.Factory(), func(p *flat) { p.Count = 1000 }, tt.edit), stop)
			require.Contains(t, s.Outcome.Reason, tt.reason)
			if tt.sent > 0 {
				require.Equal(t, tt.sent, s.Total.Get(result.Sent))
			}
			if tt.lasts > 0 {
				require.InDelta(t, tt.lasts, lasted(s), float64(4*time.Second))
			}
			require.Contains(t, strings.Join(s.Problems(), "\n"), tt.text)
			require.Empty(t, s.Outcome.LeftBehind)
			require.NotEmpty(t, rep.snapshots)
			if tt.reason == "no answer" {
				require.False(t, s.Outcome.Success)
				require.Equal(t, driver.ClassTimeout, driver.ClassOf(s.Err))
				for _, setting := range []string{"--drain-timeout", "--send-timeout", "-o idle-timeout", "-o heart-beat"} {
					require.Contains(t, driver.HintOf(s.Err), setting)
				}
			}
		})
	}
}

// A broker may not answer to Close: that is not worth the connect time-out, unless subscriptions have to be removed and
// it has answered before. Workers that close, however slowly, are given the time.
func TestClosingAfterUnansweredMessages(t *testing.T) {
	slow := func(_ context.Context, c func() error) error { pass(1500 * time.Millisecond); return c() }
	silent := func(ctx context.Context, c func() error) error {
		<-ctx.Done()
		_ = c()
		return driver.Errorf(driver.ClassTimeout, "close it", "", "no answer: %w", ctx.Err())
	}
	tests := []struct {
		name     string
		withhold bool
		topic    bool
		hooks    *hooks
		lasts    time.Duration // after the drain
		left     int
		after    map[string]int // how many of those were given up after which time
	}{
		{"silent", true, false, &hooks{closeSend: silent, closeRecv: silent, closeDrive: silent}, 4 * time.Second, 42, map[string]int{"2s": 42}},
		{"all answered", false, false, &hooks{closeSend: silent, closeRecv: silent, closeDrive: silent}, 4 * time.Second, 42, map[string]int{"2s": 42}},
		{"all answered, on a topic", false, true, &hooks{closeSend: silent, closeRecv: silent, closeDrive: silent}, time.Minute + 2*time.Second, 42, map[string]int{"1m0s": 40, "2s": 2}},
		{"slow", true, false, &hooks{closeRecv: slow}, 3 * 1500 * time.Millisecond, 0, nil},
		{"slow, all answered", false, false, &hooks{closeRecv: slow}, 3 * 1500 * time.Millisecond, 0, nil},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) {
				if tt.withhold {
					o.Withhold = 100
				}
			})
			f := tt.hooks.factory(b.Factory())
			p := newPlan(f, steady, func(p *flat) {
				if p.Consumers = 40; tt.topic {
					p.Destinations[0].Kind = driver.Topic
				}
				p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = time.Minute, time.Minute
			})
			s, err := carryOut(t.Context(), nil, p, new(recorder))
			require.NoError(t, err)
			drained := time.UnixMicro(s.Start).Add(loadTime)
			if tt.withhold {
				drained = drained.Add(drainTimeout)
			}
			require.InDelta(t, tt.lasts, time.UnixMicro(s.End).Sub(drained), float64(300*time.Millisecond))
			require.Len(t, s.Outcome.LeftBehind, tt.left, s.Outcome.LeftBehind)
			for after, n := range tt.after {
				text := ": closing was given up after " + after + " because the broker did not answer\n"
				require.Equal(t, n, strings.Count(strings.Join(s.Outcome.LeftBehind, "\n")+"\n", text), s.Outcome.LeftBehind)
			}
		})
	}
}
