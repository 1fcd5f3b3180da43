//go:build unix

package rocketmq_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

// batchOf returns the body of a batch.
func batchOf(bodies ...string) (b []byte) {
	for _, body := range bodies {
		b = binary.BigEndian.AppendUint32(b, uint32(5*4+len(body)+2))
		b = append(b, make([]byte, 3*4)...) // magic, checksum, flag
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		b = append(append(b, body...), 0, 0)
	}
	return b
}

// TestFull: the fault of being full holds senders up or refuses their messages, in whatever requests they come.
func TestFull(t *testing.T) {
	const half = "TRAN_MSG\x01true\x02PGROUP\x01p\x02"
	commit := func(c *client) {
		c.post(37, 0, nil, "producerGroup", "p", "tranStateTableOffset", "1", "commitLogOffset", "1", "commitOrRollback", "8", "msgId", "x")
	}
	batch := func(c *client) { c.post(320, 0, batchOf("a", "b", "c"), sendFields("T")...) }
	oneWay := func(c *client) { c.post(310, 2, []byte("a"), sendFields("T")...) }
	for _, c := range []struct {
		name    string
		reject  bool
		ask     func(c *client)
		answer  int // -1: none
		refused uint64
		then    func(c *client) // when it is not full any more
	}{
		{"batch", false, batch, -1, 0, (*client).good},
		{"batch", true, batch, 2, 3, nil},
		{"one-way", false, oneWay, -1, 0, nil},
		{"one-way", true, oneWay, -1, 1, nil},
		{"half message", false, commit, 0, 0, nil},
		{"half message", true, func(c *client) {
			commit(c)
			code, _ := c.answer()
			require.Equal(c.t, 2, code)
			commit(c) // is refused again
		}, 2, 2, func(c *client) { commit(c); c.good() }},
	} {
		policy := map[bool]string{false: "block", true: "reject"}[c.reject]
		t.Run(c.name+" "+policy, func(t *testing.T) {
			b := start(t, store.Config{Reject: c.reject}, rocketmq.Options{Queues: 1})
			k := dial(t, b)
			require.Zero(t, k.send("T", "x", "i", half))
			b.store.SetFaults(store.Faults{Full: true})
			c.ask(k)
			if c.answer > 0 { // of a commit that is stored it comes when there is room
				code, _ := k.answer()
				require.Equal(t, c.answer, code)
			}
			refused := func() (n uint64) {
				for _, d := range b.store.Stats() {
					n += d.Refused
				}
				return n
			}
			require.Eventually(t, func() bool { return refused() == c.refused }, patience, time.Millisecond)
			if c.answer < 0 {
				k.silent()
			}
			b.store.SetFaults(store.Faults{})
			if c.answer == 0 {
				k.good()
			}
			if c.then != nil {
				c.then(k)
			}
			require.Zero(t, k.send("T", "y"))
			assert.Equal(t, c.refused, refused())
		})
	}
}

// good checks that the next answer is that all went well.
func (c *client) good() {
	c.t.Helper()
	code, _ := c.answer()
	require.Zero(c.t, code)
}

// TestTooLargeMessages: a message that is too large is refused with an answer, up to the limit of frames; the
// connection stays open.
func TestTooLargeMessages(t *testing.T) {
	t.Parallel()
	b := start(t, store.Config{}, rocketmq.Options{Queues: 1})
	c := dial(t, b)
	const most = 4 << 20
	for _, size := range []int{most + 1, 16<<20 - 1000} {
		c.post(310, 0, make([]byte, size), sendFields("T")...)
		frame := musttest.Get(readFrame(c.conn, make([]byte, 1<<16)))(t)
		assert.EqualValues(t, 13, binary.BigEndian.Uint16(frame[4:]))
		assert.Contains(t, string(frame), "the message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, ")
	}
	require.Zero(t, c.send("T", string(make([]byte, most))))

	large := dial(t, b)
	_, err := large.conn.Write(binary.BigEndian.AppendUint32(nil, 16<<20-4)) // 16 MiB, the length included
	require.NoError(t, err)
	large.silent()
	larger := dial(t, b)
	_, err = larger.conn.Write(binary.BigEndian.AppendUint32(nil, 16<<20-3))
	require.NoError(t, err)
	require.NoError(t, larger.conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = larger.conn.Read(make([]byte, 1))
	require.Error(t, err)
	var timeout net.Error
	assert.False(t, errorAsTimeout(err, &timeout), "it was to end")
}
