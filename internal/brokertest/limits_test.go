//go:build unix

package brokertest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sendUntilRefused sends persistent messages over STOMP, each after the receipt of the one before, most at the most. It
// returns how many the broker confirmed, and its ERROR frame.
func sendUntilRefused(t *testing.T, url, queue string, bodyBytes, most int) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "stomp://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	answers := bufio.NewReader(conn)
	ask := func(frame string) string {
		_, err := conn.Write([]byte(frame + "\x00"))
		require.NoError(t, err)
		answer, err := answers.ReadString(0)
		require.NoError(t, err)
		return strings.TrimSpace(answer)
	}
	require.Contains(t, ask("CONNECT\naccept-version:1.2\nhost:/\nlogin:"+User+"\npasscode:"+Password+"\n\n"), "CONNECTED")
	body := strings.Repeat("x", bodyBytes)
	for i := range most {
		answer := ask(fmt.Sprintf("SEND\ndestination:%s\ndestination-type:ANYCAST\npersistent:true\nreceipt:%d\ncontent-length:%d\n\n%s",
			queue, i, bodyBytes, body))
		if !strings.HasPrefix(answer, "RECEIPT") {
			return i, answer
		}
	}
	return most, ""
}

// heapMax asks Jolokia for the largest heap, in bytes.
func heapMax(t *testing.T, j *jolokia) int64 {
	t.Helper()
	var memory struct{ HeapMemoryUsage struct{ Max int64 } }
	require.NoError(t, j.do(t.Context(), jolokiaRequest{
		Type: "read", MBean: "java.lang:type=Memory", Attribute: []string{"HeapMemoryUsage"},
	}, &memory))
	return memory.HeapMemoryUsage.Max
}

func TestActiveMQStoreLimitAndHeap(t *testing.T) {
	a := StartActiveMQ(t, WithActiveMQSetting("storeUsage", "16mb"), WithActiveMQSetting("sendFailIfNoSpace", "true"),
		WithActiveMQSetting("jolokia", "true"), WithActiveMQJavaOptions("-Xmx160m"))
	assert.InDelta(t, 160<<20, heapMax(t, a.jolo), 16<<20, "the serial collector does not count one of its survivor spaces")

	const body, limit = 64 << 10, 16 << 20
	sent, answer := sendUntilRefused(t, a.STOMPURL(), "/queue/full", body, 2*limit/body)
	require.True(t, strings.HasPrefix(answer, "ERROR"), "%d messages: %.100q", sent, answer)
	require.Contains(t, answer, "Persistent store is Full")
	assert.LessOrEqual(t, sent*body, limit)
	assert.Greater(t, sent*body, limit/4, "files of 8 MB count as a whole")
	var got struct{ StoreLimit, TotalMessageCount int64 }
	require.NoError(t, a.jolo.do(t.Context(), jolokiaRequest{
		Type: "read", MBean: "org.apache.activemq:type=Broker,brokerName=localhost", Attribute: []string{"StoreLimit", "TotalMessageCount"},
	}, &got))
	assert.EqualValues(t, limit, got.StoreLimit)
	assert.EqualValues(t, sent, got.TotalMessageCount)
}

func TestRabbitMQTellsTheKeyThatItDoesNotKnow(t *testing.T) {
	_, err := LaunchRabbitMQ(t.Context(), WithRabbitMQSetting("channel_maxx", "7"))
	require.ErrorContains(t, err, "tried to set channel_maxx")
}

func TestArtemisSizeLimitAndHeap(t *testing.T) {
	a := StartArtemis(t, WithArtemisSetting("max-size-bytes", "100K"), WithArtemisSetting("address-full-policy", "FAIL"),
		WithJavaOptions("-Xmx160m"))
	assert.InDelta(t, 160<<20, heapMax(t, a.jolo), 16<<20)

	const body, limit = 4 << 10, 100 << 10
	sent, answer := sendUntilRefused(t, a.STOMPURL(), "full", body, 2*limit/body)
	require.True(t, strings.HasPrefix(answer, "ERROR"), "%d messages: %.100q", sent, answer)
	require.Contains(t, answer, "AMQ339011") // cannot send
	var got struct{ AddressSize int64 }
	require.NoError(t, a.jolo.do(t.Context(), jolokiaRequest{
		Type: "read", MBean: brokerBean + `,component=addresses,address="full"`, Attribute: []string{"AddressSize"},
	}, &got))
	assert.GreaterOrEqual(t, got.AddressSize, int64(limit), "%d messages, with the broker's overhead", sent)
	assert.Less(t, got.AddressSize, int64(limit+4*body), "the message that reaches the limit is the last one")
	q, err := a.Queue(t.Context(), "full")
	require.NoError(t, err)
	assert.EqualValues(t, sent, q.MessageCount)
}
