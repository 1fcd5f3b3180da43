package amqp_test

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

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
