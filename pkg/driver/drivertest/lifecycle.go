package drivertest

import (
	"context"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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
		var sending errgroup.Group
		ctx := e.soon()
		for _, out := range outs[round:] {
			sending.Go(func() (err error) {
				for i := 0; i < n && err == nil; i++ {
					err = out.trySend(ctx, base+int64(round*n+i))
				}
				return err
			})
		}
		require.NoError(e, e.bounded(e.cfg.Timeout+grace, "sending with several producers", sending.Wait))
		for i := round; i < parties; i++ {
			outs[i].accepted()
			ins[i].expect(base, (round+1)*n)
		}
		outs[round].close()
		ins[round].close()
	}
}

// testKeys: producers and consumers with the same key share a connection, and those of another key have another one.
func testKeys(e *env) {
	path := e.cfg.Path(e)
	d := e.openURL(path.URL())
	produce := func(key string, dest driver.Destination) {
		spec := producerSpec(dest)
		spec.Connection, spec.Name = connection(key), unique("producer")
		e.producer(d, spec)
	}
	consume := func(key string, dest driver.Destination) {
		spec := consumerSpec(dest)
		spec.Connection, spec.Name = connection(key), unique("consumer")
		e.receiver(d, spec)
	}
	for _, first := range []func(string, driver.Destination){consume, produce} {
		dests := []driver.Destination{e.dest(), e.dest(), e.dest()}
		for _, dest := range dests {
			produce("known", dest) // the driver may need connections of its own to ask about a destination
		}
		key := unique("key")
		before := path.Connections()
		first(key, dests[0])
		opened := path.Connections()
		require.Greater(e, opened, before, "connections, when the first worker with a key was opened, and before")
		consume(key, dests[1])
		require.Equal(e, opened, path.Connections(), "connections, when a consumer with the same key was opened")
		produce(key, dests[2])
		require.Equal(e, opened, path.Connections(), "connections, when a producer with the same key was opened")
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
	require.Less(e, time.Since(begin), grace, "Close with an ended context took its time")
	_, ended, states := out.totals()
	require.Equal(e, n, ended)
	require.Equalf(e, n, states[driver.Accepted]+states[driver.Unknown], "want Accepted or Unknown, have %s", out.ledger)
	if !e.cfg.AtMostOnce { // otherwise accepted says nothing about the broker
		in.awaitCount(states[driver.Accepted], "receive what was accepted")
	}
	e.quiet()
	require.NoError(e, compareSome(in.stamps(), func(s int64) bool { return s >= base && s < base+n }))
}
