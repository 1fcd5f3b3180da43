//go:build unix

package amqp

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// openProperties is an open frame with these properties.
func openProperties(pairs ...string) wire.Open {
	b := wire.BeginMap(nil)
	for i := 0; i < len(pairs); i += 2 {
		b = wire.AppendStr(wire.AppendSymbol(b, pairs[i]), pairs[i+1])
	}
	wire.EndCompound(b, 0, len(pairs))
	return wire.Open{Properties: b}
}

// TestPrefixes: a broker without a dialect may give a prefix for the addresses of each kind. It counts once, and not
// for brokers with addresses of their own.
func TestPrefixes(t *testing.T) {
	prefixes := []string{"queue-prefix", "queue://", "topic-prefix", "topic://"}
	for _, c := range []struct {
		properties         []string
		name, queue, topic string
	}{
		{prefixes, "a/b", "queue://a/b", "topic://a/b"},
		{prefixes, "queue://a", "queue://a", "topic://queue://a"},
		{prefixes[:2], "a", "queue://a", "a"},
		{nil, "a", "a", "a"},
		{append([]string{"product", "RabbitMQ", "version", "3.13.0"}, prefixes...), "a", "/queue/a", ""},
		{append([]string{"product", "apache-activemq-artemis"}, prefixes...), "a", "a", "a"},
	} {
		for kind, want := range map[driver.Kind]string{driver.Queue: c.queue, driver.Topic: c.topic} {
			if want == "" {
				continue
			}
			addresses := map[bool]string{}
			_, r := peerRig(t, func(p *peer) {
				p.open = openProperties(c.properties...)
				p.attach = func(f *wire.Attach) {
					addresses[f.Role] = f.Target.Address.V
					if f.Role == wire.RoleSender {
						addresses[f.Role] = f.Source.Address.V
					}
				}
			})
			ps, ks := producerSpec(1), consumerSpec()
			ps.Destination = driver.Destination{Kind: kind, Name: c.name}
			ks.Destination = ps.Destination
			require.Empty(t, musttest.Get(r.tryProducer(ps))(t).settle())
			require.NoError(t, musttest.Get(r.tryConsumer(ks))(t).Close(soon(t)))
			require.Equal(t, map[bool]string{wire.RoleSender: want, wire.RoleReceiver: want}, addresses, "%+v", c)
		}
	}
}

// TestLongPrefix: a peer does not decide about the size of addresses.
func TestLongPrefix(t *testing.T) {
	_, r := peerRig(t, func(p *peer) { p.open = openProperties("topic-prefix", strings.Repeat("x", maxPrefix+1)) })
	_, err := r.tryProducer(producerSpec(1))
	require.Equal(t, driver.ClassProtocol, driver.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "a prefix of 101 bytes")
}

// TestPlatform: Solace names itself by a platform.
func TestPlatform(t *testing.T) {
	_, r := peerRig(t, func(p *peer) { p.open = openProperties("platform", "Solace PubSub+ 3560", "version", "10.4.1.189") })
	require.Empty(t, r.producer(1, "").settle())
	product, version := r.d.(driver.Identified).Broker()
	require.Equal(t, []string{"Solace PubSub+ 3560", "10.4.1.189"}, []string{product, version})
}

// TestConditionsOfAzure: a message refused for its time-out may be stored all the same.
func TestConditionsOfAzure(t *testing.T) {
	for condition, want := range map[string]driver.Outcome{
		"com.microsoft:server-busy":     {State: driver.Rejected, Class: driver.ClassFull},
		"com.microsoft:timeout":         {State: driver.Unknown, Class: driver.ClassTimeout},
		"com.microsoft:entity-disabled": {State: driver.Rejected, Class: driver.ClassOther},
		wire.CondInternal:               {State: driver.Rejected, Class: driver.ClassOther},
		wire.CondResourceLimit:          {State: driver.Rejected, Class: driver.ClassFull},
	} {
		broker, r := peerRig(t, nil)
		p := r.producer(1, "")
		p.send(1)
		id := <-broker.transfers
		broker.settle(id, id, rejected(condition, "words"))
		got := p.waitOutcomes(1)[0]
		require.ErrorContains(t, got.Err, "words ("+condition+")")
		require.NotEmpty(t, driver.HintOf(got.Err))
		got.Err = nil
		require.Equal(t, want, got, condition)
	}
}

// TestProbeInOneSession: the question whether IBM MQ is alive needs no session of its own, and without an answer it is
// not.
func TestProbeInOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, answers := 0, true
		p := newPeer(t)
		p.open = productOf("IBM MQ AMQP Support", "p930-L220606")
		p.on = func(p *peer, b *wire.Body) bool {
			if b.Kind == wire.DescBegin {
				begun++
			}
			return b.Kind == wire.DescFlow && !answers
		}
		d := p.driver(driver.OpenOptions{}, "idle-timeout=0")
		k := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		prober := k.(driver.Prober)
		require.NoError(t, prober.Probe(ctx))
		require.NoError(t, prober.Probe(ctx))
		answers = false
		require.ErrorIs(t, prober.Probe(ctx), context.DeadlineExceeded)
		require.Equal(t, 1, begun)
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}
