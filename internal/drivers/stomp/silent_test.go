package stomp

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// A server that takes the connection and says nothing, or not enough, is told from one that cannot be reached.
func TestSilentServer(t *testing.T) {
	for name, tt := range map[string]struct {
		scheme, greeting string
		text, hint       string
	}{
		"nothing":        {"stomp", "", "accepted the connection but did not answer CONNECT within ", "is this the broker's STOMP port, and should it be stomp+ssl://?"},
		"half a frame":   {"stomp", "CONNECTED\nversion:1.2\n", "did not answer CONNECT within ", "is this the broker's STOMP port"},
		"nothing, TLS":   {"stomp+ssl", "", "accepted the connection but did not answer the TLS handshake within ", "or should it be stomp://?"},
		"two, in shares": {"stomp+two", "", "did not answer CONNECT within ", "STOMP port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte(tt.greeting))
					defer conn.Close()
				}
			}()
			t.Cleanup(func() {
				_ = l.Close()
				<-ended
			})
			// Long enough that the connection is made, of which the error speaks, also on a machine with much else to do.
			url := tt.scheme + "://" + l.Addr().String()
			if tt.scheme == "stomp+two" {
				url = "stomp://" + l.Addr().String() + "," + l.Addr().String()
			}
			d, err := Factory().Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: 8 * time.Second, Options: Factory().NewOptions()})
			require.NoError(t, err)
			_, err = d.Consumer(t.Context(), driver.ConsumerSpec{Destination: driver.Destination{Name: "A"}})
			require.ErrorContains(t, err, tt.text)
			require.ErrorContains(t, err, "connect to "+l.Addr().String())
			require.Contains(t, driver.HintOf(err), tt.hint)
			require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
			require.True(t, errors.Is(err, context.DeadlineExceeded))
			require.NoError(t, d.Close(t.Context()))
		})
	}
}
