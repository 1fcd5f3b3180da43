package drivertest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/pkg/driver"
)

// waitUntil waits until ready or the end of ctx.
func waitUntil(ctx context.Context, ready func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// pause lets time pass in which something must not happen.
func pause(d time.Duration) { <-time.After(d) }

// checkLeaks looks, when everything else of the test has been cleaned up, for goroutines that were not there before.
func (e *env) checkLeaks() {
	options := append([]goleak.Option{goleak.IgnoreCurrent()}, e.cfg.IgnoreGoroutines...)
	if e.cfg.QueueCounters != nil { // which may well ask over HTTP
		options = append(options, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	}
	e.Cleanup(func() {
		if e.Failed() {
			return // what hangs has been reported
		}
		deadline := time.Now().Add(e.cfg.Timeout)
		err := goleak.Find(options...)
		for err != nil && time.Now().Before(deadline) {
			err = goleak.Find(options...)
		}
		require.NoError(e, err, "goroutines are left after Driver.Close")
		for _, check := range e.final {
			check()
		}
	})
}

// testRunEnds: Run returns nil soon after its context ends, with and without messages coming in.
func testRunEnds(e *env) {
	d, dest := e.open(), e.queue()
	e.receiver(d, consumerSpec(dest)).stop()

	in := e.receiver(d, consumerSpec(dest))
	out := e.producer(d, producerSpec(dest))
	ctx, stop := context.WithCancel(e.soon())
	sending := make(chan error, 1)
	go func() {
		for i := base; ; i++ {
			if err := out.trySend(ctx, i, payload(64)); err != nil {
				sending <- err
				return
			}
		}
	}()
	e.await("receive", in.changed, func() error { return atLeast(in.count(), 100) })
	begin := time.Now()
	in.stop()
	require.Less(e, time.Since(begin), grace, "Run went on after its context had ended")
	stop()
	err := e.bounded(e.cfg.Timeout, "Send, after the end of its context,", func() error { return <-sending })
	require.ErrorIs(e, err, context.Canceled)
	require.NoError(e, out.wait(e.cfg.Timeout))
	in.close()

	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	late := e.consumer(d, consumerSpec(dest))
	err = e.bounded(grace, "Run with an ended context", func() error { return late.consumer.Run(ended, late.deliver) })
	require.NoError(e, err, "Run with an ended context")
}

// testUnsettled: what a consumer was sent ahead goes back when it closes; what it got was settled and does not.
func testUnsettled(e *env) {
	const n = 100
	d, dest := e.open(), e.queue()
	e.producer(d, producerSpec(dest)).sendAll(base, n)
	spec := consumerSpec(dest)
	if works, _ := e.cfg.has(Credit); works {
		spec.Credit = 20
	}
	first := e.consumer(d, spec)
	got := make(chan struct{})
	first.onMsg = func(i int) {
		if i == 3 {
			first.cancel()
			close(got)
		}
	}
	first.run()
	require.NoError(e, e.bounded(e.cfg.Timeout, "receiving 3 messages", func() error { <-got; return nil }))
	first.close()
	require.LessOrEqual(e, first.count(), n/2, "Run went on after its context had ended")
	second := e.receiver(d, consumerSpec(dest))
	e.expectTogether(base, n, first, second)
}

// testConnections: several producers and consumers on one connection and on their own, closing one by one.
func testConnections(e *env) {
	const n, parties = 50, 4
	d := e.open()
	var outs []*sender
	var ins []*inbox
	for i := range parties {
		dest, name := e.queue(), strconv.Itoa(i)
		p, c := producerSpec(dest), consumerSpec(dest)
		p.Name, c.Name = "producer-"+name, "consumer-"+name
		p.Connection = connection("shared")
		c.Connection = connection("shared")
		if i%2 == 1 {
			p.Connection, c.Connection = connection("p"+name), connection("c"+name)
		}
		ins = append(ins, e.receiver(d, c))
		outs = append(outs, e.producer(d, p))
	}
	for round := range parties { // in each round one pair less
		e.sendTogether(outs[round:], base+int64(round*n), n)
		for i := round; i < parties; i++ {
			outs[i].accepted()
			ins[i].expect(base, (round+1)*n)
		}
		outs[round].close()
		ins[round].close()
	}
}

// sendTogether sends n messages with each of the senders, all at the same time.
func (e *env) sendTogether(outs []*sender, first int64, n int) {
	e.Helper()
	ctx := e.soon()
	errs := make(chan error, len(outs))
	for _, out := range outs {
		go func() {
			var err error
			for i := 0; i < n && err == nil; i++ {
				err = out.trySend(ctx, first+int64(i), payload(100))
			}
			errs <- err
		}()
	}
	for range outs {
		require.NoError(e, e.bounded(e.cfg.Timeout+grace, "sending with several producers", func() error { return <-errs }))
	}
}

// testCloseInFlight: Close waits for what is in flight.
func testCloseInFlight(e *env) {
	const n = 1000
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	spec.MaxPending = n
	out := e.producer(d, spec)
	out.send(base, n, payload(100))
	out.close()
	out.accepted()
	e.receiver(d, consumerSpec(dest)).expect(base, n)
}

// testCloseExpired: Close does not wait when its context has ended, and still ends each send, truthfully.
func testCloseExpired(e *env) {
	const n = 500
	d, dest := e.open(), e.queue()
	spec := producerSpec(dest)
	spec.MaxPending = n
	out := e.producer(d, spec)
	out.send(base, n, payload(100))
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	begin := time.Now()
	out.closeWith(ctx)
	require.Less(e, time.Since(begin), grace, "Close with an ended context took its time")
	_, ended, states := out.totals()
	require.Equal(e, n, ended)
	require.Equalf(e, n, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown, have %s", out.ledger)
	in := e.receiver(d, consumerSpec(dest))
	if e.cfg.AtMostOnce { // accepted says nothing about the broker then
		states[driver.Accepted] = 0
	}
	e.await("receive what was accepted", in.changed, func() error { return atLeast(in.count(), states[driver.Accepted]) })
	pause(e.cfg.Quiet)
	stamps := in.stamps()
	require.NoError(e, compareSome(stamps, base, n))
}

// compareSome tells whether the stamps are from first to first+n-1, each at most once.
func compareSome(stamps []int64, first int64, n int) error {
	seen := map[int64]bool{}
	for _, s := range stamps {
		if s < first || s >= first+int64(n) || seen[s] {
			return fmt.Errorf("message %d was not sent, or came twice", s-first)
		}
		seen[s] = true
	}
	return nil
}
