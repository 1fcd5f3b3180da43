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
		text, hint string
	}{
		{syscall.EMFILE, "too many open files", "ulimit -n"},
		{syscall.ENFILE, "too many open files", "ulimit -n"},
		{syscall.EADDRNOTAVAIL, "no local port is free", "share connections"},
		{syscall.ENETUNREACH, "network is unreachable", "routes"},
		{syscall.EHOSTUNREACH, "no route to host", "routes"},
		{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, "no such host", "check the host's name"},
		{syscall.ECONNREFUSED, "", ""},
		{errors.New("other"), "", ""},
	} {
		err := fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Net: "tcp", Err: &os.SyscallError{Syscall: "connect", Err: c.err}})
		got := DialError("connect to h", err)
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
