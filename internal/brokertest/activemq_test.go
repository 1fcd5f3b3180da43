//go:build unix

package brokertest

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stompLogin connects by hand and returns the type of the broker's answer.
func stompLogin(t *testing.T, url, password string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "stomp://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, "CONNECT\naccept-version:1.2\nhost:/\nlogin:"+User+"\npasscode:"+password+"\n\n\x00")
	require.NoError(t, err)
	answer := make([]byte, len("CONNECTED"))
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)
	answered, _, _ := strings.Cut(string(answer), "\n")
	return answered
}

// requireRefused checks that nothing listens there any more.
func requireRefused(t *testing.T, url string) {
	t.Helper()
	_, address, _ := strings.Cut(url, "://")
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	require.Error(t, err)
}

func TestActiveMQ(t *testing.T) {
	a := StartActiveMQ(t, WithActiveMQLogin())
	require.Equal(t, "CONNECTED", stompLogin(t, a.STOMPURL(), Password))
	require.Equal(t, "ERROR", stompLogin(t, a.STOMPURL(), "wrong"))
	a.Kill()
	require.False(t, a.Alive())
	requireRefused(t, a.STOMPURL())
	requireRefused(t, a.AMQPURL())
	require.NoError(t, a.Start(t.Context()))
	require.Equal(t, "CONNECTED", stompLogin(t, a.STOMPURL(), Password))
	require.NoError(t, a.Stop())
	require.NoError(t, a.Close())
	require.NoDirExists(t, a.Dir())
}

func TestRabbitMQ(t *testing.T) {
	r := StartRabbitMQ(t)
	require.Equal(t, "CONNECTED", stompLogin(t, r.STOMPURL(), Password))
	require.Equal(t, "ERROR", stompLogin(t, r.STOMPURL(), "wrong"))
	users, err := r.Ctl(t.Context(), "list_users")
	require.NoError(t, err)
	require.Contains(t, users, User)
	r.Kill()
	require.False(t, r.Alive())
	requireRefused(t, r.STOMPURL())
	requireRefused(t, r.AMQPURL())
	require.NoError(t, r.Start(t.Context()))
	require.Equal(t, "CONNECTED", stompLogin(t, r.STOMPURL(), Password))
	require.NoError(t, r.Stop())
	require.NoError(t, r.Close())
	require.NoDirExists(t, r.Dir())
}
