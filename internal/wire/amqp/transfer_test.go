package amqp_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		f, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, uint16(channel), f.Channel)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		var got amqp.Disposition
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, c, got)
		_, err = r.Next()
		require.Error(t, err, "there is no more")
	}
}

// TestTransferOffsets: fields that are changed in place are read with their new values.
func TestTransferOffsets(t *testing.T) {
	for _, s := range [][]byte{nil, []byte(amqp.Accepted), bytesOf(128)} {
		tr := amqp.Transfer{Handle: 1, DeliveryID: amqp.Some[uint32](2), DeliveryTag: bytesOf(32), MessageFormat: amqp.Some[uint32](0), State: s}
		b := tr.AppendHead(nil, 9)
		if s == nil {
			assert.Equal(t, amqp.CodeFalse, b[len(b)-1], "where More is")
			tr.More = true
			b[len(b)-1] = amqp.CodeTrue
		}
		copy(b[amqp.TransferDeliveryIDAt:], []byte{0xff, 0xff, 0xff, 0xff})
		copy(b[amqp.TransferTagAt:], "another tag, of the same 32 byte")
		amqp.EndFrame(b, 0)
		f, err := readerOf(b, 512, 512).Next()
		require.NoError(t, err)
		assert.Equal(t, uint16(9), f.Channel)
		p, err := amqp.ParseBody(f.Body)
		require.NoError(t, err)
		want := tr
		want.DeliveryID, want.DeliveryTag = amqp.Some[uint32](0xffffffff), []byte("another tag, of the same 32 byte")
		var got amqp.Transfer
		if len(s) == 128 { // no value, but as long as one may be
			require.Error(t, got.Decode(&p.Fields))
			continue
		}
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, want, got)
	}
}

func bytesOf(n int) []byte { return make([]byte, n) }

// TestDecodeForgets: a struct that is used again keeps nothing of the last time.
func TestDecodeForgets(t *testing.T) {
	for _, full := range frames {
		for _, least := range frames {
			if reflect.TypeOf(full.frame) != reflect.TypeOf(least.frame) {
				continue
			}
			used := blankLike(full.frame)
			for _, f := range []frame{full.frame, least.frame} {
				p, err := amqp.ParseBody(encode(nil, f)[amqp.FrameHeaderSize:])
				require.NoError(t, err)
				require.NoError(t, used.Decode(&p.Fields))
			}
			assert.Equal(t, least.frame, used)
		}
	}
}

func blankLike(f frame) frame {
	return reflect.New(reflect.TypeOf(f).Elem()).Interface().(frame)
}
