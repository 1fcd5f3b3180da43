package transport

import (
	"errors"
	"net"
	"syscall"

	"github.com/perfmq/perfmq/pkg/driver"
)

// DialError tells in plain words why the network let no connection to host be made, where the protocol has nothing to
// do with it. It returns nil for other errors.
func DialError(op, host string, err error) error {
	var dns *net.DNSError
	failed := func(text, hint string) error {
		return driver.Errorf(driver.ClassConnect, op, hint, "%s (%w)", text, err)
	}
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return failed("too many files and connections are open",
			"raise the limit (ulimit -n), or use fewer connections: --shared-connections, --consumer-connections")
	case errors.As(err, &dns):
		return driver.Errorf(driver.ClassConnect, op, "check the host's name in the URL", "%w", err)
	case isLoopback(host) && errors.Is(err, syscall.ENETUNREACH):
		return failed("there is no route to this machine itself",
			"the machine, or container, has no loopback interface: ip link set lo up")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return failed("no local port is free", "use fewer connections: --shared-connections, --consumer-connections")
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return failed("there is no route to that host", "check the address, the routes and firewalls in between")
	}
	return nil
}

// isLoopback tells whether a host of a URL is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
