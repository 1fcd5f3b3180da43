package amqp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// Message annotations are in the section before the properties, and go with each message.
func TestTemplateWithAnnotations(t *testing.T) {
	tmpl, err := amqp.NewTemplate(&amqp.Content{
		Annotations: []amqp.Property{{Key: "x-opt-delivery-delay", Value: int64(1500)}, {Key: "other", Value: "text"}},
		Properties:  amqp.Properties{GroupID: []byte("g")}, Application: []amqp.Property{{Key: "a", Value: "b"}}, TimeKey: "time", IDKey: "id",
		Body: []byte("body"),
	})
	require.NoError(t, err)
	for _, id := range []string{"", "1-2"} {
		var m amqp.Message
		require.NoError(t, m.Decode(tmpl.Append(nil, 7, []byte(id))))
		delay := amqp.Lookup(m.MessageAnnotations, "x-opt-delivery-delay")
		millis, ok := delay.Integer()
		require.True(t, ok)
		require.EqualValues(t, 1500, millis)
		other := amqp.Lookup(m.MessageAnnotations, "other")
		require.Equal(t, "text", string(other.Str()))
		require.NotEmpty(t, m.Properties)
		require.Equal(t, "body", string(m.Body))
	}
	_, err = amqp.NewTemplate(&amqp.Content{Annotations: []amqp.Property{{Key: "a", Value: struct{}{}}}})
	require.ErrorIs(t, err, amqp.ErrEncode)
}
