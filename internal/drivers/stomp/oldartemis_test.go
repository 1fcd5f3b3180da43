package stomp

import (
	"testing"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestTopicOnOldArtemis: on Artemis before 2.33 a consumer of a topic has a connection of its own.
func TestTopicOnOldArtemis(t *testing.T) {
	const greeting = "CONNECTED\nversion:1.2\nserver:ActiveMQ-Artemis/2.19.0 x\nheart-beat:0,0\n\n\x00"
	b := newFakeBroker(t)
	d, opened := b.open(), make(chan error, 1)
	go func() {
		_, err := d.Consumer(t.Context(), driver.ConsumerSpec{Destination: driver.Destination{Kind: driver.Topic, Name: "t"}})
		opened <- err
	}()
	b.accept(greeting)
	shared := b.conn
	b.accept(greeting)
	require.NoError(t, shared.Close()) // no other consumer uses it
	b.receipt(b.next(frame.SUBSCRIBE).Header.Get(frame.Receipt))
	require.NoError(t, <-opened)
}

// TestTransactionNames: Artemis 2.19 refuses a transaction with the name of an open one, also of another connection.
func TestTransactionNames(t *testing.T) {
	a, b := newTransactions(receiptOfCommit, nil), newTransactions(receiptOfCommit, nil)
	require.NotEqual(t, string(a.begin(nil)), string(b.begin(nil)))
}
