//go:build unix

package amqp

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestNoCredit(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.credit = 0 })
	p := r.producer(1, "")
	err := p.trySend(within(t, 300*time.Millisecond), 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, err.Error(), "no credit")
	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	require.ErrorIs(t, p.trySend(canceled, 0), context.Canceled)
	require.Empty(t, broker.frames, "nothing was sent")

	broker.auto.Store(true)
	broker.flow(wire.Flow{LinkCredit: wire.Some[uint32](10)})
	p.send(2)
	p.settleAccepted(2)
}

// TestFullSessionWindow: there is credit for ten messages, but the session may carry two frames only.
func TestFullSessionWindow(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
	p := r.producer(5, strings.Repeat("x", 15_000))
	sent := make(chan error)
	go func() { sent <- p.trySend(soon(t), 1) }()
	for range 2 {
		<-broker.frames
	}
	require.Never(t, func() bool { return len(broker.frames) > 0 }, 50*time.Millisecond, 5*time.Millisecond)
	broker.flow(wire.Flow{NextIncomingID: wire.Some[uint32](2), IncomingWindow: 1000, LinkCredit: wire.Some[uint32](10)})
	require.NoError(t, <-sent)
	require.Eventually(t, func() bool { return len(broker.frames) == 2 }, patience, time.Millisecond)
	broker.settle(0, 0, wire.State{Kind: wire.DescAccepted})
	require.Equal(t, []driver.Outcome{{}}, p.waitOutcomes(1))
	broker.auto.Store(true)
	p.send(1) // the link still works
	p.settleAccepted(2)
}

// TestGivenUpBetweenFrames: a message that left in part only is not sent, and ends once.
func TestGivenUpBetweenFrames(t *testing.T) {
	t.Run("by the sender", func(t *testing.T) {
		broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
		p := r.producer(5, strings.Repeat("x", 15_000))
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer leave()
			for range 2 {
				<-broker.frames
			}
		}()
		require.ErrorIs(t, p.trySend(ctx, 1), context.Canceled)
		broker.flow(wire.Flow{NextIncomingID: wire.Some[uint32](2), IncomingWindow: 1000, LinkCredit: wire.Some[uint32](10)})
		require.ErrorContains(t, p.trySend(soon(t), 0), "given up between its frames")
		require.Empty(t, p.settle())
	})
	for name, end := range map[string]func(*peer){
		"rejected early": func(p *peer) { p.settle(0, 0, rejected(wire.CondMessageSize, "enough")) },
		"link detached":  func(p *peer) { p.detach(&wire.Error{Condition: wire.CondDetachForced, Description: "bye"}) },
		"lost":           (*peer).hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
			p := r.producer(5, strings.Repeat("x", 15_000))
			ctx, leave := context.WithCancel(t.Context())
			sent := make(chan error)
			go func() { sent <- p.trySend(ctx, 1) }()
			for range 2 {
				<-broker.frames
			}
			end(broker)
			outcomes := p.waitOutcomes(1)
			require.NotEqual(t, driver.Accepted, outcomes[0].State)
			leave()
			require.NoError(t, <-sent, "it has an end already")
			require.Len(t, p.settle(), 1)
		})
	}
}

func TestLinkEndsWhileSendWaits(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.credit = 0 })
	p := r.producer(1, "")
	time.AfterFunc(50*time.Millisecond, func() {
		broker.detach(&wire.Error{Condition: wire.CondDetachForced, Description: "bye"})
	})
	err := p.trySend(soon(t), 0)
	require.Equal(t, driver.ClassClosedByBroker, driver.ClassOf(err))
	require.ErrorContains(t, err, "the broker closed the link: forced by the broker: bye (amqp:link:detach-forced)")
	require.Empty(t, broker.frames)
	require.Empty(t, p.all)
}

func rejected(condition, description string) wire.State {
	return wire.State{Kind: wire.DescRejected, Error: &wire.Error{Condition: condition, Description: description}}
}

func TestOutcomes(t *testing.T) {
	broker, r := peerRig(t, nil)
	p := r.producer(10, "")
	p.send(7)
	// Out of order, one at a time: Done is called in the order of the answers.
	for i, answer := range []struct {
		id    uint32
		state wire.State
		want  driver.State
		class driver.Class
		text  string
	}{
		{4, wire.State{Kind: wire.DescAccepted}, driver.Accepted, driver.ClassNone, ""},
		{0, rejected(wire.CondResourceLimit, "AMQ229102: Address is full"), driver.Rejected, driver.ClassFull, "Address is full"},
		{6, wire.State{Kind: wire.DescRejected}, driver.Rejected, driver.ClassOther, "without saying why"},
		{1, wire.State{Kind: wire.DescReleased}, driver.Released, driver.ClassOther, ""},
		{3, wire.State{Kind: wire.DescModified}, driver.Modified, driver.ClassOther, ""},
		{2, wire.State{}, driver.Unknown, driver.ClassProtocol, "without an outcome"},
		{5, rejected(wire.CondMessageSize, ""), driver.Rejected, driver.ClassTooLarge, "too large"},
	} {
		broker.settle(answer.id, answer.id, answer.state)
		o := p.waitOutcomes(i + 1)[i]
		require.Equal(t, answer.want, o.State)
		require.Equal(t, answer.class, o.Class)
		require.Len(t, p.outcomes[driver.Slot(answer.id)], 1, "of that slot")
		if answer.text != "" {
			require.ErrorContains(t, o.Err, answer.text)
		}
	}
	require.Len(t, p.settle(), 7)
}

func TestMessageIsTooLarge(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.attach = func(f *wire.Attach) { f.MaxMessageSize = 1000 } })
	broker.auto.Store(true)
	p := r.producer(1, strings.Repeat("x", 2000))
	err := p.trySend(soon(t), 1)
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err), "%v", err)
	require.NotEmpty(t, driver.HintOf(err))
	require.Empty(t, broker.frames)
	p.send(1)
	p.settleAccepted(1)
}

// TestEndInMidRun: answered messages are accepted, the others are unknown.
func TestEndInMidRun(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*peer)
		class driver.Class
	}{
		"link":       {func(p *peer) { p.detach(nil) }, driver.ClassClosedByBroker},
		"session":    {func(p *peer) { p.endSession(nil) }, driver.ClassClosedByBroker},
		"connection": {(*peer).hangUp, driver.ClassConnectionLost},
	} {
		t.Run(name, func(t *testing.T) {
			broker, r := peerRig(t, nil)
			p := r.producer(20, "")
			p.send(10)
			for range 10 {
				<-broker.transfers
			}
			broker.settle(0, 4, wire.State{Kind: wire.DescAccepted})
			p.waitOutcomes(5)
			c.end(broker)
			all := p.waitOutcomes(10) // not by the idle time-out, which has another text
			require.Equal(t, slices.Repeat([]driver.Outcome{{}}, 5), all[:5])
			for _, o := range all[5:] {
				require.Equal(t, driver.Unknown, o.State)
				require.Equal(t, c.class, o.Class, "%v", o.Err)
				require.ErrorContains(t, o.Err, "without saying why")
			}
			require.Equal(t, c.class, driver.ClassOf(p.trySend(soon(t), 0)))
			require.Len(t, p.settle(), 10)
		})
	}
}

func TestRefusedLinks(t *testing.T) {
	for condition, class := range map[string]driver.Class{
		"amqp:not-found":               driver.ClassNotFound,
		"amqp:unauthorized-access":     driver.ClassAuth,
		"amqp:resource-limit-exceeded": driver.ClassFull,
		"amqp:not-implemented":         driver.ClassUnsupported,
		"amqp:invalid-field":           driver.ClassProtocol,
		"vendor:something":             driver.ClassOther,
	} {
		t.Run(condition, func(t *testing.T) {
			_, r := peerRig(t, func(p *peer) { p.refuse = &wire.Error{Condition: condition, Description: "words"} })
			_, err := r.tryProducer(producerSpec(1))
			require.Equal(t, class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "open a producer on queue://q")
			require.ErrorContains(t, err, "words ("+condition+")")
			_, err = r.tryConsumer(consumerSpec())
			require.Equal(t, class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "open a consumer on queue://q")
		})
	}
}

func TestBrokerDoesNotAgree(t *testing.T) {
	t.Run("settle mode", func(t *testing.T) {
		for _, c := range []struct {
			asked  string
			answer uint8
			what   string
			agrees bool
		}{
			{"settle=at-most-once", wire.SenderMixed, "mixed leaves it to the sender, and us", true},
			{"settle=at-least-once", wire.SenderMixed, "mixed leaves it to the sender, and us", true},
			{"settle=at-most-once", wire.SenderUnsettled, "unsettled", false},
		} {
			_, r := peerRig(t, func(p *peer) { p.attach = func(f *wire.Attach) { f.SenderSettleMode = c.answer } }, c.asked)
			p, producerErr := r.tryProducer(producerSpec(1))
			if producerErr == nil {
				require.Empty(t, p.settle()) // the peer serves one connection at a time
			}
			k, consumerErr := r.tryConsumer(consumerSpec())
			if consumerErr == nil {
				require.NoError(t, k.Close(soon(t)))
			}
			for _, err := range []error{producerErr, consumerErr} {
				if c.agrees {
					require.NoError(t, err, c.what)
					continue
				}
				require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
				require.Contains(t, driver.HintOf(err), "-o settle")
			}
		}
	})
	t.Run("selector", func(t *testing.T) {
		_, r := peerRig(t, func(p *peer) { p.attach = func(f *wire.Attach) { f.Source.Selector = wire.Opt[string]{} } })
		spec := consumerSpec()
		spec.Selector = "a = 1"
		_, err := r.tryConsumer(spec)
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "ignores the selector")
	})
	t.Run("login", func(t *testing.T) {
		_, r := peerRig(t, func(p *peer) { p.mechanism = "GSSAPI" })
		_, err := r.tryProducer(producerSpec(1))
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "GSSAPI")
	})
}

func TestStrangePeers(t *testing.T) {
	for _, c := range []struct{ name, greeting, text, hint string }{
		{"AMQP 0-9-1", "AMQP\x00\x00\x09\x01", "older AMQP", "rabbitmq_amqp1_0"},
		{"AMQP 0-10", "AMQP\x01\x01\x00\x0a", "older AMQP", "rabbitmq_amqp1_0"},
		{"web server", "HTTP/1.1 400 Bad Request\r\n\r\n", `it answered "HTTP/1.1"`, "AMQP port"},
		{"TLS alert", "\x15\x03\x03\x00\x02\x02\x28", "no AMQP broker", "amqps://"},
		{"something", "220 mail ready\r\n", `it answered "220 mail"`, "AMQP port"},
		{"silence", "", "closed the connection before it said anything", "amqps://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 8))
				_, _ = conn.Write([]byte(c.greeting))
				_ = conn.Close()
			}()
			r := newRig(t, driver.OpenOptions{URL: "amqp://" + listener.Addr().String()})
			_, err := r.tryProducer(producerSpec(1))
			require.ErrorContains(t, err, c.text)
			require.Contains(t, driver.HintOf(err), c.hint)
			require.NoError(t, listener.Close())
			<-served
		})
	}
	noHost := strings.Repeat("x", 64) + ".invalid" // too long a label to ask anybody for
	_, err := newRig(t, driver.OpenOptions{URL: "amqp://" + noHost}).
		tryProducer(producerSpec(1))
	require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	require.Contains(t, driver.HintOf(err), "host's name")
	_, err = newRig(t, driver.OpenOptions{URL: "amqp://127.0.0.1:1,127.0.0.1:2"}).tryProducer(producerSpec(1))
	require.Equal(t, 2, strings.Count(err.Error(), "connection refused"), "%v", err)
}

// TestEndOfWhatIsOpen: whatever reason the broker gives for the end of an open link, session or connection, it is a loss
// that a new connection may mend, except a few.
func TestEndOfWhatIsOpen(t *testing.T) {
	permanent := map[string]driver.Class{
		wire.CondUnauthorized: driver.ClassAuth, wire.CondNotFound: driver.ClassNotFound,
		wire.CondResourceDeleted: driver.ClassNotFound, wire.CondNotAllowed: driver.ClassUnsupported,
		wire.CondNotImplemented: driver.ClassUnsupported, wire.CondMessageSize: driver.ClassTooLarge,
	}
	accusing := []string{
		wire.CondDecode, wire.CondFrameSize, wire.CondInvalidField, wire.CondFraming, wire.CondErrantLink,
		wire.CondHandleInUse, wire.CondUnattachedHandle, wire.CondWindow, wire.CondTransferLimit,
	}
	others := []string{
		wire.CondInternal, wire.CondIllegalState, wire.CondPrecondition, wire.CondResourceLimit, wire.CondResourceLocked,
		wire.CondStolen, wire.CondDetachForced, wire.CondForced, wire.CondRedirect, wire.CondLinkRedirect, "vendor:thing",
	}
	ends := map[string]func(*peer, *wire.Error){
		"the broker closed the link":       (*peer).detach,
		"the broker ended the session":     (*peer).endSession,
		"the broker closed the connection": (*peer).close,
	}
	for words, end := range ends {
		lost := driver.ClassClosedByBroker
		if words == "the broker closed the connection" {
			lost = driver.ClassConnectionLost
		}
		for _, condition := range slices.Concat(slices.Sorted(maps.Keys(permanent)), accusing, others) {
			t.Run(words+" "+condition, func(t *testing.T) {
				want, ok := permanent[condition]
				if !ok {
					want = lost
				}
				broker, r := peerRig(t, nil)
				p := r.producer(1, "")
				p.send(1)
				<-broker.transfers
				end(broker, &wire.Error{Condition: condition, Description: "why"})
				o := p.waitOutcomes(1)[0]
				require.Equal(t, driver.Unknown, o.State)
				require.Equal(t, want, o.Class, "%v", o.Err)
				require.ErrorContains(t, o.Err, words+": ")
				require.ErrorContains(t, o.Err, "why ("+condition+")")
				require.NotEmpty(t, driver.HintOf(o.Err))
				require.Equal(t, slices.Contains(accusing, condition), strings.Contains(o.Err.Error(), "we broke the protocol"))
				require.Equal(t, want, driver.ClassOf(p.trySend(soon(t), 0)))
			})
			t.Run("consumer, "+words+" "+condition, func(t *testing.T) {
				want, ok := permanent[condition]
				if !ok {
					want = lost
				}
				broker, r := peerRig(t, nil)
				k := musttest.Get(r.tryConsumer(consumerSpec()))(t)
				end(broker, &wire.Error{Condition: condition, Description: "why"})
				err := k.Run(soon(t), accept)
				require.Equal(t, want, driver.ClassOf(err), "%v", err)
				require.ErrorContains(t, err, "why ("+condition+")")
			})
		}
	}
}

// TestUnanswered: the end of a message without an answer names the settings that end it, or its connection, earlier.
func TestUnanswered(t *testing.T) {
	broker, r := peerRig(t, nil)
	p := r.producer(1, "")
	p.send(1)
	<-broker.transfers
	require.NoError(t, p.Close(within(t, 10*time.Millisecond)))
	o := p.waitOutcomes(1)[0]
	require.Equal(t, driver.Unknown, o.State)
	require.Equal(t, driver.ClassTimeout, o.Class)
	require.Contains(t, driver.HintOf(o.Err), "--send-timeout")
	require.Contains(t, driver.HintOf(o.Err), "-o idle-timeout")
}

// A broker that does not say that it can delay messages would deliver them at once: it is not asked.
func TestDeliveryDelayIsRefused(t *testing.T) {
	_, r := peerRig(t, nil)
	spec := producerSpec(1)
	spec.Delay = time.Second
	_, err := r.tryProducer(spec)
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "DELAYED_DELIVERY")
	require.Contains(t, driver.HintOf(err), "--delivery-delay")
}
