package rocketmq

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

func binaryFrame(code int, body string, fields ...string) []byte {
	b := wire.BeginFrame(nil, code, 0, 1, "")
	for i := 0; i < len(fields); i += 2 {
		b = wire.AppendField(b, fields[i], fields[i+1])
	}
	wire.EndFrame(b, len(body))
	return append(b, body...)
}

// FuzzProperties: properties are read, replaced and converted without end or failure.
func FuzzProperties(f *testing.F) {
	f.Add([]byte("TAGS\x01a\x02DELAY\x0118\x02x\x01"), "x")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		m := (&message{properties: b}).complete()
		m.Properties()
		(&message{properties: b}).applyProperties()
		if v := m.Property(name); v != nil {
			require.LessOrEqual(t, len(v.(string)), len(b))
		}
		require.Nil(t, wire.Property(withProperties(b, "gone", ""), "gone"))
	})
}

// FuzzServer: whatever comes over a connection, the server lives on and serves others.
func FuzzServer(f *testing.F) {
	f.Add(binaryFrame(310, "body", "b", "T", "e", "0", "i", "DELAY\x011\x02"))
	f.Add(binaryFrame(11, "", "topic", "T", "queueId", "0", "queueOffset", "-1", "maxMsgNums", "999999999", "sysFlag", "7", "subscription", "a||b"))
	f.Add(binaryFrame(34, `{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","expressionType":"SQL92","subString":"a >"}]}]}`))
	f.Add(binaryFrame(36, "", "group", "g", "offset", "17592186044416"))
	f.Add(binaryFrame(37, "", "commitLogOffset", "1", "commitOrRollback", "8"))
	f.Add(binaryFrame(41, `{"consumerGroup":"g","mqSet":[{"topic":"T","queueId":-1}]}`))
	for _, code := range []int{10, 14, 15, 17, 28, 30, 31, 32, 33, 35, 38, 42, 46, 105, 106, 200, 206, 207, 208, 215, 216, 320, 400} {
		f.Add(binaryFrame(code, "", "topic", "T", "queueId", "0", "consumerGroup", "g"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(store.New(store.Config{Limit: 100}), Options{MaxMessage: 1 << 16})
		defer s.Close()
		s.makeTopic("T", 2).dest.Send(other("x"))
		client, server := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Serve(server)
		}()
		go func() {
			buf := make([]byte, 64<<10)
			for {
				if _, err := client.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = client.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, _ = client.Write(b)
		_ = client.Close()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			require.Fail(t, "the connection does not end")
		}
	})
}
