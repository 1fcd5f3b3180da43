package stomp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestSharesMessageIDs(t *testing.T) {
	for server, want := range map[string]bool{
		"ActiveMQ-Artemis/2.19.0 ActiveMQ Artemis Messaging Engine": true,
		"ActiveMQ-Artemis/2.32.0":                                   true, "ActiveMQ-Artemis/1.5.6": true,
		"ActiveMQ-Artemis/2.33.0": false, "ActiveMQ-Artemis/2.56.0": false, "ActiveMQ-Artemis/3.0.0": false,
		"ActiveMQ-Artemis": false, "ActiveMQ/5.16.7": false, "": false,
	} {
		s := connection{server: server, dialect: dialectOf(server)}
		require.Equal(t, want, s.sharesMessageIDs(), server)
	}
}

// TestTopicOnOldArtemis: a second subscription to a topic has a connection of its own on Artemis before 2.33, and none
// on later ones.
func TestTopicOnOldArtemis(t *testing.T) {
	for version, conns := range map[string]int{"2.19.0": 2, "2.56.0": 1} {
		t.Run(version, func(t *testing.T) {
			b := newFakeBroker(t)
			d := b.open()
			opened := map[net.Conn]bool{}
			for i := range 2 {
				greeting := ""
				if i < conns {
					greeting = "CONNECTED\nversion:1.2\nserver:ActiveMQ-Artemis/" + version + " x\nheart-beat:0,0\n\n\x00"
				}
				b.consumer(d, greeting, driver.ConsumerSpec{
					Connection: driver.Connection{Key: "c"}, Destination: driver.Destination{Kind: driver.Topic, Name: "t"},
				})
				opened[b.conn] = true
			}
			require.Len(t, opened, conns)
			t.Cleanup(func() {
				for conn := range opened {
					_ = conn.Close()
				}
			})
		})
	}
}
