package brokertest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// hermit is a network of its own, with nothing but a loopback, for brokers that
// listen on all addresses and cannot be configured otherwise. A port of this network
// is published as the port of the same number on the loopback of the machine.
type hermit struct {
	space *os.File // names the network namespace, and keeps it
	ways  []*tcpproxy.Proxy
}

// newHermit makes a network. Only root may.
func newHermit() (*hermit, error) {
	h := new(hermit)
	var err error
	onOwnThread(func() { err = h.make() })
	if err != nil {
		return nil, fmt.Errorf("make a network that has only a loopback (which only root may): %w", err)
	}
	return h, nil
}

// onOwnThread calls f on a thread that ends with it, so that it may leave the
// thread in another namespace.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		f()
	}()
	<-done
}

func (h *hermit) make() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	var err error
	if h.space, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request)))
	if errno != 0 {
		return fmt.Errorf("bring its loopback up: %w", errno)
	}
	return nil
}

// enter moves the calling thread, which must be locked and end, into the network.
func (h *hermit) enter() error {
	return unix.Setns(int(h.space.Fd()), unix.CLONE_NEWNET)
}

// publish makes ports of the network reachable at the machine's loopback.
func (h *hermit) publish(ports ...int) error {
	for _, port := range ports {
		address := fmt.Sprintf("%s:%d", loopback, port)
		way, err := tcpproxy.New(tcpproxy.Config{Target: address, Address: address, Dial: h.dial})
		if err != nil {
			return err
		}
		h.ways = append(h.ways, way)
	}
	return nil
}

// dial connects within the network.
func (h *hermit) dial(ctx context.Context, address string) (c net.Conn, err error) {
	onOwnThread(func() {
		if err = h.enter(); err == nil {
			c, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	})
	return c, err
}

// unpublish ends all that publish began.
func (h *hermit) unpublish() {
	for _, way := range h.ways {
		way.Close()
	}
	h.ways = nil
}

// close ends the network, once nothing runs in it.
func (h *hermit) close() {
	h.unpublish()
	_ = h.space.Close()
}
