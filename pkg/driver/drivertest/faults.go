package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// openParty opens a driver and a producer or consumer on it, and returns the error of whichever failed. With prepare,
// options can be changed before.
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
		dest := e.queue()
		if consume {
			c, err := d.Consumer(e.ctx, consumerSpec(dest))
			if err == nil {
				e.Cleanup(func() { e.closes(e.closing(), "Consumer.Close", c.Close) })
			}
			return err
		}
		p, err := d.Producer(e.ctx, producerSpec(dest), driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
		if err == nil {
			e.Cleanup(func() { e.closes(e.closing(), "Producer.Close", p.Close) })
		}
		return err
	})
}

func testUnreachable(e *env) {
	url := e.cfg.Unreachable
	if url == "" {
		url = withHosts(e.cfg.URL, freeAddress(e))
	}
	for _, consume := range []bool{false, true} {
		err := e.openParty(url, consume, nil)
		require.Error(e, err, "connect to "+url)
		require.Equalf(e, driver.ClassConnect, driver.ClassOf(err), "class of: %v", err)
		require.NotEmptyf(e, driver.HintOf(err), "no hint with: %v", err)
	}
}

func testSilent(e *env) {
	url := e.cfg.Silent
	if url == "" {
		url = withHosts(e.cfg.URL, silentAddress(e))
	}
	for _, consume := range []bool{false, true} {
		err := e.openParty(url, consume, func(o *driver.OpenOptions) { o.ConnectTimeout = 500 * time.Millisecond })
		require.Error(e, err, "connect to "+url)
		class := driver.ClassOf(err)
		require.Truef(e, class == driver.ClassConnect || class == driver.ClassTimeout, "class %v of: %v", class, err)
	}
}

func testWrongPassword(e *env) {
	err := e.openParty(e.cfg.URL, false, func(o *driver.OpenOptions) { o.Password = e.cfg.WrongPassword })
	require.Error(e, err, "connect with a wrong password")
	require.Equalf(e, driver.ClassAuth, driver.ClassOf(err), "class of: %v", err)
	require.NotEmptyf(e, driver.HintOf(err), "no hint with: %v", err)
}

// sendUntil sends until ctx ends or Send fails. It returns the error of the end.
func (s *sender) sendUntil(ctx context.Context, limit time.Duration, n int, body []byte) error {
	s.e.Helper()
	return s.e.bounded(limit, "Send, after the end of its context,", func() error {
		for i := range n {
			if err := s.trySend(ctx, base+1000+int64(i), body); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendSome sends for as long as patience, or longer if the machine was too busy to send even one message.
func (s *sender) sendSome(patience time.Duration, n int, body []byte) error {
	s.e.Helper()
	before, _, _ := s.totals()
	for begin := time.Now(); ; {
		err := s.sendUntil(s.e.within(patience), patience+grace, n, body)
		if sent, _, _ := s.totals(); sent > before || time.Since(begin) > s.e.cfg.Timeout {
			return err
		}
	}
}

// testFrozen: when nothing moves any more, all that waits still ends with its context.
func testFrozen(e *env) {
	path := e.cfg.Path(e)
	d := e.openURL(path.URL())
	dest := e.queue()
	idle := e.receiver(d, consumerSpec(e.queue()))
	spec := producerSpec(dest)
	spec.MaxPending = 4000
	out := e.producer(d, spec)
	out.sendAll(base, 10)

	e.broken = true
	path.Freeze()
	const patience = time.Second
	err := out.sendSome(patience, 1<<20, payload(16<<10))
	class := driver.ClassOf(err)
	require.Truef(e, errors.Is(err, context.DeadlineExceeded) || class == driver.ClassConnectionLost,
		"Send to a frozen broker with a context that ended: %v", err)

	begin := time.Now()
	idle.stop()
	require.Less(e, time.Since(begin), grace, "Run on a frozen connection went on after its context had ended")
	begin = time.Now()
	out.closeWith(e.within(patience))
	require.Less(e, time.Since(begin), patience+grace, "Close on a frozen connection went on after its context had ended")
	sent, ended, states := out.totals()
	require.Equal(e, sent, ended)
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", out.ledger)
	require.Truef(e, e.cfg.AtMostOnce || states[driver.Accepted] < sent, "sends to a frozen broker were accepted: %s", out.ledger)
	begin = time.Now()
	e.closes(e.within(patience), "Driver.Close on a frozen connection", d.Close)
	require.Less(e, time.Since(begin), patience+grace, "Driver.Close went on after its context had ended")
}

// testCut: a connection that ends with sends in flight.
func testCut(e *env) {
	path := e.cfg.Path(e)
	d := e.openURL(path.URL())
	dest := e.queue()
	idle := e.receiver(d, consumerSpec(e.queue()))
	spec := producerSpec(dest)
	spec.MaxPending = 200
	out := e.producer(d, spec)
	out.sendAll(base, 100)

	e.broken = true
	path.Freeze()
	_ = out.sendSome(500*time.Millisecond, 20, payload(100)) // some of them are on their way now
	path.Cut()
	e.connectionLost(out, idle)
	sent, _, states := out.totals()
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", out.ledger)
	require.Truef(e, e.cfg.AtMostOnce || states[driver.Accepted] == 100, "want the first 100 only: %s", out.ledger)
	require.Greaterf(e, sent, 100, "no send was in flight: %s", out.ledger)
	require.Equal(e, states[driver.Unknown], out.class(driver.ClassConnectionLost), "the class of sends that were in flight")

	err := e.openParty(path.URL(), false, nil)
	require.Error(e, err, "connect through a path that is cut")
	require.Equalf(e, driver.ClassConnect, driver.ClassOf(err), "class of: %v", err)
}

// testKill: the broker is killed under load.
func testKill(e *env) {
	url, kill := e.cfg.Victim(e)
	d := e.openURL(url)
	dest := e.queue()
	busy := e.receiver(d, consumerSpec(dest))
	out := e.producer(d, producerSpec(dest))
	sending := make(chan error, 1)
	go func() {
		ctx := e.within(3 * e.cfg.Timeout)
		for i := base; ; i++ {
			if err := out.trySend(ctx, i, payload(1024)); err != nil {
				sending <- err
				return
			}
		}
	}()
	e.await("receive", busy.changed, func() error { return atLeast(busy.count(), 1000) })
	e.broken = true
	kill()
	err := e.bounded(e.cfg.Timeout, "Send, after the broker was killed,", func() error { return <-sending })
	require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Send: %v", err)
	e.connectionLost(out, busy)
	sent, _, states := out.totals()
	require.Equalf(e, sent, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown: %s", out.ledger)
	require.NoError(e, compareSome(busy.stamps(), base, sent))
}

// connectionLost checks what producer and consumer do when their connection has ended.
func (e *env) connectionLost(out *sender, in *inbox) {
	e.Helper()
	require.NoError(e, out.wait(e.cfg.Timeout), "the connection has ended")
	require.NoError(e, out.verify())
	err := in.fails()
	require.Error(e, err, "Run returned nil although the connection had ended and its context had not")
	require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Run: %v", err)
	err = e.bounded(e.cfg.Timeout, "Send on a connection that has ended", func() error {
		ctx := e.within(e.cfg.Timeout / 2)
		for {
			// Without answers in flight, a producer may hear of the end a moment later.
			if err := out.trySend(ctx, base-1, payload(10)); err != nil || !e.cfg.AtMostOnce {
				return err
			}
		}
	})
	require.Error(e, err, "Send on a connection that has ended")
	require.Equalf(e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Send: %v", err)
	begin := time.Now()
	out.close()
	in.close()
	require.Less(e, time.Since(begin), e.cfg.Timeout, "closing on a connection that has ended")
}

// class returns how many sends ended with that class.
func (l *ledger) class(c driver.Class) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.classes[c]
}
