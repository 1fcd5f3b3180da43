//go:build unix

package brokertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range (32768 up) that the kernel gives to outgoing
// connections: a broker takes seconds to bind and to restart, and in between an
// outgoing connection must not take its port, nor may a client that dials a dead
// broker's port be connected to itself, which TCP does when both are the same.
const (
	portLow  = 20000
	portHigh = 32000
)

// loopback is the only address that brokers listen on.
const loopback = "127.0.0.1"

// freePorts returns n different ports that were free a moment ago. Somebody may
// take one before the broker binds, and the start
// then has to be tried again.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var last error
	for tries := 0; len(ports) < n; tries++ {
		if tries == 100+n {
			return nil, fmt.Errorf("find %d free ports on %s between %d and %d: %w", n, loopback, portLow, portHigh, last)
		}
		port := portLow + rand.IntN(portHigh-portLow)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		defer func() { _ = l.Close() }() // all stay open until the end, so that they differ
		ports = append(ports, port)
	}
	return ports, nil
}
