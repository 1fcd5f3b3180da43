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

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// within is a context that ends so soon that a test can wait for it.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func (p *testProducer) waitOutcomes(n int) []driver.Outcome {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.all) >= n
	}, patience, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]driver.Outcome(nil), p.all...)
}

func peerRig(t *testing.T, set func(*peer), options ...string) (*peer, *rig) {
	t.Helper()
	noLeaks(t)
	p := newPeer(t)
	if set != nil {
		set(p)
	}
	return p, newRigWith(t, driver.OpenOptions{URL: p.start(), ConnectTimeout: patience}, options...)
}

func TestNoCredit(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.credit = 0 })
	p := r.producer(driver.ProducerSpec{Destination: queue(t)})
	// Send, as trySend says nothing of credit if the time is over before it has begun.
	err := p.Send(within(t, 300*time.Millisecond), &driver.Message{Time: r.stamp("x")})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, err.Error(), "no credit")
	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	require.ErrorIs(t, p.trySend(canceled, "x"), context.Canceled)
	require.Empty(t, broker.frames, "nothing was sent")

	broker.auto.Store(true)
	broker.grant(1000, 0, 10)
	p.send("now", "and again")
	p.settleAccepted(2)
}

// TestFullSessionWindow: there is credit for ten messages, but the session may carry two frames only.
func TestFullSessionWindow(t *testing.T) {
	broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
	p := r.producer(driver.ProducerSpec{
		Destination: queue(t), MaxPending: 5, Variants: append(body("x"), body(strings.Repeat("x", 15_000))...),
	})
	sent := make(chan error)
	go func() { sent <- p.trySendAs(soon(t), 1, "of four frames") }()
	for range 2 {
		<-broker.frames
	}
	require.Never(t, func() bool { return len(broker.frames) > 0 }, 50*time.Millisecond, 5*time.Millisecond)
	broker.grant(1000, 2, 10)
	require.NoError(t, <-sent)
	require.Eventually(t, func() bool { return len(broker.frames) == 2 }, patience, time.Millisecond)
	broker.settle(0, 0, encList(codeAccepted))
	require.Equal(t, []driver.Outcome{{}}, p.waitOutcomes(1))
	broker.auto.Store(true)
	p.send("the link still works")
	p.settleAccepted(2)
}

// TestGivenUpBetweenFrames: a message of which only a part has left is not sent, and has one end.
func TestGivenUpBetweenFrames(t *testing.T) {
	large := append(body("x"), body(strings.Repeat("x", 15_000))...)
	t.Run("by the sender", func(t *testing.T) {
		broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
		p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 5, Variants: large})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			defer leave()
			for range 2 {
				<-broker.frames
			}
		}()
		require.ErrorIs(t, p.trySendAs(ctx, 1, "x"), context.Canceled)
		broker.grant(1000, 2, 10)
		err := p.trySend(soon(t), "x")
		require.ErrorContains(t, err, "given up between its frames")
		require.Empty(t, p.settle())
	})
	for name, end := range map[string]func(*peer){
		"rejected early": func(p *peer) {
			p.settle(0, 0, encList(codeRejected, encError("amqp:link:message-size-exceeded", "enough")))
		},
		"link detached": func(p *peer) {
			p.send(codeDetach, encUint(0), encBool(true), encError("amqp:link:detach-forced", "bye"))
		},
		"lost": (*peer).hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			broker, r := peerRig(t, func(p *peer) { p.window, p.credit = 2, 10 })
			p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 5, Variants: large})
			ctx, leave := context.WithCancel(t.Context())
			sent := make(chan error)
			go func() { sent <- p.trySendAs(ctx, 1, "x") }()
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
	p := r.producer(driver.ProducerSpec{Destination: queue(t)})
	time.AfterFunc(50*time.Millisecond, func() {
		broker.send(codeDetach, encUint(0), encBool(true), encError("amqp:link:detach-forced", "bye"))
	})
	err := p.trySend(soon(t), "x")
	require.Equal(t, driver.ClassClosedByBroker, driver.ClassOf(err))
	require.ErrorContains(t, err, "the broker closed the link: forced by the broker: bye (amqp:link:detach-forced)")
	require.Empty(t, broker.frames)
	require.Empty(t, p.all)
}

func TestOutcomes(t *testing.T) {
	broker, r := peerRig(t, nil)
	p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 10})
	p.send(numbered(7)...)
	full := encList(codeRejected, encError("amqp:resource-limit-exceeded", "AMQ229102: Address is full"))
	// Out of order, one at a time, so that the order of Done is that of the answers.
	for i, answer := range []struct {
		id    uint32
		state []byte
		want  driver.State
		class driver.Class
		text  string
	}{
		{4, encList(codeAccepted), driver.Accepted, driver.ClassNone, ""},
		{0, full, driver.Rejected, driver.ClassFull, "Address is full"},
		{6, encList(codeRejected), driver.Rejected, driver.ClassOther, "without saying why"},
		{1, encList(codeReleased), driver.Released, driver.ClassOther, ""},
		{3, encList(codeModified), driver.Modified, driver.ClassOther, ""},
		{2, encNull(), driver.Unknown, driver.ClassProtocol, "without an outcome"},
		{5, encList(codeRejected, encError("amqp:link:message-size-exceeded", "")), driver.Rejected, driver.ClassTooLarge, "too large"},
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
	broker, r := peerRig(t, func(p *peer) { p.maxMessage = 1000 })
	broker.auto.Store(true)
	p := r.producer(driver.ProducerSpec{Destination: queue(t), Variants: append(body("x"), body(strings.Repeat("x", 2000))...)})
	err := p.trySendAs(soon(t), 1, "x")
	require.Equal(t, driver.ClassTooLarge, driver.ClassOf(err), "%v", err)
	require.NotEmpty(t, driver.HintOf(err))
	require.Empty(t, broker.frames)
	p.send("small enough")
	p.settleAccepted(1)
}

func TestEndInMidRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(*peer)
		class driver.Class
		text  string
	}{
		{"link", func(p *peer) {
			p.send(codeDetach, encUint(0), encBool(true), encError("amqp:resource-deleted", "gone"))
		}, driver.ClassNotFound, "the broker closed the link: it was deleted: gone"},
		{"link without a reason", func(p *peer) {
			p.send(codeDetach, encUint(0), encBool(true))
		}, driver.ClassClosedByBroker, "without saying why"},
		{"session", func(p *peer) {
			p.endedSession.Store(true)
			p.send(codeEnd, encError("amqp:session:window-violation", "w"))
		}, driver.ClassClosedByBroker, "the broker ended the session"},
		{"connection", func(p *peer) {
			p.send(codeClose, encError("amqp:connection:forced", "shutdown"))
		}, driver.ClassConnectionLost, "the broker closed the connection: forced by the broker: shutdown"},
		{"connection without a reason", func(p *peer) { p.hangUp() }, driver.ClassConnectionLost, "without saying why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker, r := peerRig(t, nil)
			p := r.producer(driver.ProducerSpec{Destination: queue(t), MaxPending: 20})
			p.send(numbered(10)...)
			for range 10 {
				<-broker.transfers
			}
			broker.settle(0, 4, encList(codeAccepted))
			p.waitOutcomes(5)
			c.end(broker)
			all := p.waitOutcomes(10) // not by the idle time-out, which has another text
			for i, o := range all {
				if i < 5 {
					require.Equal(t, driver.Outcome{}, o)
					continue
				}
				require.Equal(t, driver.Unknown, o.State)
				require.Equal(t, c.class, o.Class, "%v", o.Err)
				require.ErrorContains(t, o.Err, c.text)
			}
			err := p.trySend(soon(t), "x")
			require.Equal(t, c.class, driver.ClassOf(err), "%v", err)
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
			_, r := peerRig(t, func(p *peer) { p.refuse = encError(condition, "words") })
			_, err := r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
			require.Equal(t, class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "open a producer on queue://")
			require.ErrorContains(t, err, "words ("+condition+")")
			_, err = r.tryConsumer(driver.ConsumerSpec{Destination: queue(t)})
			require.Equal(t, class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "open a consumer on queue://")
		})
	}
}

func TestBrokerDoesNotAgree(t *testing.T) {
	t.Run("settle mode", func(t *testing.T) {
		for _, c := range []struct {
			asked, answer, what string
			agrees              bool
		}{
			{"settle=at-most-once", "\x50\x02", "mixed leaves it to the sender, and us", true},
			{"settle=at-least-once", "\x50\x02", "mixed leaves it to the sender, and us", true},
			{"settle=at-most-once", "\x50\x00", "unsettled", false},
		} {
			_, r := peerRig(t, func(p *peer) { p.mode = []byte(c.answer) }, c.asked)
			p, producerErr := r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
			if producerErr == nil {
				require.Empty(t, p.settle()) // the peer serves one connection at a time
			}
			k, consumerErr := r.tryConsumer(driver.ConsumerSpec{Destination: queue(t)})
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
		_, r := peerRig(t, func(p *peer) { p.noFilter = true })
		_, err := r.tryConsumer(driver.ConsumerSpec{Destination: queue(t), Selector: "a = 1"})
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "ignores the selector")
	})
	t.Run("login", func(t *testing.T) {
		_, r := peerRig(t, func(p *peer) { p.mechanism = "GSSAPI" })
		_, err := r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "GSSAPI")
	})
}

func TestStrangePeers(t *testing.T) {
	for _, c := range []struct{ name, greeting, text, hint string }{
		{"AMQP 0-9-1", "AMQP\x00\x00\x09\x01", "older AMQP", "rabbitmq_amqp1_0"},
		{"AMQP 0-10", "AMQP\x01\x01\x00\x0a", "older AMQP", "rabbitmq_amqp1_0"},
		{"web server", "HTTP/1.1 400 Bad Request\r\n\r\n", "a web server answered", "AMQP port"},
		{"TLS alert", "\x15\x03\x03\x00\x02\x02\x28", "demands an encrypted connection", "amqps://"},
		{"something", "220 mail ready\r\n", `it answered "220 mail"`, "AMQP port"},
		{"silence", "", "closed the connection before it said anything", "amqps://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
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
			r := newRigWith(t, driver.OpenOptions{URL: "amqp://" + listener.Addr().String(), ConnectTimeout: patience})
			_, err = r.tryProducer(driver.ProducerSpec{Destination: queue(t)})
			require.ErrorContains(t, err, c.text)
			require.Contains(t, driver.HintOf(err), c.hint)
			require.NoError(t, listener.Close())
			<-served
		})
	}
	noHost := strings.Repeat("x", 64) + ".invalid" // too long a label to ask anybody for
	_, err := newRigWith(t, driver.OpenOptions{URL: "amqp://" + noHost, ConnectTimeout: patience}).
		tryProducer(driver.ProducerSpec{Destination: queue(t)})
	require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	require.Contains(t, driver.HintOf(err), "host's name")
	_, err = newRigWith(t, driver.OpenOptions{URL: "amqp://127.0.0.1:1,127.0.0.1:2"}).tryProducer(driver.ProducerSpec{Destination: queue(t)})
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
	ends := map[string]func(p *peer, reason []byte){
		"the broker closed the link":       func(p *peer, r []byte) { p.send(codeDetach, encUint(0), encBool(true), r) },
		"the broker ended the session":     func(p *peer, r []byte) { p.endedSession.Store(true); p.send(codeEnd, r) },
		"the broker closed the connection": func(p *peer, r []byte) { p.send(codeClose, r) },
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
				p := r.producer(driver.ProducerSpec{Destination: queue(t)})
				p.send("x")
				<-broker.transfers
				end(broker, encError(condition, "why"))
				o := p.waitOutcomes(1)[0]
				require.Equal(t, driver.Unknown, o.State)
				require.Equal(t, want, o.Class, "%v", o.Err)
				require.ErrorContains(t, o.Err, words+": ")
				require.ErrorContains(t, o.Err, "why ("+condition+")")
				require.NotEmpty(t, driver.HintOf(o.Err))
				require.Equal(t, slices.Contains(accusing, condition), strings.Contains(o.Err.Error(), "we broke the protocol"))
				require.Equal(t, want, driver.ClassOf(p.trySend(soon(t), "x")))
			})
			t.Run("consumer, "+words+" "+condition, func(t *testing.T) {
				want, ok := permanent[condition]
				if !ok {
					want = lost
				}
				broker, r := peerRig(t, nil)
				k, err := r.tryConsumer(driver.ConsumerSpec{Destination: queue(t)})
				require.NoError(t, err)
				end(broker, encError(condition, "why"))
				err = k.Run(soon(t), func(*driver.Delivery) driver.Verdict { return driver.Accept })
				require.Equal(t, want, driver.ClassOf(err), "%v", err)
				require.ErrorContains(t, err, "why ("+condition+")")
			})
		}
	}
}

// TestUnanswered: the end of a message without an answer names the settings that end it, or its connection, earlier.
func TestUnanswered(t *testing.T) {
	broker, r := peerRig(t, nil)
	p := r.producer(driver.ProducerSpec{Destination: queue(t)})
	p.send("x")
	<-broker.transfers
	require.NoError(t, p.Close(within(t, 10*time.Millisecond)))
	o := p.waitOutcomes(1)[0]
	require.Equal(t, driver.Unknown, o.State)
	require.Equal(t, driver.ClassTimeout, o.Class)
	require.Contains(t, driver.HintOf(o.Err), "--send-timeout")
	require.Contains(t, driver.HintOf(o.Err), "-o idle-timeout")
}
