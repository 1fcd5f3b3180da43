package amqp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestOurOwnFindings: faults that we, or the library, find in the peer's data are not reported as the broker closing.
func TestOurOwnFindings(t *testing.T) {
	for name, foul := range map[string]func(*peer){
		"a frame that is none":   func(p *peer) { p.write([]byte{0, 0, 0, 9, 2, 0, 0, 0, 0xff}) },
		"a frame of no length":   func(p *peer) { p.write([]byte{0, 0, 0, 0, 2, 0, 0, 0}) },
		"a map of an odd length": func(p *peer) { p.write(performative(wire.DescFlow, 0xc0, 7, 2, 0x40, 0xc1, 3, 3, 0x40, 0x40)) },
		"a map of four billion": func(p *peer) {
			p.write(performative(wire.DescOpen, 0xc0, 18, 3, 0xa1, 1, 'x', 0x40, 0xd1, 0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
		},
		"an unknown performative":       func(p *peer) { p.write(performative(0x77, wire.CodeList0)) },
		"a transfer over no link":       func(p *peer) { p.write(transfers(1, false, 77)) },
		"a detach of no link":           func(p *peer) { p.write((&wire.Detach{Handle: 77, Closed: true}).AppendFrame(nil, 0)) },
		"a channel that has no session": func(p *peer) { p.write(new(wire.End).AppendFrame(nil, 7)) },
	} {
		t.Run(name, func(t *testing.T) {
			broker, r := peerRig(t, nil)
			p := r.producer(1, "")
			p.send(1)
			<-broker.transfers
			foul(broker)
			o := p.waitOutcomes(1)[0]
			assert.Equal(t, driver.Unknown, o.State)
			require.Equal(t, driver.ClassProtocol, o.Class, "%v", o.Err)
			require.ErrorContains(t, o.Err, "the peer broke the protocol")
			require.NotContains(t, o.Err.Error(), "the broker closed")
			assert.NotEmpty(t, driver.HintOf(o.Err))
		})
	}
}

// TestRefusedOpens: a broker that closes at once says why, and the hint has nothing to do with an address.
func TestRefusedOpens(t *testing.T) {
	for _, c := range []struct {
		condition string
		class     driver.Class
		hint      string
	}{
		{"amqp:not-found", driver.ClassNotFound, "-o virtual-host"},
		{"amqp:not-allowed", driver.ClassConnect, "-o virtual-host"},
		{"amqp:invalid-field", driver.ClassConnect, "-o virtual-host"},
		{"amqp:unauthorized-access", driver.ClassAuth, "-o virtual-host"},
		{"amqp:resource-limit-exceeded", driver.ClassFull, "fewer connections"},
		{"amqp:connection:forced", driver.ClassConnect, "shutting down"},
		{"amqp:internal-error", driver.ClassOther, "broker's log"},
	} {
		t.Run(c.condition, func(t *testing.T) {
			_, r := peerRig(t, func(p *peer) {
				p.refuseOpen = &wire.Error{Condition: c.condition, Description: "vhost 'nope' is not there"}
			})
			_, err := r.tryProducer(producerSpec(1))
			require.Equal(t, c.class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "vhost 'nope' is not there ("+c.condition+")")
			assert.Contains(t, driver.HintOf(err), c.hint)
			assert.NotContains(t, driver.HintOf(err), "auto-create")
		})
	}
}

// TestArtemisCodes: Artemis says the reason by a code, and the condition is a general one.
func TestArtemisCodes(t *testing.T) {
	for description, want := range map[string]driver.Class{
		"AMQ229119: Disk Capacity is Low, cannot produce more messages.":       driver.ClassFull,
		"AMQ229102: Address \"q\" is full.":                                    driver.ClassFull,
		"AMQ229032: User: joe does not have permission='CREATE_ADDRESS' on q.": driver.ClassAuth,
		"AMQ229999: something else":                                            driver.ClassOther,
		"something else: AMQ229119":                                            driver.ClassOther,
	} {
		_, r := peerRig(t, func(p *peer) { p.refuse = &wire.Error{Condition: "failed", Description: description} })
		_, err := r.tryProducer(producerSpec(1))
		require.Equal(t, want, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, description+" (failed)")
		assert.NotEmpty(t, driver.HintOf(err))
	}
}

// TestRefusedLogins goes by the code of the outcome (AMQP 1.0, Security, section 5.3.3.6).
func TestRefusedLogins(t *testing.T) {
	for code, want := range map[uint8]string{1: "does not accept the login (code 1)", 4: "(code 4)"} {
		broker := newPeer(t)
		broker.mechanism, broker.login = "PLAIN", code
		r := newRig(t, driver.OpenOptions{URL: broker.start(), User: "app", Password: "secret"})
		_, err := r.tryProducer(producerSpec(1))
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, want)
		assert.NotEmpty(t, driver.HintOf(err))
	}
}
