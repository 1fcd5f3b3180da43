package drivertest

import (
	"context"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// testConnections: several producers and consumers on one connection and on their own, closing one by one.
func testConnections(e *env) {
	const n, parties = 50, 4
	d := e.open()
	var outs []*sender
	var ins []*inbox
	for i := range parties {
		dest, name := e.dest(), strconv.Itoa(i)
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

// testCloseInFlight: Close waits for messages in flight.
func testCloseInFlight(e *env) {
	const n = 1000
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.MaxPending = n })
	out.send(base, n)
	out.close()
	out.accepted()
	in.expect(base, n)
}

// testCloseExpired: Close does not wait when its context has ended, and still reports each send truthfully.
func testCloseExpired(e *env) {
	const n = 500
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.MaxPending = n })
	out.send(base, n)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	begin := time.Now()
	out.closeWith(ctx)
	require.Less(e, time.Since(begin), e.cfg.Grace, "Close with an ended context took its time")
	_, ended, states := out.totals()
	require.Equal(e, n, ended)
	require.Equalf(e, n, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown, have %s", out.ledger)
	if !e.cfg.AtMostOnce { // otherwise accepted says nothing about the broker
		in.awaitCount(states[driver.Accepted], "receive what was accepted")
	}
	e.quiet()
	require.NoError(e, compareSome(in.stamps(), func(s int64) bool { return s >= base && s < base+n }))
}
