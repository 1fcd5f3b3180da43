package stomp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestAMQPEncoded replays ActiveMQ Classic without transport.transformer=jms: the body is a whole AMQP message.
func TestAMQPEncoded(t *testing.T) {
	const (
		head     = "MESSAGE\nsubscription:0\nmessage-id:m\nack:a\ntime:5\n"
		encoded  = "JMS_AMQP_NATIVE:true\n"
		numbered = "perfmq_id:1-2-3-4\n"
		body     = "\n\x00Su\xa0\x01x"
	)
	for name, c := range map[string]struct {
		messages []string
		got      int
		fails    bool
	}{
		"verified":     {[]string{head + numbered + "content-length:1\n\nx\x00", head + encoded + numbered + "content-length:6\n" + body + "\x00"}, 1, true},
		"not verified": {[]string{head + encoded + "content-length:6\n" + body + "\x00"}, 1, false},
		"jms":          {[]string{head + "JMS_AMQP_NATIVE:false\n" + numbered + "\nx\x00"}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBroker(t)
			k, _ := b.consumer(b.open(), connectedClassic, driver.ConsumerSpec{})
			for _, m := range c.messages {
				b.write(m)
			}
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			got := 0
			err := k.Run(ctx, func(*driver.Delivery) driver.Verdict {
				if got++; got == c.got && !c.fails {
					stop()
				}
				return driver.Accept
			})
			require.Equal(t, c.got, got)
			if !c.fails {
				require.NoError(t, err)
			} else {
				require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
				require.ErrorContains(t, err, "receive from queue://q: the broker delivers AMQP messages in their AMQP encoding")
				require.Contains(t, driver.HintOf(err), "transport.transformer=jms")
			}
		})
	}
}
