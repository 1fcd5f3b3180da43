package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestDialError(t *testing.T) {
	for _, c := range []struct {
		err        error
		host       string
		text, hint string
	}{
		{syscall.EMFILE, "localhost", "too many files", "ulimit -n"},
		{syscall.ENFILE, "h", "too many files", "ulimit -n"},
		{syscall.ENETUNREACH, "127.0.0.1", "no route to this machine itself", "ip link set lo up"},
		{syscall.ENETUNREACH, "::1", "no route to this machine itself", "ip link set lo up"},
		{syscall.EADDRNOTAVAIL, "localhost", "no local port is free", "fewer connections"},
		{syscall.EADDRNOTAVAIL, "broker", "no local port is free", "fewer connections"},
		{syscall.ENETUNREACH, "192.0.2.1", "no route to that host", "routes"},
		{syscall.EHOSTUNREACH, "h", "no route to that host", "routes"},
		{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, "h", "no such host", "check the host's name"},
		{syscall.ECONNREFUSED, "h", "", ""},
		{errors.New("other"), "h", "", ""},
	} {
		err := fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Net: "tcp", Err: &os.SyscallError{Syscall: "connect", Err: c.err}})
		got := DialError("connect to h", c.host, err)
		if c.text == "" {
			require.NoError(t, got)
			continue
		}
		require.ErrorContains(t, got, "connect to h: ")
		require.ErrorContains(t, got, c.text)
		require.ErrorIs(t, got, c.err)
		assert.Contains(t, driver.HintOf(got), c.hint)
		assert.Equal(t, driver.ClassConnect, driver.ClassOf(got))
	}
}

// TestUnanswered: a server had the time that was left when we began.
func TestUnanswered(t *testing.T) {
	p := &Protocol{Title: "STOMP", Schemes: []string{"stomp"}, Encrypted: []string{"stomp+ssl"}}
	for d, want := range map[time.Duration]string{
		9*time.Second + 999*time.Millisecond: "within 10s (", 3333 * time.Millisecond: "within 3.3s (", 299900 * time.Microsecond: "within 300ms (",
	} {
		require.ErrorContains(t, p.Unanswered("CONNECT", false, d, context.DeadlineExceeded), want)
	}
	require.Contains(t, driver.HintOf(p.Unanswered("CONNECT", false, time.Second, context.DeadlineExceeded)), "should it be stomp+ssl://?")
	require.NotContains(t, driver.HintOf(p.Unanswered("CONNECT", true, time.Second, context.DeadlineExceeded)), "ssl", "it is already")
}
