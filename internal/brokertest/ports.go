//go:build unix

package brokertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// Ports come from below the range (32768 up) that the kernel gives to outgoing
// connections: a broker takes seconds to bind and to restart, and in between an
// outgoing connection must not take its port, nor may a client that dials a dead
// broker's port be connected to itself, which TCP does when both are the same.
const (
	portLow  = 20000
	portHigh = 32000
	portStep = 4
)

// portTaken finds the end of a start for which another process had taken a port, in the words of any broker.
var portTaken = regexp.MustCompile(addressTaken + "|BindException|eaddrinuse|in use")

// loopback is the only address that brokers listen on.
const loopback = "127.0.0.1"

// The ports that brokers have by default, for [WithDefaultPorts] and its like.
const (
	defaultAMQPPort       = 5672
	defaultSTOMPPort      = 61613
	defaultCorePort       = 61616
	defaultWebPort        = 8161
	defaultNameServerPort = 9876
	defaultRocketMQPort   = 10911
	defaultProxyPort      = 8081
)

// pickPorts returns a port for each one that is wanted: that one if it is free and no other broker of the harness has
// it, another one if it is taken or 0. The broker keeps its claim on them, also while it is down, until it is closed or
// they are picked again. A stranger may take one before the broker binds it. Ports found at random are multiples of
// portStep, so that the neighbours of each are the broker's as well.
func (d *daemon) pickPorts(wanted ...int) ([]int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unclaim()
	ports := make([]int, len(wanted))
	for i, port := range wanted {
		ok := false
		for try := 0; !ok; try++ {
			if try == 1000 {
				return nil, fmt.Errorf("find %d free ports between %d and %d", len(wanted), portLow, portHigh)
			}
			if port == 0 || try > 0 {
				port = portLow + portStep*rand.IntN((portHigh-portLow)/portStep)
			}
			var err error
			if ok, err = d.claim(port); err != nil {
				return nil, err
			}
		}
		ports[i] = port
	}
	return ports, nil
}

// claim locks the file of a port that is free, if no other broker of this user has, in whatever process. The caller
// holds mu.
func (d *daemon) claim(port int) (bool, error) {
	dir, err := cacheDir()
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "ports"), 0o755); err != nil { //nolint:gosec // as the cache
		return false, fmt.Errorf("claim the port %d: %w", port, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "ports", strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, fmt.Errorf("claim the port %d: %w", port, err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, f.Close()
	case err != nil:
		return false, errors.Join(fmt.Errorf("claim the port %d: %w", port, err), f.Close())
	}
	if !portFree(port) {
		return false, f.Close()
	}
	d.claims = append(d.claims, f)
	return true, nil
}

// unclaim gives the claimed ports back. The caller holds mu.
func (d *daemon) unclaim() {
	for _, f := range d.claims {
		_ = f.Close()
	}
	d.claims = nil
}

// portFree reports whether a port of loopback was free a moment ago.
func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
