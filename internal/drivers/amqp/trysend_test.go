package amqp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestTrySend: TrySend sends only within credit and window, and only messages of one frame with a disposition of their
// own. Other messages use up neither.
func TestTrySend(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*peer)
		body   string
		option string
		want   bool
	}{
		{"credit", nil, "x", "settle=at-least-once", true},
		{"no credit", func(p *peer) { p.credit = 0 }, "x", "settle=at-least-once", false},
		{"no window", func(p *peer) { p.window = 0 }, "x", "settle=at-least-once", false},
		{"too large for the broker", func(p *peer) { p.attach = func(f *wire.Attach) { f.MaxMessageSize = 100 } }, strings.Repeat("x", 100), "settle=at-least-once", false},
		{"several frames", nil, strings.Repeat("x", 5000), "settle=at-least-once", false},
		{"settled", func(p *peer) { p.attach = func(f *wire.Attach) { f.SenderSettleMode = wire.SenderSettled } }, "x", "settle=at-most-once", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker, r := peerRig(t, c.change, c.option)
			spec := producerSpec(1)
			spec.Variants = body(c.body)
			p, err := r.tryProducer(spec)
			require.NoError(t, err)
			inner := p.Producer.(*producer)
			s := inner.s
			state := func() [4]uint32 {
				s.mu.Lock()
				defer s.mu.Unlock()
				return [4]uint32{s.nextOut, s.room, inner.credit, uint32(inner.unsettled.Next)}
			}
			if broker.credit > 0 { // it comes after the attach
				require.Eventually(t, func() bool { return state()[2] > 0 }, patience, patience/60_000)
			}
			before := state()
			require.Equal(t, c.want, inner.TrySend(&driver.Message{Slot: <-p.free, Time: 1}))
			after := state()
			if !c.want {
				require.Equal(t, before, after)
				return
			}
			require.Equal(t, [4]uint32{before[0] + 1, before[1] - 1, before[2] - 1, before[3] + 1}, after)
			require.EqualValues(t, 0, <-broker.transfers)
			broker.settle(0, 0, wire.State{Kind: wire.DescAccepted})
			require.Equal(t, driver.Accepted, p.waitOutcomes(1)[0].State)
		})
	}
}
