package stomp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// messages writes those from..to, together: a driver that has read some and sees that no more have come does not wait.
func (b *fakeBroker) messages(from, to int) {
	b.t.Helper()
	var text strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&text, "MESSAGE\nsubscription:0\nmessage-id:m%d\nack:a%d\ntime:%d\n\nbody\x00", i, i, i)
	}
	b.write(text.String())
}

// transaction reads a transaction of acknowledgements and returns the receipt that its commit asks for.
func (b *fakeBroker) transaction(acks ...string) (receipt string) {
	b.t.Helper()
	tx := b.next(frame.BEGIN).Header.Get(frame.Transaction)
	require.NotEmpty(b.t, tx)
	for _, ack := range acks {
		f := b.next(frame.ACK)
		require.Equal(b.t, ack, f.Header.Get(frame.Id))
		require.Equal(b.t, tx, f.Header.Get(frame.Transaction))
	}
	f := b.next(frame.COMMIT)
	require.Equal(b.t, tx, f.Header.Get(frame.Transaction))
	require.NotEmpty(b.t, f.Header.Get(frame.Receipt))
	return f.Header.Get(frame.Receipt)
}

// told collects the arguments of Commits.
type told struct {
	mu   sync.Mutex
	list []bool
	took []time.Duration
}

func (c *told) add(took time.Duration, confirmed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.took = append(c.list, confirmed), append(c.took, took)
}

func (c *told) all() []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bool{}, c.list...)
}

// TestReceiveInTransactions: so many acknowledgements to a transaction; one that is not full is committed when nothing
// comes, and when Run ends, which waits for the answer.
func TestReceiveInTransactions(t *testing.T) {
	b, commits := newFakeBroker(t), &told{}
	k, subscribe := b.consumer(b.open(), connectedClassic, driver.ConsumerSpec{TransactionSize: 600, Commits: commits.add})
	require.Equal(t, "1200", subscribe.Header.Get("activemq.prefetchSize"), "room for what a transaction holds")
	require.Equal(t, ackIndividual, subscribe.Header.Get(frame.Ack))
	k.(*consumer).tx.size = 2
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, got := make(chan error, 1), 0
	go func() {
		ended <- k.Run(ctx, func(*driver.Delivery) driver.Verdict {
			if got++; got == 6 {
				stop()
			}
			return driver.Accept
		})
	}()
	b.messages(0, 4)
	first, second := b.transaction("a0", "a1"), b.transaction("a2", "a3")
	third := b.transaction("a4") // nothing more has come
	for _, receipt := range []string{third, first, first, second, "r7.1", "r0.99"} {
		b.receipt(receipt) // in any order, and receipts that belong to no transaction
	}
	b.messages(5, 5)
	last := b.transaction("a5")
	select {
	case err := <-ended:
		require.Fail(t, "Run did not wait for the last commit", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.Equal(t, []bool{true, true, true}, commits.all())
	b.receipt(last)
	require.NoError(t, <-ended)
	require.Equal(t, []bool{true, true, true, true}, commits.all())
	for _, took := range commits.took {
		require.Positive(t, took)
	}
}

// TestReceiveCommitFails: a refused commit, or one without an answer when the connection ends, is reported and ends
// Run.
func TestReceiveCommitFails(t *testing.T) {
	for name, refuse := range map[string]bool{"refused": true, "connection lost": false} {
		t.Run(name, func(t *testing.T) {
			b, commits := newFakeBroker(t), &told{}
			k, _ := b.consumer(b.open(), connectedClassic, driver.ConsumerSpec{TransactionSize: 2, Commits: commits.add})
			ended := make(chan error, 1)
			go func() { ended <- k.Run(t.Context(), func(*driver.Delivery) driver.Verdict { return driver.Accept }) }()
			b.messages(0, 3)
			first, second := b.transaction("a0", "a1"), b.transaction("a2", "a3")
			b.receipt(first)
			if refuse {
				b.write("ERROR\nreceipt-id:" + second + "\nmessage:the disk is on fire\n\n\x00")
			} else {
				require.NoError(t, b.conn.Close())
			}
			err := <-ended
			require.ErrorContains(t, err, "receive from queue://q: ")
			if refuse {
				require.ErrorContains(t, err, "the disk is on fire")
			} else {
				require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%v", err)
			}
			require.Equal(t, []bool{true, false}, commits.all())
		})
	}
}
