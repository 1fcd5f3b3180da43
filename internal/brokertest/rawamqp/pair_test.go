package rawamqp

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// timeout bounds every wait of the tests.
const timeout = time.Minute

func start(t *testing.T, faults store.Faults) *broker.Broker {
	t.Helper()
	b, err := broker.Start(broker.Config{Listen: map[string]string{"amqp": "127.0.0.1:0"}, Faults: faults})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func open(t *testing.T, addr string, l Load) *Pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	p, err := Open(ctx, addr, l)
	require.NoError(t, err)
	return p
}

func TestRun(t *testing.T) {
	for _, l := range []Load{
		{Queue: "ONE", Size: 1, Pending: 1, Credit: 2},
		{Queue: "MANY", Size: 1024, Pending: 1000, Credit: 1000},
	} {
		t.Run(l.Queue, func(t *testing.T) {
			b := start(t, store.Faults{})
			p := open(t, b.Addr("amqp"), l)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			require.NoError(t, p.Run(ctx, 300*time.Millisecond))
			require.Positive(t, p.Accepted())
			require.Equal(t, p.Accepted(), p.Received())
			q := b.Store().Queue(l.Queue)
			require.Eventually(t, func() bool { return q.Stats().Settled == uint64(p.Accepted()) }, timeout, time.Millisecond)
			require.Equal(t, uint64(p.Accepted()), q.Stats().Stored)
			require.NoError(t, p.Close())
		})
	}
}

// TestRate: with a rate each message leaves when it is due, and the time to its confirmation counts from then.
func TestRate(t *testing.T) {
	b := start(t, store.Faults{})
	p := open(t, b.Addr("amqp"), Load{Queue: "RATE", Size: 100, Pending: 100, Credit: 100, Rate: 200})
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	began := time.Now()
	require.NoError(t, p.Run(ctx, time.Second))
	took := time.Since(began)
	require.LessOrEqual(t, p.Accepted(), int64(took.Seconds()*200)+1, "not before they are due")
	require.Positive(t, p.Accepted())
	require.Len(t, p.Responses(), int(p.Accepted()))
	for _, r := range p.Responses() {
		require.Positive(t, r)
	}
	require.NoError(t, p.Close())
}

// TestRunFindsFaults: a broker that does not do its work must not pass for a fast one.
func TestRunFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		faults store.Faults
		says   string
	}{
		"lost":     {store.Faults{LoseEvery: 3}, "deadline exceeded"},
		"withheld": {store.Faults{WithholdEvery: 3}, "deadline exceeded"},
		"dropped":  {store.Faults{DropEvery: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.faults)
			p := open(t, b.Addr("amqp"), Load{Queue: "Q", Size: 10, Pending: 5, Credit: 10})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			require.ErrorContains(t, p.Run(ctx, 500*time.Millisecond), c.says) // the first write already has one
			_ = p.Close()
		})
	}
}

func TestOpenFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	good := Load{Queue: "Q", Size: 1, Pending: 1, Credit: 2}
	addr := start(t, store.Faults{}).Addr("amqp")
	for _, l := range []Load{{}, {Size: 1, Pending: 1, Credit: 1}, {Size: 1, Credit: 2}, {Pending: 1, Credit: 2}} {
		_, err := Open(ctx, addr, l)
		require.ErrorContains(t, err, "no such load")
	}
	large := good
	large.Size = maxFrame
	_, err := Open(ctx, addr, large)
	require.ErrorContains(t, err, "a frame no more than")

	web := listen(t, "HTTP/1.1 400 Bad Request\r\n")
	_, err = Open(ctx, web, good)
	require.ErrorContains(t, err, "does not speak AMQP 1.0")
	silent := listen(t, "")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = Open(short, silent, good)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// listen returns the address of a peer that sends the same bytes on each connection, and nothing else.
func listen(t *testing.T, says string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if nc, err := l.Accept(); err == nil {
			_, _ = nc.Write([]byte(says))
			_, _ = io.Copy(io.Discard, nc)
			_ = nc.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// TestRunTellsWhyTheBrokerEnds: against a broker that closes with an error.
func TestRunTellsWhyTheBrokerEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	p := pairOn(ours)
	go func() {
		reason := wire.Close{Error: &wire.Error{Condition: wire.CondNotAllowed, Description: "go away"}}
		_, _ = theirs.Write(reason.AppendFrame(nil))
	}()
	require.EqualError(t, p.follow(), "wait for confirmations: the broker has ended the connection: amqp:not-allowed: go away")
}

// TestConfirm: each confirmed message must be in flight, confirmed once, and accepted.
func TestConfirm(t *testing.T) {
	disposition := func(first, last uint32, state []byte) []byte {
		d := wire.Disposition{Role: wire.RoleReceiver, First: first, Last: last, Settled: true, State: state}
		return d.AppendFrame(nil, 0)
	}
	accepted, released := []byte(wire.Accepted), (&wire.State{Kind: wire.DescReleased}).Append(nil)
	for name, c := range map[string]struct {
		frames []byte
		want   int64
		says   string
	}{
		"in order":      {append(disposition(0, 2, accepted), disposition(3, 3, accepted)...), 4, "EOF"},
		"out of order":  {append(disposition(2, 3, accepted), disposition(0, 1, accepted)...), 4, "EOF"},
		"with a gap":    {append(disposition(0, 0, accepted), disposition(2, 3, accepted)...), 1, "EOF"},
		"twice":         {append(disposition(0, 1, accepted), disposition(1, 2, accepted)...), 2, "not in flight"},
		"twice, early":  {append(disposition(2, 2, accepted), disposition(2, 2, accepted)...), 0, "not in flight"},
		"not sent":      {disposition(3, 4, accepted), 0, "not in flight"},
		"released":      {disposition(0, 0, released), 0, "not accepted: state 0x26"},
		"without state": {disposition(0, 0, nil), 0, "not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			p := pairOn(ours)
			p.sent.Store(4)
			go func() {
				_, _ = theirs.Write(c.frames)
				_ = theirs.Close()
			}()
			require.ErrorContains(t, p.follow(), c.says)
			require.Equal(t, c.want, p.Accepted())
		})
	}
}

// pairOn returns a pair whose sender is connected to nc.
func pairOn(nc net.Conn) *Pair {
	return &Pair{
		load: Load{Size: 1, Pending: 4, Credit: 2}, out: newConn(nc),
		answers: make(chan struct{}, 1), arrivals: make(chan struct{}, 1),
	}
}
