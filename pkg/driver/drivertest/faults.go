package drivertest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// openParty opens a driver and a producer or consumer on it, and returns the first error. prepare, if not nil, changes
// the options before.
func (e *env) openParty(url string, consume bool, prepare func(*driver.OpenOptions)) error {
	e.Helper()
	opts := e.openOptions(url)
	if prepare != nil {
		prepare(&opts)
	}
	return e.bounded(opts.ConnectTimeout+grace, "opening a connection to "+url, func() error {
		d, err := e.cfg.Factory.Open(e.ctx, opts)
		if err != nil {
			return err
		}
		e.Cleanup(func() { e.closes(e.closing(), "Driver.Close", d.Close) })
		dest := e.dest()
		if consume {
			c, err := d.Consumer(e.ctx, consumerSpec(dest))
			if err == nil {
				e.Cleanup(func() { e.closes(e.closing(), "Consumer.Close", c.Close) })
			}
			return err
		}
		p, err := d.Producer(e.ctx, producerSpec(dest), newLedger(1))
		if err == nil {
			e.Cleanup(func() { e.closes(e.closing(), "Producer.Close", p.Close) })
		}
		return err
	})
}

func testUnreachable(e *env) {
	path := e.cfg.Path(e)
	path.Cut()
	for _, consume := range []bool{false, true} {
		e.refused(e.openParty(path.URL(), consume, nil), driver.ClassConnect)
	}
}

// refused checks the error of a connection that could not be opened.
func (e *env) refused(err error, class driver.Class) {
	e.Helper()
	require.Error(e, err, "connect")
	require.Equalf(e, class, driver.ClassOf(err), "class of: %v", err)
	require.NotEmptyf(e, driver.HintOf(err), "no hint with: %v", err)
}

func testSilent(e *env) {
	path := e.cfg.Path(e)
	path.Freeze()
	e.broken = true
	for _, consume := range []bool{false, true} {
		err := e.openParty(path.URL(), consume, func(o *driver.OpenOptions) { o.ConnectTimeout = time.Second / 2 })
		class := driver.ClassOf(err)
		require.Truef(e, class == driver.ClassConnect || class == driver.ClassTimeout, "class of: %v", err)
	}
}

func testWrongPassword(e *env) {
	err := e.openParty(e.cfg.URL, false, func(o *driver.OpenOptions) { o.Password = e.cfg.WrongPassword })
	e.refused(err, driver.ClassAuth)
}

// sendRefused sends messages some of which the broker refuses, and returns when all have ended.
func (e *env) sendRefused(change func(*driver.ProducerSpec)) *sender {
	e.Helper()
	const n = 200
	spec := producerSpec(e.cfg.Refusing(e, e.kind))
	spec.MaxPending, spec.Variants = n, variants(1024)
	if change != nil {
		change(&spec)
	}
	out := e.producer(e.open(), spec)
	sending, stop := context.WithCancel(e.soon())
	defer stop()
	go func() { // a broker that has refused a message, such as Artemis with AMQP, may never give credit again
		for before := -1; ; {
			select {
			case <-sending.Done():
				return
			case <-time.After(e.cfg.Quiet):
			}
			sent, ended, states := out.totals()
			if ended > states[driver.Accepted] && sent+ended == before {
				stop()
			}
			before = sent + ended
		}
	}()
	for i := range int64(n) {
		if out.trySend(sending, base+i) != nil { // no credit, or the broker has closed the link, or the connection
			e.broken = true
			break
		}
	}
	if e.broken && sending.Err() != nil {
		out.close() // ends the transaction that there was no time to fill
	}
	require.NoError(e, out.wait(e.cfg.Timeout), "the broker refuses messages")
	require.NoError(e, out.verify())
	if e.kind != driver.Queue {
		return out
	}
	in := e.receiver(e.open(), consumerSpec(spec.Destination))
	_, _, states := out.totals()
	in.awaitCount(states[driver.Accepted], "receive what was accepted")
	e.quiet()
	require.LessOrEqualf(e, in.count(), states[driver.Accepted]+states[driver.Unknown],
		"messages that came although the broker had refused them: %s", out.ledger)
	return out
}

// testRefused: messages that the broker refuses are not accepted, and those that are accepted arrive.
func testRefused(e *env) {
	out := e.sendRefused(nil)
	_, _, states := out.totals()
	refused := states[driver.Rejected] + states[driver.Released] + states[driver.Modified] + states[driver.Failed]
	require.Positivef(e, refused, "sends that the broker has refused: %s", out.ledger)
}

// testFrozen: when all traffic stops, each wait still ends with its context, nothing is accepted, and as many messages
// are in flight as the client says.
func testFrozen(e *env) {
	const patience, sends = time.Second, 1 << 20
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	watch := e.receiver(e.open(), consumerSpec(dest))
	idle := e.receiver(d, consumerSpec(e.dest()))
	spec := producerSpec(dest)
	spec.MaxPending, spec.Variants = 4000, variants(16<<10)
	out := e.producer(d, spec)
	out.sendAll(base, 10)
	watch.expect(base, 10)

	e.broken = true
	path.Freeze()
	bound := e.inFlight(&spec)
	require.Equal(e, e.cfg.AtMostOnce, bound.Unanswered, "Factory.InFlight says that messages have no answer")
	if bound.Messages == 0 {
		ctx := e.soon()
		err := out.sendUntil(ctx, e.cfg.Timeout+grace, 2)
		require.NoError(e, cmp.Or(err, ctx.Err()), "a Send waits for an answer, and Factory.InFlight has no bound")
	}
	err := out.sendSome(patience, sends)
	out.requireBound(&spec)
	class := driver.ClassOf(err)
	require.Truef(e, errors.Is(err, context.DeadlineExceeded) || class == driver.ClassConnectionLost,
		"Send to a frozen broker with a context that ended: %v", err)

	begin := time.Now()
	idle.stop()
	require.Less(e, time.Since(begin), grace, "Run on a frozen connection went on after its context had ended")
	begin = time.Now()
	out.closeWith(e.within(patience))
	require.Less(e, time.Since(begin), patience+grace,
		"Close on a frozen connection went on after its context had ended")
	sent, ended, states := out.totals()
	require.Equal(e, sent, ended)
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", out.ledger)
	if !e.cfg.AtMostOnce {
		require.Equalf(e, 10, states[driver.Accepted], "sends to a frozen broker were accepted: %s", out.ledger)
	}
	require.NoError(e, compareSome(watch.stamps(), sentOf(10, sends)))
	begin = time.Now()
	e.closes(e.within(patience), "Driver.Close on a frozen connection", d.Close)
	require.Less(e, time.Since(begin), patience+grace, "Driver.Close went on after its context had ended")
}

// inFlight returns the client's own bound on the messages in flight.
func (e *env) inFlight(spec *driver.ProducerSpec) driver.InFlight {
	if e.cfg.Factory.InFlight == nil {
		return driver.InFlight{}
	}
	return e.cfg.Factory.InFlight(e.options(), spec)
}

// requireBound requires that no more messages are in flight than the client says.
func (s *sender) requireBound(spec *driver.ProducerSpec) {
	s.e.Helper()
	if bound := s.e.inFlight(spec); bound.Messages > 0 {
		sent, ended, _ := s.totals()
		require.LessOrEqual(s.e, sent-ended, bound.Messages, "messages in flight, of Factory.InFlight")
	}
}

// sentOf returns a function that reports whether sendAll(base, n) or sendSome(..., more) sent a stamp.
func sentOf(n, more int) func(int64) bool {
	return func(s int64) bool {
		return s >= base && s < base+int64(n) || s >= base+1000 && s < base+1000+int64(more)
	}
}

// cut breaks the connection of a producer while sends are in flight, after n accepted sends. Idle is a consumer on the
// same connection.
func (e *env) cut(path Path, out *sender, idle *inbox, n int) {
	e.Helper()
	e.broken = true
	path.Freeze()
	_ = out.sendSome(500*time.Millisecond, 20) // they are in flight now
	path.Cut()
	require.NoError(e, out.wait(e.cfg.Timeout), "the connection has ended")
	require.NoError(e, out.verify())
	idle.lost()
	e.sendLost(out)
	require.NoError(e, out.wait(e.cfg.Timeout), "the connection has ended")
	sent, _, states := out.totals()
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", out.ledger)
	require.Truef(e, e.cfg.AtMostOnce || states[driver.Accepted] == n, "want the first %d only: %s", n, out.ledger)
	require.Greaterf(e, sent, n, "no send was in flight: %s", out.ledger)
	require.Equal(e, states[driver.Unknown], out.class(driver.ClassConnectionLost),
		"the class of sends that were in flight")
}

// sendLost checks that a send on a lost connection fails.
func (e *env) sendLost(out *sender) {
	e.Helper()
	err := e.bounded(e.cfg.Timeout, "Send on a connection that has ended", func() error {
		ctx := e.within(e.cfg.Timeout / 2)
		for {
			// Without answers in flight, a producer may notice the loss a moment later.
			if err := out.trySend(ctx, base-1); err != nil || !e.cfg.AtMostOnce {
				return err
			}
		}
	})
	require.Error(e, err, "Send on a connection that has ended")
	require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Send: %v", err)
}

// testCut: a connection ends with sends in flight. Then others can be opened on the same driver, on connections of the
// same keys, and the end of the earlier ones does not disturb them.
func testCut(e *env) {
	const n = 100
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	watch := e.receiver(e.open(), consumerSpec(dest))
	idle := e.receiver(d, consumerSpec(e.dest()))
	out := e.producer(d, producerSpec(dest))
	out.sendAll(base, n)
	watch.expect(base, n)
	e.cut(path, out, idle, n)
	e.quiet()
	require.NoError(e, compareSome(watch.stamps(), sentOf(n, 20)))
	watch.close()

	path.Restore()
	in := e.again(d, consumerSpec(dest))
	more := e.producer(d, producerSpec(dest))
	more.sendAll(base+n, n)
	in.includes(base+n, n, "receive on a connection that was opened after a cut")
	begin := time.Now()
	out.close()
	idle.close()
	require.Less(e, time.Since(begin), e.cfg.Timeout, "closing on a connection that has ended")
	more.sendAll(base+2*n, n)
	in.includes(base+2*n, n, "receive on a connection that was opened after a cut, when those before were closed")
}

// testIdle: a producer that sends nothing reports once that its connection has ended, and why.
func testIdle(e *env) {
	path := e.cfg.Path(e)
	d, dest := e.openURL(path.URL()), e.dest()
	out, late := e.producer(d, producerSpec(dest)), e.producer(d, producerSpec(dest))
	ends := e.onEnd(out)
	e.quiet()
	require.Empty(e, ends, "the end of a connection that is there")
	e.broken = true
	path.Cut()
	e.lostIdle(ends)
	e.sendLost(out)
	e.lostIdle(e.onEnd(late))
	out.close()
	late.close()
	require.Empty(e, ends, "the end of the connection was reported twice")
}

// onEnd returns what a producer reports of its end.
func (e *env) onEnd(out *sender) chan error {
	e.Helper()
	watched, ok := out.producer.(driver.Watched)
	require.True(e, ok, "a producer is a driver.Watched, and another of the same driver is not")
	ends := make(chan error, 2)
	watched.OnEnd(func(why error) { ends <- why })
	return ends
}

func (e *env) lostIdle(ends chan error) {
	e.Helper()
	select {
	case why := <-ends:
		require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(why), "class of the end of the connection: %v", why)
	case <-time.After(e.cfg.Timeout):
		require.FailNow(e, "an idle producer has not reported the end of its connection")
	}
}
