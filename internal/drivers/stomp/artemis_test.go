//go:build unix

package stomp

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// deadline bounds a test on a real broker.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// TestLeavesNoSubscription asks the broker for the subscriptions left when consumers have closed.
func TestLeavesNoSubscription(t *testing.T) {
	a := shared.Artemis(t)
	ctx := deadline(t)
	for name, c := range map[string]struct {
		change func(*driver.ConsumerSpec)
		kept   int
	}{
		"anonymous":      {func(*driver.ConsumerSpec) {}, 0},
		"durable":        {func(s *driver.ConsumerSpec) { s.Durable = true }, 0},
		"durable kept":   {func(s *driver.ConsumerSpec) { s.Durable, s.KeepSubscription = true, true }, 1},
		"shared":         {func(s *driver.ConsumerSpec) { s.Shared = true }, 0},
		"shared, no ID":  {func(s *driver.ConsumerSpec) { s.Shared, s.Connection.ClientID = true, "" }, 0},
		"shared durable": {func(s *driver.ConsumerSpec) { s.Shared, s.Durable = true, true }, 0},
		"shared, kept":   {func(s *driver.ConsumerSpec) { s.Shared, s.Durable, s.KeepSubscription = true, true, true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDriver(t, a.STOMPURL())
			topic := "topic " + name
			var consumers []driver.Consumer
			for _, key := range []string{"1", "2"} {
				spec := driver.ConsumerSpec{
					Connection:   driver.Connection{Key: key, Name: "perfmq-" + key, ClientID: "id of " + name},
					Destination:  driver.Destination{Kind: driver.Topic, Name: topic},
					Subscription: "sub",
				}
				c.change(&spec)
				if spec.Durable && !spec.Shared && key == "2" {
					break
				}
				k, err := d.Consumer(ctx, spec)
				require.NoError(t, err)
				consumers = append(consumers, k)
			}
			subs, err := a.Subscriptions(ctx, topic)
			require.NoError(t, err)
			require.NotEmpty(t, subs)
			for _, k := range consumers {
				require.NoError(t, k.Close(ctx))
			}
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				subs, err := a.Subscriptions(ctx, topic)
				assert.NoError(t, err)
				assert.Len(t, subs, c.kept)
			}, patience, 20*time.Millisecond)
			require.EventuallyWithT(t, func(t *assert.CollectT) { // the broker notices when we hang up
				left, err := a.Connections(ctx)
				assert.NoError(t, err)
				assert.Empty(t, left)
			}, patience, 20*time.Millisecond)
		})
	}
}

// TestFullAddress: Artemis does not say over STOMP that an address is full, only that it could not send; then it ends
// the connection, as STOMP wants it.
func TestFullAddress(t *testing.T) {
	a := shared.Artemis(t)
	ctx, o := deadline(t), newOutcomes()
	name := "full-" + strconv.FormatInt(time.Now().UnixNano(), 36) // the broker counts all messages of a name
	require.NoError(t, a.SetAddressLimit(ctx, brokertest.AddressLimit{Match: name, MaxMessages: 5, Policy: brokertest.PolicyFail}))
	d := openDriver(t, a.STOMPURL())
	p, err := d.Producer(ctx, driver.ProducerSpec{
		Destination: driver.Destination{Name: name}, MaxPending: 20, Variants: bodies(),
	}, o)
	require.NoError(t, err)
	sent, accepted := 0, 0
	for ; sent < 10; sent++ { // after the sixth the broker may be quicker than we are
		if p.Send(ctx, &driver.Message{Slot: slot(sent), Time: 5, Variant: sent}) != nil {
			break
		}
	}
	require.Greater(t, sent, 5)
	for slot, out := range o.wait(t, sent) {
		switch {
		case out.State == driver.Accepted:
			accepted++
		case slot.Index() == 5:
			require.Equal(t, driver.Rejected, out.State)
			require.Equal(t, driver.ClassFull, out.Class)
			require.ErrorContains(t, out.Err, "AMQ339011")
			require.ErrorContains(t, out.Err, "does not say why")
			require.NotContains(t, out.Err.Error(), "CoreMessage")
			require.Contains(t, driver.HintOf(out.Err), "full address")
		}
	}
	require.Equal(t, 5, accepted)
	stats, err := a.WaitQueue(ctx, name, func(s brokertest.QueueStats) bool { return s.MessagesAdded >= 5 })
	require.NoError(t, err)
	require.EqualValues(t, 5, stats.MessagesAdded)
	require.NoError(t, p.Close(ctx))
	_, err = a.PurgeQueue(ctx, name)
	require.NoError(t, err)
}

// TestNotAllowed: a user that may log in and nothing else.
func TestNotAllowed(t *testing.T) {
	a := shared.Artemis(t)
	ctx, o := deadline(t), newOutcomes()
	d, err := Factory().Open(ctx, driver.OpenOptions{
		URL: a.STOMPURL(), User: "nobody", Password: "nobody", ConnectTimeout: patience, Options: Factory().NewOptions(),
	})
	require.NoError(t, err)
	dest := driver.Destination{Name: "secret"}
	_, err = d.Consumer(ctx, driver.ConsumerSpec{Destination: dest})
	require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
	p, err := d.Producer(ctx, driver.ProducerSpec{Destination: dest, MaxPending: 1, Variants: bodies()}, o)
	require.NoError(t, err)
	send(t, p, 1)
	out := o.wait(t, 1)[slot(0)]
	require.Equal(t, driver.Rejected, out.State)
	require.Equal(t, driver.ClassAuth, out.Class, "%v", out.Err)
	require.NoError(t, p.Close(ctx))
	require.NoError(t, d.Close(ctx))
}

// TestTimeAcrossProtocols: the time that AMQP finds in a message sent over STOMP, and the other way round.
func TestTimeAcrossProtocols(t *testing.T) {
	artemis, classic := shared.Artemis(t), shared.ActiveMQ(t)
	for name, urls := range map[string][2]string{
		"artemis": {artemis.STOMPURL(), artemis.AMQPURL()}, "activemq": {classic.STOMPURL(), classic.AMQPURL()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, o := deadline(t), newOutcomes()
			conn, err := amqp.Dial(ctx, urls[1], &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(brokertest.User, brokertest.Password)})
			require.NoError(t, err)
			defer conn.Close()
			session, err := conn.NewSession(ctx, nil)
			require.NoError(t, err)

			d := openDriver(t, urls[0])
			p, err := d.Producer(ctx, driver.ProducerSpec{
				Destination: driver.Destination{Name: "to-amqp"}, MaxPending: 2,
				Variants: []driver.Variant{{Body: []byte{0, 0}, Priority: -1, Properties: []driver.Property{{Key: "color", Value: "a:b\\c"}}}},
			}, o)
			require.NoError(t, err)
			send(t, p, 1)
			require.Equal(t, driver.Outcome{}, o.wait(t, 1)[slot(0)])
			require.NoError(t, p.Close(ctx))
			r, err := session.NewReceiver(ctx, "to-amqp", &amqp.ReceiverOptions{SourceCapabilities: []string{"queue"}})
			require.NoError(t, err)
			m, err := r.Receive(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "5", m.ApplicationProperties["time"], "a text, not a long")
			require.Equal(t, "a:b\\c", m.ApplicationProperties["color"])
			require.Equal(t, []byte{0, 0}, m.GetData())
			require.NoError(t, r.AcceptMessage(ctx, m))

			k, err := d.Consumer(ctx, driver.ConsumerSpec{Destination: driver.Destination{Name: "to-stomp"}})
			require.NoError(t, err)
			s, err := session.NewSender(ctx, "to-stomp", &amqp.SenderOptions{TargetCapabilities: []string{"queue"}})
			require.NoError(t, err)
			m = amqp.NewMessage([]byte{0, 1, 0})
			m.ApplicationProperties = map[string]any{"time": int64(1700000000000001)}
			require.NoError(t, s.Send(ctx, m, nil))
			run, stop := context.WithCancel(ctx)
			require.NoError(t, k.Run(run, func(got *driver.Delivery) driver.Verdict {
				require.True(t, got.HasTime)
				require.Equal(t, int64(1700000000000001), got.Time)
				require.Equal(t, []byte{0, 1, 0}, got.Body)
				stop()
				return driver.Accept
			}))
			require.False(t, errors.Is(ctx.Err(), context.DeadlineExceeded), "no message came")
			require.NoError(t, k.Close(ctx))
		})
	}
}
