package amqp_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// TestAppendAccepted: it is the disposition that it stands for.
func TestAppendAccepted(t *testing.T) {
	for _, c := range []amqp.Disposition{
		{Role: amqp.RoleReceiver, First: 0, Last: 0, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 255, Last: 256, Settled: true, State: []byte(amqp.Accepted)},
		{Role: amqp.RoleReceiver, First: 0xffffffff, Last: 3, Settled: true, State: []byte(amqp.Accepted)},
	} {
		b := amqp.AppendAccepted([]byte{1, 2, 3}, channel, c.First, c.Last, c.Settled)[3:]
		r := readerOf(b, 512, 512)
		f := musttest.Get(r.Next())(t)
		assert.Equal(t, uint16(channel), f.Channel)
		p := musttest.Get(amqp.ParseBody(f.Body))(t)
		var got amqp.Disposition
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, c, got)
		_, err := r.Next()
		require.Error(t, err, "there is no more")
	}
}

// TestDecodeForgets: a struct that is used again keeps nothing of the last time.
func TestDecodeForgets(t *testing.T) {
	for _, full := range frames {
		for _, least := range frames {
			if !reflect.DeepEqual(blankLike(full.frame), blankLike(least.frame)) {
				continue
			}
			used := blankLike(full.frame)
			for _, f := range []frame{full.frame, least.frame} {
				p := musttest.Get(amqp.ParseBody(encode(nil, f)[amqp.FrameHeaderSize:]))(t)
				require.NoError(t, used.Decode(&p.Fields))
			}
			assert.Equal(t, least.frame, used)
		}
	}
}

func blankLike(f frame) frame {
	if step, ok := f.(*amqp.SASL); ok {
		return &amqp.SASL{Kind: step.Kind}
	}
	return reflect.New(reflect.TypeOf(f).Elem()).Interface().(frame)
}
