package broker

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestNobodyWaits: clients that have gone while they wait for room do not wait, and all that they had
// sent is stored. Only Linux reports their end behind unread input.
func TestNobodyWaits(t *testing.T) {
	b := start(t, Config{Faults: store.Faults{Full: true}})
	ahead, oneWay := dialSTOMP(t, b), dialRaw(t, b, RocketMQ)
	ahead.say(strings.Repeat("SEND\ndestination:/queue/Q\n\nx\x00", 5000)) // more than are read on
	frame := string(sendRemoting(t, 1, "T", "x"))
	_, err := io.WriteString(oneWay, strings.ReplaceAll(frame, `"flag":0,"language`, `"flag":2,"language`)+frame)
	require.NoError(t, err)
	stored := func() uint64 { return b.Store().Queue("Q").Stats().Stored }
	require.Eventually(t, func() bool { return stored() > 4000 && open(b) == 2 }, patience, time.Millisecond)
	require.NoError(t, ahead.conn.Close())
	require.NoError(t, oneWay.Close())
	gone(t, b)
	assert.EqualValues(t, 5000, stored())
	assert.EqualValues(t, 5002, b.Stats().Total.Sent)
}
