package amqp_test

import (
	"errors"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestDeletedQueue: what is sent to a queue that is no more is not confirmed, and its link ends.
func TestDeletedQueue(t *testing.T) {
	r := start(t, store.Config{}, amqp.Options{})
	s := r.session()
	in := r.receiver(s, "", &client.ReceiverOptions{DynamicAddress: true})
	out, other := r.sender(s, in.Address(), nil), r.sender(s, "Q", nil)
	r.send(out, "x")
	require.NoError(t, in.Close(soon(t)))
	require.Eventually(t, func() bool { return r.store.Find(queue(in.Address())) == nil }, timeout, time.Millisecond)
	err := out.Send(soon(t), client.NewMessage([]byte("y")), nil)
	assert.Equal(t, client.ErrCondResourceDeleted, condition(err), "%v", err)
	require.Eventually(t, func() bool {
		var ended *client.LinkError
		err := out.Send(soon(t), client.NewMessage([]byte("z")), nil)
		return assert.ErrorAs(t, err, &ended) && ended.RemoteErr != nil && ended.RemoteErr.Condition == client.ErrCondResourceDeleted
	}, timeout, time.Millisecond)
	assert.Nil(t, r.store.Find(queue(in.Address())), "it did not come back")
	r.send(other, "z")

	t.Run("anonymous", func(t *testing.T) { // it names queues, which come into being by that
		to := "A"
		m := client.NewMessage([]byte("x"))
		m.Properties = &client.MessageProperties{To: &to}
		out := r.sender(s, "", nil)
		require.NoError(t, out.Send(soon(t), m, nil))
		require.True(t, r.store.Delete(queue("A")))
		require.NoError(t, out.Send(soon(t), m, nil))
		assert.EqualValues(t, 1, r.store.Queue("A").Stats().Stored)
	})
}

// TestDeletedWhileFull: who waits for room in a queue learns that it is no more, and so does its neighbour.
func TestDeletedWhileFull(t *testing.T) {
	r := start(t, store.Config{Limit: 1}, amqp.Options{})
	s := r.session()
	waiting := []*client.Sender{r.sender(s, "Q", nil), r.sender(s, "Q", nil)}
	r.send(waiting[0], "x")
	ended := make(chan *client.LinkError, len(waiting))
	for _, l := range waiting {
		go func() {
			var link *client.LinkError
			var err error
			for i := 0; i < 10 && !errors.As(err, &link); i++ { // one may be under way, and is refused
				err = l.Send(soon(t), client.NewMessage([]byte("y")), nil)
			}
			ended <- link
		}()
	}
	r.stats(queue("Q"), func(d store.DestinationStats) bool { return d.Queues[0].Stored >= 2 })
	require.True(t, r.store.Delete(queue("Q")))
	for range waiting {
		link := <-ended
		require.NotNil(t, link)
		require.NotNil(t, link.RemoteErr)
		assert.Equal(t, client.ErrCondResourceDeleted, link.RemoteErr.Condition)
	}
	r.send(r.sender(s, "R", nil), "z")
}
