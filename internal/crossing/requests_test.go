//go:build unix

package crossing

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/verify"
)

// TestRequests: a requester and a responder in two runs, over AMQP, on real brokers, with a dynamic queue and with one
// shared by several requesters. Each request is answered once, by the numbers of requests and replies of both sides.
func TestRequests(t *testing.T) {
	for broker, urls := range bothBrokers(t) {
		for name, more := range map[string][]string{
			"dynamic": nil, "shared": {"--reply-to", "queue://replies-" + broker, "--producers", "3"},
		} {
			t.Run(broker+"/"+name, func(t *testing.T) {
				dir, service := t.TempDir(), "queue://service-"+broker+"-"+name
				var responder summary
				var both sync.WaitGroup
				both.Go(func() {
					responder = perfmq(t, "amqp", "responder", "--url", urls["amqp"], "--user", "", "--message-count", "600",
						"--consumers", "2", "--verify-file", filepath.Join(dir, "responder"), service)
				})
				requester := perfmq(t, append([]string{
					"amqp", "requester", "--url", urls["amqp"], "--rate", "300", "--message-count", "600", "--max-pending", "0",
					"--reply-timeout", patience.String(), "--verify-file", filepath.Join(dir, "requester"), service,
				}, more...)...)
				both.Wait()
				require.Equal(t, []uint64{600, 600, 600}, []uint64{requester.TotalSent, requester.TotalCompleted, requester.Replies})
				require.Zero(t, requester.RequestsTimedOut+requester.RepliesForeign+requester.RepliesDuplicated)
				require.EqualValues(t, 600, requester.TotalRoundTrip.Count)
				require.Equal(t, []uint64{600, 600}, []uint64{responder.TotalReceived, responder.Answered})
				v := verify.Judge(musttest.Get(verify.ReadFile(filepath.Join(dir, "responder")))(t), musttest.Get(verify.ReadFile(filepath.Join(dir, "requester")))(t))
				require.True(t, v.Known)
				require.Len(t, v.Scopes, 2, "requests and replies")
				for _, s := range v.Scopes {
					require.EqualValues(t, []uint64{600, 600, 0, 0, 0}, []uint64{s.Expected, s.Once, s.Lost, s.Left, s.Foreign}, s.Destination)
				}
			})
		}
	}
}
