package amqp_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// sameMessage checks that go-amqp has read a message as we read it.
func sameMessage(t testing.TB, b []byte, got *client.Message) {
	t.Helper()
	var m amqp.Message
	require.NoError(t, m.Decode(b))
	header := client.MessageHeader{}
	if got.Header != nil {
		header = *got.Header
	} else {
		header.Priority = amqp.NormalPriority
	}
	assert.Equal(t, header.Durable, m.Header.Durable)
	assert.Equal(t, header.Priority, m.Header.Priority.Or(amqp.NormalPriority))
	assert.Equal(t, header.TTL, time.Duration(m.Header.TTL.V)*time.Millisecond)
	assert.Equal(t, header.FirstAcquirer, m.Header.FirstAcquirer)
	assert.Equal(t, header.DeliveryCount, m.Header.DeliveryCount)
	sameAnnotations(t, m.MessageAnnotations, got.Annotations)
	sameProperties(t, m.Properties, got.Properties)
	want := map[string]any{}
	pairs := pairsOf(m.ApplicationProperties)
	for pairs.More() {
		key, _ := pairs.Text()
		want[string(key)] = pairs.Scalar()
	}
	require.NoError(t, pairs.Err())
	theirs := map[string]any{}
	for key, value := range got.ApplicationProperties {
		theirs[key] = ours(value)
	}
	assert.Equal(t, want, theirs)
	sameBody(t, &m, got)
}

func pairsOf(b []byte) amqp.Decoder {
	if b == nil {
		return amqp.Decoder{}
	}
	d := amqp.NewDecoder(b)
	pairs, _ := d.Map()
	return pairs
}

func sameAnnotations(t testing.TB, b []byte, got client.Annotations) {
	t.Helper()
	want, theirs := map[any]any{}, map[any]any{}
	pairs := pairsOf(b)
	for pairs.More() {
		key := pairs.Scalar()
		want[key] = pairs.Scalar()
	}
	require.NoError(t, pairs.Err())
	for key, value := range got {
		theirs[ours(key)] = ours(value)
	}
	assert.Equal(t, want, theirs)
}

func sameProperties(t testing.TB, b []byte, got *client.MessageProperties) {
	t.Helper()
	var p amqp.Properties
	require.NoError(t, p.Decode(b))
	if got == nil {
		assert.Nil(t, b)
		return
	}
	id := func(raw []byte, got any) {
		if raw == nil {
			assert.Nil(t, got)
			return
		}
		d := amqp.NewDecoder(raw)
		assert.Equal(t, d.Scalar(), ours(got))
	}
	text := func(raw []byte, got *string) {
		if raw == nil {
			assert.Nil(t, got)
		} else if assert.NotNil(t, got) {
			assert.Equal(t, string(raw), *got)
		}
	}
	id(p.MessageID, got.MessageID)
	id(p.CorrelationID, got.CorrelationID)
	text(p.To, got.To)
	text(p.Subject, got.Subject)
	text(p.ReplyTo, got.ReplyTo)
	text(p.GroupID, got.GroupID)
	if assert.Equal(t, p.AbsoluteExpiryTime.OK, got.AbsoluteExpiryTime != nil) && p.AbsoluteExpiryTime.OK {
		assert.Equal(t, p.AbsoluteExpiryTime.V, got.AbsoluteExpiryTime.UnixMilli())
	}
}

func sameBody(t testing.TB, m *amqp.Message, got *client.Message) {
	t.Helper()
	switch m.BodyKind {
	case amqp.DescData:
		assert.Len(t, got.Data, m.BodySections)
		var all []byte
		for _, b := range got.Data {
			all = append(all, b...)
		}
		assert.Equal(t, string(all), string(m.Payload(nil)))
		assert.Equal(t, string(got.Data[0]), string(m.Body))
	case amqp.DescSequence:
		assert.Len(t, got.Sequence, m.BodySections)
		d := amqp.NewDecoder(m.Body)
		in, _ := d.List()
		for _, v := range got.Sequence[0] {
			assert.Equal(t, ours(v), in.Scalar())
		}
		assert.False(t, in.More())
	case amqp.DescValue:
		d := amqp.NewDecoder(m.Body)
		assert.Equal(t, d.Scalar(), ours(got.Value))
		switch v := got.Value.(type) {
		case string:
			assert.Equal(t, v, string(m.Payload(nil)))
		case []byte:
			assert.Equal(t, string(v), string(m.Payload(nil)))
		default:
			assert.Nil(t, m.Payload(nil))
		}
	default:
		assert.Empty(t, got.Data)
		assert.Empty(t, got.Sequence)
		assert.Nil(t, got.Value)
	}
}

// ours returns a value of go-amqp as our decoder does.
func ours(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UnixMilli()
	case client.UUID:
		return v.String()
	case uint64:
		if v > math.MaxInt64 {
			return v
		}
	}
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return n.Int()
	case n.CanUint():
		return int64(n.Uint())
	case n.CanFloat():
		return n.Float()
	}
	return v
}
