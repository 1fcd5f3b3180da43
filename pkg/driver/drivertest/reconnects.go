package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Checks of clients that reconnect by themselves, see [driver.Capabilities]. Their Run and Send return no error where
// those of other clients do, but they report no message as received, accepted or failed that was not.

// reconnects tells whether the client reconnects by itself.
func (e *env) reconnects() bool { return e.cfg.Factory.Capabilities.Reconnects }

// cutOff waits for Run to return because the connection was lost; or, if the client reconnects by itself, checks that
// Run goes on.
func (b *inbox) cutOff() {
	b.e.Helper()
	if !b.e.reconnects() {
		b.lost()
		return
	}
	b.e.quiet()
	select {
	case err := <-b.result:
		b.running = false
		b.cancel()
		require.FailNowf(b.e, "Run has ended", "Capabilities say that the client connects again by itself, but Run "+
			"returned: %v", err)
	default:
	}
}

// departure returns a function that waits, at most Timeout, until the path has read bytes from a client that reconnects
// by itself. Without the wait, sends that the client has not written yet end with the class connect after a cut, and
// none was in flight.
func (e *env) departure(path Path) func() {
	e.Helper()
	witness, ok := path.(interface{ Sent() int64 })
	if !ok || !e.reconnects() {
		return func() {}
	}
	before := witness.Sent()
	return func() {
		e.Helper()
		e.await("a send that has left the client", nil, func() error {
			if witness.Sent() == before {
				return fmt.Errorf("no byte since the path was frozen, after %d", before)
			}
			return nil
		})
	}
}

// inDoubt checks the ends of sends that were in flight when the connection was lost, after n accepted sends.
func (e *env) inDoubt(out *sender, n int) {
	e.Helper()
	sent, _, states := out.totals()
	require.Truef(e, e.cfg.AtMostOnce || states[driver.Accepted] == n, "want the first %d only: %s", n, out.ledger)
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown]+out.class(driver.ClassConnect),
		"want Accepted, Unknown for messages that may have left when the connection was lost, or the class connect for "+
			"others: %s", out.ledger)
	require.Positivef(e, states[driver.Unknown], "no send was in flight: %s", out.ledger)
	require.Equalf(e, states[driver.Unknown], out.class(driver.ClassConnectionLost)+out.class(driver.ClassTimeout),
		"the class of sends that were in flight: %s", out.ledger)
}

// sendNowhere checks that a send without a broker ends, and not as accepted.
func (e *env) sendNowhere(out *sender) {
	e.Helper()
	_, _, before := out.totals()
	err := e.bounded(e.cfg.Timeout, "Send without a broker",
		func() error { return out.trySend(e.within(e.cfg.Timeout/2), base-1) })
	require.NoError(e, err, "Send without a broker of a client that connects again by itself: a send that fails ends "+
		"with Done")
	require.NoError(e, out.wait(e.cfg.Timeout), "there is no broker")
	_, _, states := out.totals()
	require.Truef(e, e.cfg.AtMostOnce || states[driver.Accepted] == before[driver.Accepted],
		"a send without a broker was accepted: %s", out.ledger)
	e.endedOnce(out)
}

// endedOnce checks that all sends have ended in a state that is possible while connections come and go.
func (e *env) endedOnce(out *sender) {
	e.Helper()
	require.NoError(e, out.verify())
	sent, _, states := out.totals()
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown]+states[driver.Failed],
		"want Accepted, Unknown or Failed: %s", out.ledger)
	classes := out.class(driver.ClassConnectionLost) + out.class(driver.ClassTimeout) + out.class(driver.ClassConnect)
	require.Equalf(e, sent-states[driver.Accepted], classes, "classes of sends that found no broker: %s", out.ledger)
}

// testReconnects: after a cut, the same producer and consumer go on, and others can be opened beside them.
func (e *env) testReconnects() {
	const n = 20
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	in := e.receiver(d, consumerSpec(dest))
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, n)
	in.expect(base, n)
	e.cut(path, out, in, n)
	path.Restore()

	e.await("a send that is accepted once there is a broker again", nil, func() error {
		_, _, before := out.totals()
		if err := out.trySend(e.soon(), base-1); err != nil {
			return err
		}
		if err := out.wait(e.cfg.Timeout); err != nil {
			return err
		}
		if _, _, states := out.totals(); states[driver.Accepted] == before[driver.Accepted] {
			return fmt.Errorf("%s", out.ledger)
		}
		return nil
	})
	e.endedOnce(out)
	if e.kind == driver.Queue {
		e.goesOn(out, in, base+n)
	}
	other := e.dest() // only the next producer sends to it
	watch := e.receiver(d, consumerSpec(other))
	more := e.producer(d, producerSpec(other))
	e.goesOn(more, watch, base)
	if e.kind == driver.Topic { // the client does not report when it is subscribed again
		e.await("receive again after a cut", in.changed, func() error {
			if err := out.trySend(e.soon(), base-1); err != nil || in.count() > n {
				return err
			}
			return fmt.Errorf("nothing came")
		})
	}
	out.close()
	in.close()
}

// goesOn sends, and waits until all has been received.
func (e *env) goesOn(out *sender, in *inbox, first int64) {
	e.Helper()
	const n = 20
	_, _, before := out.totals()
	out.send(first, n)
	require.NoError(e, out.wait(e.cfg.Timeout))
	_, _, states := out.totals()
	require.Equalf(e, before[driver.Accepted]+n, states[driver.Accepted],
		"sends that were accepted after the broker came back: %s", out.ledger)
	in.includes(first, n, "receive again after a cut")
}

// load is a producer that sends without end, and a consumer.
type load struct {
	in      *inbox
	out     *sender
	stop    context.CancelFunc
	sending chan error
}

func (e *env) load(d driver.Driver) load {
	out, in := e.pair(d, func(s *driver.ProducerSpec) { s.Variants = variants(1024) })
	ctx, stop := context.WithCancel(e.within(3 * e.cfg.Timeout))
	l := load{in, out, stop, make(chan error, 1)}
	e.Cleanup(stop)
	go func() {
		for i := base; ; i++ {
			if err := out.trySend(ctx, i); err != nil {
				l.sending <- err
				return
			}
		}
	}()
	return l
}

// killed checks the end of a load after its broker was killed.
func (l *load) killed(e *env) {
	if e.reconnects() {
		e.await("a send that was not accepted, after the broker was killed", nil, func() error {
			if _, ended, states := l.out.totals(); ended == states[driver.Accepted] && len(l.sending) == 0 {
				return fmt.Errorf("%s", l.out.ledger)
			}
			return nil
		})
		pause(100 * time.Millisecond) // further sends find no broker in this time
		l.stop()
	}
	err := e.bounded(e.cfg.Timeout, "Send, after the broker was killed,", func() error { return <-l.sending })
	if e.reconnects() {
		require.ErrorIs(e, err, context.Canceled, "Send, without a broker, of a client that connects again by itself")
	} else {
		require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Send: %v", err)
	}
	require.NoError(e, l.out.wait(e.cfg.Timeout), "the connection has ended")
	require.NoError(e, l.out.verify())
	l.in.cutOff()
	e.sendLost(l.out)
	sent, _, states := l.out.totals()
	if e.reconnects() {
		e.endedOnce(l.out)
	} else {
		require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", l.out.ledger)
	}
	require.NoError(e, compareSome(l.in.stamps(), func(s int64) bool { return s >= base && s < base+int64(sent) }))
	l.out.close()
	l.in.close()
}
