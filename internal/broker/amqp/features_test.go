package amqp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/brokertest"
	driveramqp "github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// condition returns the condition of an AMQP error; empty for nil.
func condition(err error) client.ErrCond {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Condition
	}
	return ""
}

func TestOutcomes(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	out, in := r.sender(s, "Q", nil), r.receiver(s, "Q", nil)
	r.send(out, "a")
	m := r.receive(in)
	require.NoError(t, in.ReleaseMessage(soon(t), m))
	m = r.receive(in)
	assert.Zero(t, m.Header.DeliveryCount, "released")
	require.NoError(t, in.ModifyMessage(soon(t), m, &client.ModifyMessageOptions{DeliveryFailed: true}))
	m = r.receive(in)
	assert.Equal(t, uint32(1), m.Header.DeliveryCount, "failed")
	assert.False(t, m.Header.FirstAcquirer)
	require.NoError(t, in.RejectMessage(soon(t), m, nil))
	r.send(out, "b")
	m = r.receive(in)
	require.NoError(t, in.ModifyMessage(soon(t), m, &client.ModifyMessageOptions{UndeliverableHere: true}))
	r.send(out, "c")
	r.expect(in, "c")
	r.stats(queue("Q"), func(d store.DestinationStats) bool {
		q := d.Queues[0]
		return q.Rejected == 2 && q.Returned == 2 && q.Settled == 1 && q.Redelivered == 1 && q.Depth == 0
	})
}

// TestCredit: the broker sends no more messages than there is credit for, and draining returns the rest of the credit.
func TestCredit(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	in := r.receiver(s, "Q", &client.ReceiverOptions{Credit: -1})
	out := r.sender(s, "Q", nil)
	r.send(out, "1", "2", "3")
	r.nothing(in)
	require.NoError(t, in.IssueCredit(2))
	r.expect(in, "1", "2")
	r.nothing(in)
	require.NoError(t, in.IssueCredit(5))
	r.expect(in, "3")
	require.NoError(t, in.DrainCredit(soon(t), nil))
	r.send(out, "4")
	r.nothing(in)
	require.NoError(t, in.IssueCredit(1))
	r.expect(in, "4")
}

// TestDrainedPassesOn: a message is not kept for a receiver that waited for it and then drained its credit.
func TestDrainedPassesOn(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	first := r.receiver(s, "Q", &client.ReceiverOptions{Credit: -1})
	second := r.receiver(s, "Q", &client.ReceiverOptions{Credit: -1})
	out := r.sender(s, "Q", nil)
	for _, in := range []*client.Receiver{first, second} {
		require.NoError(t, in.IssueCredit(1))
		r.nothing(in)
	}
	require.NoError(t, first.DrainCredit(soon(t), nil))
	r.send(out, "1")
	r.expect(second, "1")
}

// TestBackPressure: senders of a full queue wait, and continue when there is room. No more than the granted credit is
// stored beyond the limit.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	const limit = 50
	r := start(t, store.Config{Limit: limit}, amqp.Server{})
	s := r.session()
	out := r.sender(s, "Q", nil)
	sent := 0
	for {
		patience := timeout
		if sent >= limit { // it may have been granted more, or wait
			patience = 5 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := out.Send(ctx, client.NewMessage([]byte(strconv.Itoa(sent))), nil)
		cancel()
		if err != nil {
			require.Equal(t, client.ErrCondTransferLimitExceeded, condition(err), "%v", err)
			break
		}
		sent++
		require.Less(t, sent, limit+limit/10)
	}
	assert.GreaterOrEqual(t, sent, limit)
	in := r.receiver(s, "Q", &client.ReceiverOptions{Credit: 10})
	for i := range sent {
		r.expect(in, strconv.Itoa(i))
	}
	r.send(out, "more")
	r.expect(in, "more")
}

// TestAddresses: a prefix decides, then the capability.
func TestAddresses(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	for address, want := range map[string]driver.Destination{
		"queue://A": queue("A"), "topic://A": topic("A"), "/queue/B": queue("B"), "/topic/B": topic("B"), "C": queue("C"),
		"other://E": queue("other://E"),
	} {
		r.send(r.sender(s, address, nil), "x")
		r.stats(want, func(d store.DestinationStats) bool { return d.Sent == 1 })
	}
	r.send(r.sender(s, "F", &client.SenderOptions{TargetCapabilities: []string{"topic"}}), "x")
	r.stats(topic("F"), func(d store.DestinationStats) bool { return d.Sent == 1 && d.Unrouted == 1 })
}

// TestStoppedHoldsMessages: the broker ends a connection that holds a message. Whoever gets the message next learns that
// it was delivered before.
func TestStoppedHoldsMessages(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	r.send(r.sender(s, "Q", nil), "1")
	r.receive(r.receiver(s, "Q", nil))
	next := musttest.Get(r.store.Queue("Q").Consume(nil, func() {}))(t)
	defer next.Close(false)
	r.stop()
	var got [1]store.Delivery
	require.Eventually(t, func() bool { return next.Take(got[:]) == 1 }, timeout, time.Millisecond)
	assert.Equal(t, uint32(1), got[0].Attempts)
}

// TestWithheld: a withheld message is not confirmed, though later ones are.
func TestWithheld(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	r.store.SetFaults(store.Faults{WithholdEvery: 2})
	out := r.sender(r.session(), "Q", nil)
	var receipts []client.SendReceipt
	for i := range 4 {
		receipt := musttest.Get(out.SendWithReceipt(soon(t), client.NewMessage([]byte(strconv.Itoa(i))), nil))(t)
		receipts = append(receipts, receipt)
	}
	for i, receipt := range receipts {
		if i%2 == 0 {
			musttest.Get(receipt.Wait(soon(t)))(t)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := receipt.Wait(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Eventually(t, func() bool { return r.store.FaultCounts().Withheld == 2 }, timeout, time.Millisecond)
}

func TestAuthentication(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{Authenticate: func(u, p string) bool { return u == "u" && p == "p" }})
	r.dial(&client.ConnOptions{SASLType: client.SASLTypePlain("u", "p")})
	for _, sasl := range []client.SASLType{client.SASLTypePlain("u", "x"), client.SASLTypeAnonymous(), nil} {
		_, err := client.Dial(soon(t), "amqp://"+r.addr, &client.ConnOptions{SASLType: sasl})
		require.Error(t, err)
	}
}

// TestIdle: a silent peer is ended, one that sends heartbeats is not, and gets ours.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle = 6 * time.Second // a moment in which the client does not run is no silence
	r := start(t, store.Config{}, amqp.Server{IdleTimeout: idle})
	s := musttest.Get(r.dial(&client.ConnOptions{IdleTimeout: idle}).NewSession(soon(t), nil))(t)
	nc := musttest.Get(net.Dial("tcp", r.addr))(t)
	silent := musttest.Get(client.NewConn(soon(t), deaf{nc}, nil))(t)
	select {
	case <-silent.Done():
	case <-soon(t).Done():
		t.Fatal("a silent peer was kept")
	}
	require.Equal(t, client.ErrCondResourceLimitExceeded, condition(silent.Err()), "%v", silent.Err())
	r.send(r.sender(s, "Q", nil), "still here")
}

// deaf is a connection that does not send heartbeats.
type deaf struct{ net.Conn }

func (d deaf) Write(b []byte) (int, error) {
	if len(b) == 8 && b[0] == 0 {
		return 8, nil
	}
	return d.Conn.Write(b)
}

func TestConformance(t *testing.T) {
	check := func(user, password string) bool { return user == brokertest.User && password == brokertest.Password }
	r := start(t, storetest.Limits(), amqp.Server{Authenticate: check})
	cfg := drivertest.Config{
		Broker:  "the embedded broker",
		Factory: driveramqp.Factory(), URL: "amqp://" + r.addr, User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Quiet: 100 * time.Millisecond, MaxBody: 1 << 20, // TestSizes has more
		// allocations of the broker, which is in the process: TestAllocations in package drivers/amqp counts the
		// driver's.
		Allocations: 20,
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			return brokertest.InspectAMQP(t, "amqp://"+r.addr, true, dest.Kind, dest.Name, false)
		},
	}
	storetest.Configure(&cfg, r.store)
	drivertest.Run(t, cfg)
}

// TestUnchanged: a message leaves as it came, but for its header.
func TestUnchanged(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	out, in := r.sender(s, "Q", nil), r.receiver(s, "Q", nil)
	group, subject, seq := "g", "subject", uint32(7)
	created := time.UnixMilli(1_700_000_000_123)
	m := &client.Message{
		Header:              &client.MessageHeader{Durable: true, Priority: 7, TTL: time.Hour},
		DeliveryAnnotations: client.Annotations{"x-hop": "dropped"},
		Annotations:         client.Annotations{"x-opt-a": int64(1)},
		Properties: &client.MessageProperties{
			MessageID: uint64(99), UserID: []byte("me"), Subject: &subject, GroupID: &group, GroupSequence: &seq, CreationTime: &created,
		},
		ApplicationProperties: map[string]any{"i": int32(-3), "s": "text", "b": true, "d": 1.5, "u": uint64(1 << 63), "x": []byte{1}},
		Data:                  [][]byte{[]byte("one"), []byte("two")},
		Footer:                client.Annotations{"f": "g"},
	}
	require.NoError(t, out.Send(soon(t), m, nil))
	got := r.receive(in)
	assert.True(t, got.Header.Durable)
	assert.Equal(t, uint8(7), got.Header.Priority)
	assert.InDelta(t, time.Hour, got.Header.TTL, float64(time.Minute))
	assert.True(t, got.Header.FirstAcquirer)
	assert.Zero(t, got.Header.DeliveryCount)
	assert.Empty(t, got.DeliveryAnnotations)
	assert.Equal(t, m.Annotations, got.Annotations)
	assert.Equal(t, m.Properties, got.Properties)
	assert.Equal(t, m.ApplicationProperties, got.ApplicationProperties)
	assert.Equal(t, m.Data, got.Data)
	assert.Equal(t, m.Footer, got.Footer)
}

func TestSizes(t *testing.T) {
	for _, frame := range []uint32{512, 4096, 65536} {
		t.Run(strconv.Itoa(int(frame)), func(t *testing.T) {
			r := start(t, store.Config{}, amqp.Server{})
			s := musttest.Get(r.dial(&client.ConnOptions{MaxFrameSize: frame}).NewSession(soon(t), nil))(t)
			out, in := r.sender(s, "Q", nil), r.receiver(s, "Q", &client.ReceiverOptions{Credit: 3})
			for _, size := range []int{0, 1, 400, 480, 500, 512, 513, 4096, 70_000, 200_000, 3 << 20} {
				if size > 1<<20 && frame < 65536 {
					continue // thousands of frames more prove nothing more
				}
				body := bytes.Repeat([]byte{byte(size), 1, 2, 3}, size/4+1)[:size]
				require.NoError(t, out.Send(soon(t), client.NewMessage(body), nil))
				m := r.receive(in)
				require.True(t, bytes.Equal(body, m.GetData()), "%d bytes", size)
				require.NoError(t, in.AcceptMessage(soon(t), m))
			}
		})
	}
}
