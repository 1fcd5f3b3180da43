//go:build unix

package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// inspectTime bounds each wait of an inspection.
const inspectTime = time.Minute

// InspectAMQP is [drivertest.Config.Inspect] by go-amqp, which shares no code with our drivers: it subscribes to an
// address, of a queue or a topic, and the function that it returns waits for the next n messages. It logs in as User
// if login is set.
func InspectAMQP(
	tb testing.TB, url string, login bool, kind driver.Kind, address string, durable bool,
) func(n int) []drivertest.Header {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), inspectTime)
	defer cancel()
	opts := &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}
	if login {
		opts.SASLType = amqp.SASLTypePlain(User, Password)
	}
	conn, err := amqp.Dial(ctx, url, opts)
	require.NoError(tb, err, "inspect "+address)
	tb.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(ctx, nil)
	require.NoError(tb, err, "inspect "+address)
	const ahead = 1000
	source := &amqp.ReceiverOptions{Credit: ahead, SourceCapabilities: []string{kind.String()}}
	if durable {
		source.SourceDurability = amqp.DurabilityConfiguration
	}
	link, err := session.NewReceiver(ctx, address, source)
	require.NoError(tb, err, "inspect "+address)
	return func(n int) []drivertest.Header {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), inspectTime)
		defer cancel()
		headers := make([]drivertest.Header, 0, n)
		for range n {
			m, err := link.Receive(ctx, nil)
			require.NoErrorf(tb, err, "inspect %s: %d of %d messages came", address, len(headers), n)
			require.NoError(tb, link.AcceptMessage(ctx, m))
			headers = append(headers, headerOf(m))
		}
		return headers
	}
}

func headerOf(m *amqp.Message) drivertest.Header {
	const normal = 4 // of messages that do not say
	h := drivertest.Header{Properties: map[string]string{}, Priority: normal}
	_, h.Text = m.Value.(string)
	if m.Header != nil {
		h.Priority, h.Persistent, h.TTL = int(m.Header.Priority), m.Header.Durable, m.Header.TTL
	}
	if m.Properties != nil && m.Properties.GroupID != nil {
		h.Group = *m.Properties.GroupID
	}
	for key, value := range m.ApplicationProperties {
		if text, ok := value.(string); ok {
			h.Properties[key] = text
		}
	}
	return h
}
