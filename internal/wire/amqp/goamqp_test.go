package amqp_test

import (
	"context"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// TestGoAMQPOpens: each side understands the other's connection, session and login.
func TestGoAMQPOpens(t *testing.T) {
	f := peer()
	f.mechanisms = []string{"EXTERNAL", "PLAIN"}
	f.open = *frames[1].frame.(*amqp.Open)
	f.begin = *frames[3].frame.(*amqp.Begin)
	talk(t, f, &client.ConnOptions{
		ContainerID: "go", HostName: "its host", IdleTimeout: 90 * time.Second, MaxFrameSize: 12345, MaxSessions: 17,
		Properties: map[string]any{"product": "test"}, SASLType: client.SASLTypePlain("user", "secret"),
	}, func(ctx context.Context, c *client.Conn) {
		assert.Equal(t, map[string]any{"product": "perfmq", "version": "2"}, c.Properties())
		musttest.Get(c.NewSession(ctx, nil))(t)
	})
	some := amqp.Some[uint32]
	require.Len(t, f.got, 4)
	assert.Equal(t, &amqp.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00user\x00secret")}, f.got[0])
	assert.Equal(t, &amqp.Open{
		ContainerID: "go", Hostname: "its host", MaxFrameSize: some(12345), ChannelMax: amqp.Some[uint16](17), IdleTimeout: 45000,
		Properties: fields("product", "test"),
	}, f.got[1])
	assert.Equal(t, uint32(0), f.got[2].(*amqp.Begin).NextOutgoingID)
	assert.Equal(t, &amqp.Close{}, f.got[3])
}

// TestGoAMQPAttaches: links with all that they may have.
func TestGoAMQPAttaches(t *testing.T) {
	f := peer()
	f.attach = func(a *amqp.Attach) amqp.Attach {
		answer := echo(a)
		answer.MaxMessageSize, answer.Properties = 1<<40, fields("its", "link")
		if answer.Source.Dynamic {
			answer.Source.Address = amqp.Some("made for you")
		}
		if answer.Target.Dynamic {
			answer.Target.Address = amqp.Some("made as well")
		}
		return answer
	}
	settled := client.SenderSettleModeSettled
	talk(t, f, nil, func(ctx context.Context, c *client.Conn) {
		s := musttest.Get(c.NewSession(ctx, nil))(t)
		r, err := s.NewReceiver(ctx, "topic", &client.ReceiverOptions{
			Name: "sub|global", Credit: 7, Capabilities: []string{"a"}, DesiredCapabilities: []string{"d"}, Durability: client.DurabilityConfiguration,
			ExpiryPolicy: client.ExpiryPolicyNever, ExpiryTimeout: 3, Filters: []client.LinkFilter{client.NewSelectorFilter("colour = 'red'")},
			MaxMessageSize: 1 << 33, Properties: map[string]any{"k": "v"}, RequestedSenderSettleMode: &settled,
			SourceCapabilities: []string{"topic", "shared"}, SourceDurability: client.DurabilityUnsettledState,
			SourceExpiryPolicy: client.ExpiryPolicyConnectionClose, SourceExpiryTimeout: 9, TargetAddress: "here",
		})
		require.NoError(t, err)
		assert.Equal(t, "sub|global", r.LinkName())
		assert.Equal(t, "topic", r.Address())
		assert.Equal(t, "colour = 'red'", r.LinkSourceFilterValue(amqp.SelectorFilterName))
		assert.Equal(t, map[string]any{"its": "link"}, r.Properties())
		l, err := s.NewSender(ctx, "queue", &client.SenderOptions{
			Name: "sender", Capabilities: []string{"a", "b"}, DesiredCapabilities: []string{"d"}, Durability: client.DurabilityUnsettledState,
			ExpiryPolicy: client.ExpiryPolicyLinkDetach, ExpiryTimeout: 300, Properties: map[string]any{"k": "v"},
			SettlementMode: &settled, SourceAddress: "there", TargetCapabilities: []string{"queue"},
			TargetDurability: client.DurabilityConfiguration, TargetExpiryPolicy: client.ExpiryPolicyNever, TargetExpiryTimeout: 5,
		})
		require.NoError(t, err)
		assert.Equal(t, uint64(1<<40), l.MaxMessageSize())
		assert.Equal(t, map[string]any{"its": "link"}, l.Properties())
		dynamic := musttest.Get(s.NewReceiver(ctx, "", &client.ReceiverOptions{DynamicAddress: true}))(t)
		assert.Equal(t, "made for you", dynamic.Address())
		sender := musttest.Get(s.NewSender(ctx, "", &client.SenderOptions{DynamicAddress: true}))(t)
		assert.Equal(t, "made as well", sender.Address())
	})
	links := of[*amqp.Attach](f)
	require.Len(t, links, 4)
	assert.Equal(t, &amqp.Attach{
		Name: "sub|global", Handle: 0, Role: amqp.RoleReceiver, SenderSettleMode: amqp.SenderSettled,
		Source: amqp.Terminus{
			Kind: amqp.DescSource, Address: amqp.Some("topic"), Durable: amqp.DurableUnsettledState, ExpiryPolicy: amqp.ExpireConnectionClose,
			Timeout: 9, Filters: []amqp.Filter{amqp.SelectorFilter("colour = 'red'")}, Capabilities: []string{"topic", "shared"},
		},
		Target: amqp.Terminus{
			Kind: amqp.DescTarget, Address: amqp.Some("here"), Durable: amqp.DurableConfiguration, ExpiryPolicy: amqp.ExpireNever, Timeout: 3,
			Capabilities: []string{"a"},
		},
		MaxMessageSize: 1 << 33, Properties: fields("k", "v"),
	}, links[0])
	assert.Equal(t, &amqp.Attach{
		Name: "sender", Handle: 1, Role: amqp.RoleSender, SenderSettleMode: amqp.SenderSettled,
		Source: amqp.Terminus{
			Kind: amqp.DescSource, Address: amqp.Some("there"), Durable: amqp.DurableUnsettledState, ExpiryPolicy: amqp.ExpireLinkDetach,
			Timeout: 300, Capabilities: []string{"a", "b"},
		},
		Target: amqp.Terminus{
			Kind: amqp.DescTarget, Address: amqp.Some("queue"), Durable: amqp.DurableConfiguration, ExpiryPolicy: amqp.ExpireNever, Timeout: 5,
			Capabilities: []string{"queue"},
		},
		InitialDeliveryCount: amqp.Some[uint32](0), Properties: fields("k", "v"),
	}, links[1])
	assert.True(t, links[2].Source.Dynamic)
	assert.True(t, links[3].Target.Dynamic)
}

// TestGoAMQPReceives: messages of all kinds, in one frame and in many; and the delivery states with which go-amqp
// settles them.
func TestGoAMQPReceives(t *testing.T) {
	list := messages(t)
	f := peer()
	f.flow = func(w *amqp.Flow) (out []byte) {
		if !w.Handle.OK || w.LinkCredit.V < 100 {
			return nil
		}
		f.flow = nil
		for i, m := range list {
			out = append(out, deliver(w.Handle.V, uint32(i), m.bytes, []int{100, 1000}[i%2])...)
		}
		return out
	}
	settlements := make(chan amqp.State, len(list))
	f.settle = func(d *amqp.Disposition) {
		s, err := amqp.ParseState(d.State)
		assert.NoError(t, err)
		settlements <- s
	}
	talk(t, f, nil, func(ctx context.Context, c *client.Conn) {
		s := musttest.Get(c.NewSession(ctx, nil))(t)
		r := musttest.Get(s.NewReceiver(ctx, "Q", &client.ReceiverOptions{Credit: 100}))(t)
		reason := &client.Error{Condition: "perfmq:test", Description: "no", Info: map[string]any{"k": "v"}}
		answers := []func(m *client.Message) error{
			func(m *client.Message) error { return r.AcceptMessage(ctx, m) },
			func(m *client.Message) error { return r.RejectMessage(ctx, m, reason) },
			func(m *client.Message) error { return r.RejectMessage(ctx, m, nil) },
			func(m *client.Message) error { return r.ReleaseMessage(ctx, m) },
			func(m *client.Message) error {
				return r.ModifyMessage(ctx, m, &client.ModifyMessageOptions{
					DeliveryFailed: true, UndeliverableHere: true, Annotations: client.Annotations{"x-opt-a": "b"},
				})
			},
			func(m *client.Message) error { return r.ModifyMessage(ctx, m, nil) },
		}
		info := pairs(t, amqp.Property{Key: "k", Value: "v"}) // go-amqp writes strings where symbols belong
		states := []amqp.State{
			{Kind: amqp.DescAccepted},
			{Kind: amqp.DescRejected, Error: &amqp.Error{Condition: "perfmq:test", Description: "no", Info: info}},
			{Kind: amqp.DescRejected},
			{Kind: amqp.DescReleased},
			{Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: fields("x-opt-a", "b")},
			{Kind: amqp.DescModified},
		}
		for i, m := range list {
			got, err := r.Receive(ctx, nil)
			require.NoError(t, err, m.name)
			sameMessage(t, m.bytes, got)
			assert.Equal(t, []byte{byte(i)}, got.DeliveryTag)
			require.NoError(t, answers[i%len(answers)](got))
			assert.Equal(t, states[i%len(states)], <-settlements, m.name)
		}
	})
}

// TestGoAMQPSends: messages of all kinds, and the delivery states in the answers to them.
func TestGoAMQPSends(t *testing.T) {
	f := peer()
	f.open.MaxFrameSize = amqp.Some[uint32](512)
	f.credit = 100
	states := []amqp.State{
		{Kind: amqp.DescAccepted},
		{Kind: amqp.DescRejected, Error: failure},
		{Kind: amqp.DescReleased},
		{Kind: amqp.DescModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: fields("x-opt-a", "b")},
	}
	var sent [][]byte
	var partial []byte
	f.transfer = func(tr *amqp.Transfer, payload []byte) []frame {
		if partial = append(partial, payload...); tr.More {
			return nil
		}
		n := uint32(len(sent))
		sent, partial = append(sent, partial), nil
		return []frame{&amqp.Disposition{Role: amqp.RoleReceiver, First: n, Last: n, Settled: true, State: state(states[n%4])}}
	}
	want := []*client.Message{}
	talk(t, f, nil, func(ctx context.Context, c *client.Conn) {
		s := musttest.Get(c.NewSession(ctx, nil))(t)
		l := musttest.Get(s.NewSender(ctx, "Q", nil))(t)
		for i, g := range messages(t) {
			m, same := &client.Message{}, &client.Message{}
			require.NoError(t, m.UnmarshalBinary(g.bytes))
			require.NoError(t, same.UnmarshalBinary(g.bytes))
			want = append(want, same)
			if m.Value == nil && g.name == "null value" {
				m.Value = client.Null{} // nil would be no body, which go-amqp never sends
			}
			receipt, err := l.SendWithReceipt(ctx, m, nil)
			require.NoError(t, err, g.name)
			got := musttest.Get(receipt.Wait(ctx))(t)
			switch s := got.(type) {
			case *client.StateAccepted:
				assert.Equal(t, 0, i%4)
			case *client.StateRejected:
				assert.Equal(t, 1, i%4)
				assert.Equal(t, &client.Error{
					Condition: client.ErrCondInvalidField, Description: "there is one already", Info: map[string]any{"invalid-field": "container-id"},
				}, s.Error)
			case *client.StateReleased:
				assert.Equal(t, 2, i%4)
			case *client.StateModified:
				assert.Equal(t, 3, i%4)
				assert.True(t, s.DeliveryFailed)
				assert.True(t, s.UndeliverableHere)
				assert.Equal(t, client.Annotations{"x-opt-a": "b"}, s.MessageAnnotations)
			default:
				t.Errorf("%T", got)
			}
		}
	})
	require.Len(t, sent, len(want))
	for i := range sent {
		sameMessage(t, sent[i], want[i])
	}
}
