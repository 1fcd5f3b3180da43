package rocketmq

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPullCommits: each pull of a group says how far it is, for brokers that take no more before they know.
func TestPullCommits(t *testing.T) {
	for name, test := range map[string]struct {
		model, consume string
		consumed, flag int64
	}{
		"push":         {clustering, consumePush, 7, 3},
		"pull":         {clustering, consumePull, 7, 1},
		"at the start": {clustering, consumePush, 0, 2},
		"broadcasting": {broadcasting, consumePush, 7, 2},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			require.NoError(t, theirs.SetDeadline(time.Now().Add(10*time.Second)))
			conn := newConn("broker", ours, nil)
			defer func() {
				require.NoError(t, theirs.Close())
				conn.wg.Wait()
			}()
			c := &consumer{
				membership: membership{group: "G"}, opts: &Options{Model: test.model, Consume: test.consume, PullBatch: 32},
				sign: newSigner("", ""), arrived: make(chan struct{}, 1),
			}
			q := &queue{queueID: queueID{"T", "b", 2}, conn: conn, next: 9}
			q.consumed.Store(test.consumed)
			require.NoError(t, c.pull(q, 0))

			var size [4]byte
			_, err := io.ReadFull(theirs, size[:])
			require.NoError(t, err)
			frame := make([]byte, binary.BigEndian.Uint32(size[:]))
			_, err = io.ReadFull(theirs, frame)
			require.NoError(t, err)
			var r reply
			require.NoError(t, r.parse(frame))
			for field, want := range map[string]int64{"commitOffset": test.consumed, "sysFlag": test.flag, "queueOffset": 9, "queueId": 2} {
				n, ok := r.number(field)
				require.True(t, ok, field)
				require.Equal(t, want, n, field)
			}
		})
	}
}
