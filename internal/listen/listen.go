// Package listen opens the ports of this program: of the embedded broker, its control, and the metrics. All of them
// are on loopback unless an address is written out, and the HTTP servers do not obey web pages.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Check returns the mistake in an address to listen on: HOST:PORT or :PORT. Port 0 takes a free one.
func Check(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("must be HOST:PORT, :PORT (on loopback) or [::]:PORT (on all addresses)")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return nil
}

// Listener is a function like [TCP].
type Listener func(ctx context.Context, what, flag, address string) (net.Listener, error)

// TCP listens on an address. Without a host that is 127.0.0.1: all addresses of the machine are 0.0.0.0 or [::],
// written out. The parameter what names the service, and flag the flag that gave the address, both for the error,
// which is a [*driver.Error].
func TCP(ctx context.Context, what, flag, address string) (net.Listener, error) {
	at := address
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		at = net.JoinHostPort("127.0.0.1", port)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, explain(what, flag, address, err)
	}
	return l, nil
}

func explain(what, flag, address string, err error) error {
	hint := "give " + flag + " HOST:PORT; port 0 takes a free one"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another program listens there: give another port by " + flag + "; port 0 takes a free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL) && IsLoopback(address):
		hint = "there is no loopback interface: ip link set lo up"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "the host of " + flag + " must be an address of this machine"
	case errors.Is(err, syscall.EACCES):
		hint = "give a port above 1023 by " + flag
	case errors.Is(err, syscall.EMFILE):
		hint = "raise the limit of open files: ulimit -n"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return driver.Errorf(driver.ClassConnect, "listen for "+what+" on "+address, hint, "%w", err)
}

// IsLoopback reports whether only this machine can reach an address, HOST:PORT, HOST or :PORT.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
