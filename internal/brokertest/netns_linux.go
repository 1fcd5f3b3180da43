package brokertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hermit is a network of its own, with nothing but a loopback, for brokers that
// listen on all addresses and cannot be configured otherwise. A port of this network
// is published as the port of the same number on the loopback of the machine.
type hermit struct {
	space *os.File // names the network namespace, and keeps it

	wg        sync.WaitGroup
	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool
}

// newHermit makes a network. Only root may.
func newHermit() (*hermit, error) {
	h := &hermit{conns: map[net.Conn]bool{}}
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

// publish makes ports of the network those of the machine's loopback.
func (h *hermit) publish(ports ...int) error {
	for _, port := range ports {
		address := fmt.Sprintf("%s:%d", loopback, port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.listeners = append(h.listeners, l)
		h.mu.Unlock()
		h.wg.Go(func() {
			for {
				outer, err := l.Accept()
				if err != nil {
					return
				}
				h.wg.Go(func() { h.join(outer, address) })
			}
		})
	}
	return nil
}

// join connects both sides until one of them ends.
func (h *hermit) join(outer net.Conn, address string) {
	var inner net.Conn
	var err error
	onOwnThread(func() {
		if err = h.enter(); err == nil {
			inner, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
		}
	})
	if err != nil {
		_ = outer.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // of a TCP listener
		_ = outer.Close()
		return
	}
	defer h.drop(outer, inner)
	h.mu.Lock()
	h.conns[outer], h.conns[inner] = true, true
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(inner, outer)
		_ = inner.Close()
	}()
	_, _ = io.Copy(outer, inner)
	_ = outer.Close()
	<-done
}

func (h *hermit) drop(conns ...net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(h.conns, c)
	}
}

// unpublish ends all that publish began.
func (h *hermit) unpublish() {
	h.mu.Lock()
	h.closed = true
	for _, l := range h.listeners {
		_ = l.Close()
	}
	for c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.wg.Wait()
	h.mu.Lock()
	h.closed, h.listeners = false, nil
	h.mu.Unlock()
}

// close ends the network, once nothing runs in it.
func (h *hermit) close() {
	h.unpublish()
	_ = h.space.Close()
}
